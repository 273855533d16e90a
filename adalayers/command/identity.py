"""What makes a study this one, and whether a results folder holds it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import NoneType
from typing import Any

from adalayers.command.flags import Flags
from adalayers.data.prepare import Prepared
from adalayers.errors import BadInput
from adalayers.results.files import STUDY, TRIALS, read_document
from adalayers.storage.folder import Folder, damaged
from adalayers.storage.to_json import to_json
from adalayers.tasks import metrics

WAYS_OUT = "keep what is there and begin another study with --label NAME, or set it aside with --fresh"


def identity(flags: Flags, prepared: Prepared) -> dict[str, Any]:
    """Return the flags that make a study, with names resolved: an alias and the full id are one study.

    A flag that was added later is None where it is not given: folders that were begun before it go on.
    """
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
        "text_column": request.text_column,
        "label_column": request.label_column,
        "set": flags.study.fixed,
        "metric": request.metric,
        **flags.own_identity,
    }


def opened(folder: Folder, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the study that the folder holds, or the start of a new one, with an id of its own.

    A name that only one of the two has counts as None in the other. Raises `BadInput` where the folder holds
    another study, naming the first difference, where it holds the trials of one that nothing tells of, and where what
    tells of it cannot be read.
    """
    if not folder.exists(STUDY):
        if folder.exists(TRIALS):
            raise BadInput(
                f"wanted {STUDY} next to {TRIALS} in {folder.uri}, it is missing, so that nothing says what the trials "
                f"there are of; restore it from a copy, {WAYS_OUT}"
            )
        return {"id": uuid.uuid4().hex}
    study = read_document(folder, advice=f"restore the file from a copy, {WAYS_OUT}")
    asked = study.get("request")
    flags = asked.get("flags", {}) if isinstance(asked, Mapping) else None
    if not isinstance(flags, Mapping):
        raise damaged(
            folder,
            STUDY,
            "request.flags is no object",
            lost="what the study was asked for is lost",
            advice=WAYS_OUT,
        )
    if why := _odd(study):
        raise damaged(folder, STUDY, why, lost="what happened in the study is in doubt", advice=WAYS_OUT)
    wanted = to_json(identity)
    for name in {**flags, **wanted}:
        if flags.get(name) != wanted.get(name):
            raise _another(folder, name, wanted.get(name), flags.get(name))
    return {"id": uuid.uuid4().hex, **study}


def _odd(study: Mapping[str, Any]) -> str:
    """Return what is not as studies write it, of what a run that goes on reads; "" where all of it is."""
    summary, effect = study.get("runs", {}), study["request"].get("smallest_effect")
    if not isinstance(summary, Mapping):
        return "runs is no object"
    runs = summary.get("history", [])
    if not isinstance(runs, list) or not all(isinstance(run, Mapping) for run in runs):
        return "runs.history is no list of objects"
    for run in runs:
        analyses, covered = run.get("analyses", []), run.get("covered")
        if not isinstance(analyses, list) or not isinstance(covered, (list, NoneType)):
            return "analyses of a run are no list"
        if covered and len(covered) != len(analyses):
            return "analyses of a run are not as many as what they covered"
        if not isinstance(run.get("confirmed"), int) or not isinstance(run.get("seconds"), (int, float)):
            return "confirmed or seconds of a run are no numbers"
        if not isinstance(run.get("started"), str) or not isinstance(run.get("seeds", {}), Mapping):
            return "a run does not say when it started, or with which seeds"
    if not isinstance(effect, (int, float, NoneType)):
        return "request.smallest_effect is no number"
    return ""


def smallest_effect(folder: Folder, before: Mapping[str, Any], wanted: float | None, metric: str) -> float:
    """Return the smallest difference of interest: as wanted, that of the study `before`, else the metric's own.

    Raises `BadInput` where `folder` holds a study with another one.
    """
    held = before.get("request", {}).get("smallest_effect")
    if held is None:
        return metrics.smallest_effect(metric) if wanted is None else wanted
    if wanted not in (None, held):
        raise _another(folder, "smallest_effect", wanted, held)
    return float(held)


def _another(folder: Folder, name: str, wanted: Any, held: Any) -> BadInput:
    return BadInput(
        f"wanted a study with {name} = {wanted}, {folder.uri} holds one with {name} = {held}; "
        "keep both with --label NAME, or set the old one aside with --fresh"
    )
