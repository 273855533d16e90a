"""What makes a study this one, and whether a results folder holds it."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Collection, Mapping
from typing import Any

from adalayers.command.flags import Flags
from adalayers.config import TrialConfig
from adalayers.data.prepare import Prepared
from adalayers.errors import BadInput
from adalayers.request import DataRequest, StudyRequest
from adalayers.results.files import STUDY, TRIALS, read_document, read_texts
from adalayers.results.row_identity import identity_of
from adalayers.results.study_file import StudyFile, parse
from adalayers.storage.folder import Folder, damaged
from adalayers.storage.to_json import to_json
from adalayers.study import trial_id
from adalayers.tasks import metrics

NOTHING: tuple[Any, ...] = (None, [], {}, "")
WAYS_OUT = "keep what is there and begin another study with --label NAME, or set it aside with --fresh"


def identity(flags: Flags, prepared: Prepared) -> dict[str, Any]:
    """Return the flags that make a study, with names resolved: an alias and the full id are one study."""
    provenance, request = prepared.provenance, prepared.request
    backbone, dataset = provenance.backbone, provenance.dataset
    return {
        # Not the revision: a mirror does not know it, and the fingerprint says all that matters of it.
        "backbone id": backbone.id,
        "backbone fingerprint": backbone.fingerprint,
        "backbone dtype": None if backbone.dtype == "float32" else backbone.dtype,
        "dataset source": dataset.source,
        "dataset fingerprint": dataset.fingerprint,
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

    A name that the file lacks stands for what was so before there was one: `absent` of its flag, else the default.

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
    needed = [path for path in missing if path.startswith(("id", "runs", "request.smallest_effect"))]
    if needed:
        why, lost = f"{needed[0]} is not what a study writes", "what happened in the study is in doubt"
        raise damaged(folder, STUDY, why, lost=lost, advice=WAYS_OUT)
    if study.study not in ("", folder.parent().name):
        raise _another(folder, "study", folder.parent().name, study.study)
    stored, wanted = study.request.flags, to_json(identity)
    for name in {**stored, **wanted}:
        there, now = stored[name] if name in stored else _before(name), wanted.get(name)
        if there != now and not (there in NOTHING and now in NOTHING):
            raise _another(folder, name, now, there)
    return study


def check_rows(
    folder: Folder, before: StudyFile, prepared: Prepared, arms: Mapping[str, Collection[TrialConfig]]
) -> None:
    """Compare what the rows of a study are of with what is read and asked for now: their ids follow from it.

    Args:
        folder: The study's, without `trials.csv` before its first run.
        before: What `study.json` says of it.
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
    for own_id, row in read_texts(folder, advice=f"restore the file from a copy, {WAYS_OUT}").items():
        wanted = f"wanted rows of what is read now in {folder.uri}, {own_id} in {TRIALS} is of"
        try:
            here = identity_of(row, shape, provenance)
        except (BadInput, ValueError, KeyError) as error:
            here = str(error)
        if here != own_id:
            other = _differing(before, prepared) or f"something else, or was edited ({here})"
            raise BadInput(f"{wanted} {other}; {WAYS_OUT}")
        configs = arms.get(row["arm"], ()) if row["stage"] == "confirm" else ()
        ids = {trial_id(config, shape, int(row["seed"]), provenance) for config in configs}
        if ids and own_id not in ids:
            raise BadInput(
                f"{wanted} arm {row['arm']}, seed {row['seed']}, with other settings than this arm has now; {WAYS_OUT}"
            )


def _differing(before: StudyFile, prepared: Prepared) -> str:
    """Return what a study had that is another now, in words; "" where `study.json` knows of nothing."""
    dataset = before.environment.dataset
    here = {name: len(split) for name, split in prepared.task.splits.items()}
    if dataset.labels and dataset.labels != prepared.task.label_names:
        return f"the labels {', '.join(dataset.labels)}, now they are {', '.join(prepared.task.label_names)}"
    sizes = [
        f"{n:,} examples of {name}, now {here.get(name, 0):,}"
        for name, n in dataset.examples.items()
        if n != here.get(name, 0)
    ]
    return ", ".join(sizes)


def _before(name: str) -> Any:
    """Return what a study without a name had in its place."""
    records = (DataRequest, StudyRequest, Flags)
    known = (each for record in records for each in dataclasses.fields(record) if each.name == name)
    flag = next(known, None)
    return None if flag is None else to_json(flag.metadata.get("absent", flag.default))


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
