"""What a command takes from its environment: one list of what is cleared, set or refused before anything is computed.

Results follow from flags, data and code alone. What other programs leave in the environment (a notebook, a git hook,
`uv run`, older releases of Ray) would stop a study, or change what it runs, after hours.
"""

from __future__ import annotations

import contextlib
import fnmatch
import getpass
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from adalayers.errors import BadInput, local_path, require_readable

CLEARED = (
    "MPLBACKEND",  # figures are files; a notebook's backend may not be installed here, and Matplotlib then ends
    "TUNE_*",  # some end Tune (TUNE_RESULT_DIR), others change what a scheduler sees of a trial
    "RAY_AIR_*",  # as those of Tune
    "RAY_RUNTIME_ENV_HOOK",  # another's code would say what workers import
    "RAY_TMPDIR",  # Ray's files lie in a folder of the study's own
    # Of a git hook: the commit is that of this code, not of the repository that called.
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE"),
    "PYTHONWARNINGS",  # a library's warning is not an error of a study
    *("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_*"),  # a study has its own
)
"""Variables that no command hears, as patterns."""

SET = {
    # Else Ray uploads the current folder of a driver under `uv run`, and workers run what lies there.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
}
"""Variables with one value, whatever the user's is."""

DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "TOKENIZERS_PARALLELISM": "false",
    # Without these a dead server holds one call for minutes, and MLflow writes to the terminal.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "1",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
"""Variables that are set where the user has not."""


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Clear and set what the lists of this module say, for the block and the processes that it starts.

    Raises:
        BadInput: As `_refuse` says.
    """
    with contextlib.ExitStack() as stack:
        cleared = [name for name in os.environ if any(fnmatch.fnmatch(name, of) for of in CLEARED)]
        defaults = {name: value for name, value in DEFAULTS.items() if name not in os.environ}
        changed = {**dict.fromkeys(cleared), **SET, **defaults, **_person(stack)}
        stack.enter_context(inherited(changed))
        if sys.warnoptions:  # of PYTHONWARNINGS, or -W; for good: libraries warn while Python ends, too
            warnings.simplefilter("ignore")
        _refuse()
        yield


def set_defaults() -> None:
    """Set `DEFAULTS` for good: for those who use the library without a command."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def inherited(more: Mapping[str, str | None]) -> Iterator[None]:
    """Set these variables, or clear those that are None, for the block and the processes that are started in it."""
    before = {name: os.environ.get(name) for name in more}
    _set(more)
    try:
        yield
    finally:
        _set(before)


def default_cache() -> Path:
    """Return ADALAYERS_CACHE, else `adalayers` in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = os.environ.get("ADALAYERS_CACHE") or f"{caches}/adalayers"
    return local_path(folder, "the cache of hidden states (ADALAYERS_CACHE)")


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _person(stack: contextlib.ExitStack) -> dict[str, str]:
    """Return the name and the home that libraries ask for, where this user has none, as in many containers.

    The home is then a folder that goes with the command: what is to be kept needs a place of its own (--cache-dir).
    """
    person = {}
    try:
        getpass.getuser()
    except (KeyError, OSError, ImportError):
        person["USER"] = f"user-{os.getuid()}"
    if not Path(os.path.expanduser("~")).is_dir():
        with contextlib.suppress(OSError):  # `_refuse` says so
            person["HOME"] = stack.enter_context(tempfile.TemporaryDirectory(prefix="adalayers-home-"))
    return person


def _refuse() -> None:
    """Refuse what no variable mends, before anything is computed.

    Raises:
        BadInput: The current folder is gone, or there is no folder for temporary files that libraries can read.
    """
    try:
        os.getcwd()
    except OSError as error:
        raise BadInput(
            f"wanted a current folder, this one is gone ({error.strerror}); change to one that exists"
        ) from None
    try:
        require_readable(tempfile.gettempdir())
    except OSError as error:
        raise BadInput(f"wanted a folder for temporary files ({error.strerror}); set TMPDIR to one") from None
