"""What makes a study this one, and whether a results folder holds it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from adalayers.command.flags import Flags
from adalayers.data.prepare import Prepared
from adalayers.errors import BadInput
from adalayers.results.files import STUDY, TRIALS, read_document
from adalayers.results.study_file import StudyFile, parse
from adalayers.storage.folder import Folder, damaged
from adalayers.storage.to_json import to_json
from adalayers.tasks import metrics

WAYS_OUT = "keep what is there and begin another study with --label NAME, or set it aside with --fresh"


def identity(flags: Flags, prepared: Prepared) -> dict[str, Any]:
    """Return the flags that make a study, with names resolved: an alias and the full id are one study."""
    about, request = prepared.about(), prepared.request
    return {
        # Not the revision: a mirror does not know it, and the fingerprint says all that matters of it.
        **{f"backbone {key}": about["backbone"][key] for key in ("id", "fingerprint")},
        "backbone dtype": about["backbone"].get("dtype"),
        **{f"dataset {key}": about["dataset"][key] for key in ("source", "fingerprint")},
        "label": flags.label,
        "search": flags.study.search,
        "scheduler": flags.study.scheduler,
        "seed": flags.study.seed,
        "epochs": flags.study.epochs,
        "max_length": request.max_length,
        "precision": request.precision,
        "smoke": flags.study.smoke,
        "train_examples": request.train_examples,
        "eval_examples": request.eval_examples,
        "test_examples": request.test_examples,
        "text_column": request.text_column,
        "label_column": request.label_column,
        "splits": request.splits or None,
        "set": flags.study.fixed,
        **({"rates": flags.study.rates} if flags.study.rates else {}),
        "metric": request.metric,
        **{name: value for name, value in flags.own_identity.items() if value},
    }


def new_study() -> StudyFile:
    """Return the start of a study, with an id of its own."""
    return StudyFile(id=uuid.uuid4().hex)


def opened(folder: Folder, identity: Mapping[str, Any]) -> StudyFile:
    """Return the study that the folder holds, or the start of a new one.

    A name that only one of the two has counts as None in the other.

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
    study, missing = parse(read_document(folder, advice=f"restore the file from a copy, {WAYS_OUT}"))
    if {"request", "request.flags"} & {*missing}:
        lost = "what the study was asked for is lost"
        raise damaged(folder, STUDY, "request.flags is no object", lost=lost, advice=WAYS_OUT)
    uncounted = [run for run in study.runs.history if len(run.covered) != len(run.analyses)]
    needed = [path for path in missing if path.startswith(("id", "runs", "request.smallest_effect"))]
    if needed or uncounted:
        why = f"{needed[0]} is not what a study writes" if needed else "analyses are not as many as covered"
        lost = "what happened in the study is in doubt"
        raise damaged(folder, STUDY, why, lost=lost, advice=WAYS_OUT)
    stored, wanted = study.request.flags, to_json(identity)
    for name in {**stored, **wanted}:
        if stored.get(name) != wanted.get(name):
            raise _another(folder, name, wanted.get(name), stored.get(name))
    return study


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
