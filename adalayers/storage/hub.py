"""Where backbones and datasets come from: a local folder, a mirror of local copies, then the Hugging Face hub.

The libraries' own retries take 20 to 50 seconds to find that a hub cannot be reached. One short probe here
finds out first. Beside it what both kinds need: names safe in paths, the hub's libraries kept quiet.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from adalayers.errors import BadInput, local_path
from adalayers.storage.patience import within
from adalayers.storage.redaction import foreign, redacted

PROBE_SECONDS = 5.0

HUB = "https://huggingface.co"


def split_revision(name: str) -> tuple[str, str | None]:
    """Return ("id", "revision") of "id@revision"; the revision is None where none is named."""
    identifier, _, revision = name.partition("@")
    return identifier, revision or None


def last_part(identifier: str) -> str:
    """Return the last part of a hub id or path, lower case: "FacebookAI/roberta-large" -> "roberta-large"."""
    return identifier.rstrip("/").rsplit("/", 1)[-1].lower()


def safe_name(name: str, fallback: str) -> str:
    """Return `name` lower case, with nothing in it that a path could stumble over; `fallback` for nothing."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip(".-") or fallback


def local_copy(names: list[str], data_dir: str | Path | None) -> Path | None:
    """Return the first folder of `data_dir` named as one of `names`, else None.

    Raises `BadInput` where `data_dir` itself is no folder.
    """
    if data_dir is None:
        return None
    root = local_path(data_dir, "--data-dir")
    if not root.is_dir():
        raise BadInput(
            f"wanted a folder of local copies as --data-dir, {str(root)!r} is none; name an existing folder"
        )
    return next((root / name for name in names if (root / name).is_dir()), None)


def looked_for(names: list[str], data_dir: str | Path | None) -> str:
    """Return which folders `local_copy` did not find, for messages; "" without `data_dir`."""
    return "" if data_dir is None else f" (no folder {' or '.join(dict.fromkeys(names))} in {data_dir})"


def require_hub(what: str) -> None:
    """Raise `BadInput` unless the hub answers within `PROBE_SECONDS`; `what` is what is wanted of it."""
    from huggingface_hub import get_session

    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "TRUE", "YES", "ON"}:
        raise _out_of_reach(what, "HF_HUB_OFFLINE is set")
    endpoint = os.environ.get("HF_ENDPOINT") or HUB
    try:  # each address of a name has so long, and looking the name up has no limit of its own
        within(2 * PROBE_SECONDS, lambda: get_session().head(endpoint, timeout=PROBE_SECONDS))
    except Exception as error:  # of many kinds: of addresses, names, proxies, certificates
        raise _out_of_reach(what, f"{redacted(endpoint)}: {first_line(error)}") from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' load reports, progress bars and warnings; everything is put back afterwards."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with warnings.catch_warnings(action="ignore"):
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()


@contextlib.contextmanager
def refusing(wanted: str, advice: str) -> Iterator[None]:
    """Raise `BadInput` for whatever libraries raise meanwhile of a user's files, which is of many kinds."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        causes = [error, error.__cause__] if error.__cause__ else [error]
        why = ", from ".join(f"{type(cause).__name__}: {first_line(cause)}" for cause in causes)
        raise BadInput(f"{wanted} ({why}); {advice}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, without the credentials of addresses in it."""
    return foreign(str(error).strip().partition("\n")[0])


def _out_of_reach(what: str, why: str) -> BadInput:
    return BadInput(
        f"wanted {what} from the Hugging Face hub, which is out of reach ({why}); "
        "name a folder of local copies with --data-dir (or ADALAYERS_DATA), or give a local folder instead"
    )
