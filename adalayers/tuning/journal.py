"""The searches of a study as a file of Optuna's: `optuna.load_study` and optuna-dashboard read it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from adalayers.storage.folder import Folder
from adalayers.tuning.search import Search

JOURNAL = "optuna.journal"


def write_journal(folder: Folder, searches: Sequence[Search]) -> None:
    """Write `optuna.journal`: an Optuna study for each search, by its name, or the folder's where there is one search.

    Trials have the states and scores of `trials.csv` (stopped: pruned) and its id as the user attribute `trial_id`.
    """
    if not searches:
        return
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / JOURNAL
        storage = JournalStorage(JournalFileBackend(str(path)))
        for search in searches:
            study = optuna.create_study(
                storage=storage, study_name=search.name or folder.name, direction="maximize"
            )
            study.add_trials(search.optuna_trials())
        folder.write_bytes(JOURNAL, path.read_bytes())
