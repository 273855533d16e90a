"""`adalayers.study`: a study run from Python, with the flags of its command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adalayers import environ
from adalayers.command.main import run_study
from adalayers.command.studies import find_study
from adalayers.console.interrupts import INTERRUPTED, Interrupts
from adalayers.console.progress import log_to_stderr
from adalayers.results.files import STUDY
from adalayers.results.frames import AllResults, StudyResults


def study(name: str, /, **flags: Any) -> StudyResults | AllResults:
    """Run a study, as `adalayers study NAME` does, and return its results as frames.

        results = adalayers.study("single_layer", backbone="minilm", dataset="cola", seeds=6, set={"k": 32})
        results.claims

    Run again with the same flags it continues; what is finished is read, not trained again.

    Args:
        name: The study's.
        flags: Those of its command line, with `_` for `-`: a text or number, True for a flag alone, a list for several
            values, `set` a dictionary. None, False and an empty list or dictionary leave a flag out.

    Returns:
        The results of the study, of all cases where there are several backbones or datasets; of those that have
        begun, where `max_hours` was over before.

    Raises:
        BadInput: What the command would refuse with exit code 2.
        KeyboardInterrupt: It was interrupted; the same call continues it.
    """
    argv = _words(flags)
    interrupts = Interrupts("")
    log_to_stderr()
    with environ.prepared(), interrupts.listening():
        code, folders = run_study(find_study(name), argv, f"adalayers study {name}", interrupts)
    if code == INTERRUPTED:
        raise KeyboardInterrupt(interrupts.last_words)
    begun = [folder for folder in folders if folder.exists(STUDY)]
    return StudyResults(begun[0]) if len(folders) == len(begun) == 1 else AllResults(begun)


def _words(flags: Mapping[str, Any]) -> list[str]:
    """Return flags as a command line has them."""
    words: list[str] = []
    for name, value in flags.items():
        if value is None or value is False or (isinstance(value, Mapping | list | tuple) and not value):
            continue
        words.append(f"--{name.replace('_', '-')}")
        if isinstance(value, Mapping):
            value = [f"{key}={each}" for key, each in value.items()]
        if value is not True:
            words += map(str, value if isinstance(value, list | tuple) else [value])
    return words
