"""What makes a study this one, and whether a results folder holds it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from adalayers.config import TrialConfig
from adalayers.data.prepare import Prepared
from adalayers.errors import BadInput
from adalayers.escaping import listed
from adalayers.provenance import Provenance
from adalayers.results.files import STUDY, TRIALS
from adalayers.results.study_file import RequestRecord, StudyFile, read_study
from adalayers.results.trial_row import read_trial_rows
from adalayers.storage.folder import Folder
from adalayers.study import trial_id
from adalayers.tasks import metrics

NOTHING: tuple[Any, ...] = (None, [], {}, "")
WAYS_OUT = "keep what is there and begin another study with --label NAME, or set it aside with --fresh"


def new_study() -> StudyFile:
    """Return the start of a study, with an id of its own."""
    return StudyFile(id=uuid.uuid4().hex)


def opened(folder: Folder, request: RequestRecord, provenance: Provenance) -> StudyFile:
    """Return the study that the folder holds, or the start of a new one.

    Raises:
        BadInput: Where the folder holds another study, naming the first difference, where it holds the trials of one
            that nothing tells of, and where what tells of it cannot be read.
    """
    if not folder.exists(STUDY):
        if folder.exists(TRIALS):
            raise BadInput(
                f"wanted {STUDY} next to {TRIALS} in {folder.uri}, it is missing, so that nothing says what the trials "
                f"there are of; restore it from a copy, {WAYS_OUT}"
            )
        return new_study()
    study = read_study(folder, advice=f"restore the file from a copy, {WAYS_OUT}")
    if study.study not in ("", folder.parent().name):
        raise _another(folder, "study", folder.parent().name, study.study)
    stored, wanted = study.identity, request.identity(provenance.backbone, provenance.dataset)
    for name in {**stored, **wanted}:
        there, now = stored.get(name), wanted.get(name)
        if there != now and not (there in NOTHING and now in NOTHING):
            raise _another(folder, name, now, there)
    return study


def check_plan(folder: Folder, before: StudyFile, control: str, arms: Collection[str]) -> None:
    """Compare what a study's comparisons are of with what is planned now: what was planned once shares the error.

    Args:
        folder: The study's.
        before: The study as it is.
        control, arms: Names of what is planned now, `arms` with their aliases.

    Raises:
        BadInput: Where the control is another one, or an arm that has been confirmed is none any more.
    """
    found = {arm.name for arm in before.request.arms if arm.role in ("best", "tuned")}
    confirmed = {arm for run in before.runs.history for arm, seeds in run.seeds.items() if seeds} - found
    if confirmed and before.request.control not in (control, *found):
        raise _another(folder, "control", control, before.request.control)
    if gone := sorted(confirmed - {*arms}):
        raise BadInput(
            f"wanted all arms that {folder.uri} has confirmed, the study plans no {listed(gone)} any more; {WAYS_OUT}"
        )


def check_rows(folder: Folder, prepared: Prepared, arms: Mapping[str, Collection[TrialConfig]]) -> None:
    """Compare what the rows of a study are of with what is read and asked for now: their ids follow from it.

    Args:
        folder: The study's, without `trials.csv` before its first run.
        prepared: Backbone and data as they are now.
        arms: The configurations that each arm may be confirmed with, by its name; those that a search finds are not
            among them.

    Raises:
        BadInput: For a row that is of other splits, labels, weights, precision or settings than it says, and for one of
            an arm that is another configuration now.
    """
    if not folder.exists(TRIALS):
        return
    shape, provenance = prepared.shape, prepared.provenance
    for own_id, row in read_trial_rows(folder, advice=f"restore the file from a copy, {WAYS_OUT}").items():
        wanted = f"wanted rows of what is read now in {folder.uri}, {own_id} in {TRIALS} is of"
        try:
            here = row.identity(shape, provenance)
        except BadInput as error:
            here = str(error)
        if here != own_id:
            raise BadInput(f"{wanted} something else, or was edited ({here}); {WAYS_OUT}")
        configs = arms.get(row.arm, ()) if row.stage == "confirm" else ()
        ids = {trial_id(config, shape, row.seed, provenance) for config in configs}
        if ids and own_id not in ids:
            raise BadInput(
                f"{wanted} arm {row.arm}, seed {row.seed}, with other settings than this arm has now; {WAYS_OUT}"
            )


def smallest_effect(folder: Folder, before: StudyFile, wanted: float | None, metric: str) -> float:
    """Return the smallest difference of interest: as wanted, that of the study `before`, else the metric's own.

    Raises `BadInput` where `folder` holds a study with another one.
    """
    stored = before.request.smallest_effect
    if stored is None:
        return metrics.smallest_effect(metric) if wanted is None else wanted
    if wanted not in (None, stored):
        raise _another(folder, "smallest_effect", wanted, stored)
    return stored


def _another(folder: Folder, name: str, wanted: Any, stored: Any) -> BadInput:
    return BadInput(
        f"wanted a study with {name} = {wanted}, {folder.uri} holds one with {name} = {stored}; "
        "keep both with --label NAME, or set the old one aside with --fresh"
    )
