"""How a study was done, in a few lines: data, model, training, arms that their names do not explain, and the search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from adalayers.comparisons import TUNED
from adalayers.results.study_file import splits_in_words
from reports import names
from reports.evidence.evidence import Evidence
from reports.reading.frames import numbers, records, searched
from reports.tables import arms as tables

SHARED = ("lr", "batch_size", "k", "epochs", "patience")
"""Settings that are told where all arms share them."""
EXPLAINED = 4
"""Most arms whose configuration is told; of more, all are in the details."""
METHOD, NOTES = 60, 48
"""Most words of the study's paragraphs on its method, and of its notes: what is longer is told whole in the details."""
UNSAID = ("", "published", "best", "changed", "floor", "frozen", "fine-tuned", "first-token", "twin")
"""Roles of arms whose name does not say what they are."""


def setup(evidence: Evidence) -> Mapping[str, Any]:
    """Return what the paragraph says, by the names that `setup.md.j2` has for it."""
    environment, request = evidence.environment, evidence.request
    dataset = environment.dataset
    explained = [
        arm
        for arm in request.arms
        if arm.role in UNSAID and arm.name != request.control and "=" not in arm.name and not arm.words
    ]
    dropped: dict[str, list[str]] = {}
    for arm in request.dropped_arms:
        why = "the command sets other values" if "--set fixed" in arm.reason else arm.reason
        dropped.setdefault(why or "no reason given", []).append(names.arm(arm.arm or "?", request))
    shared, base = _shared(evidence), request.fixed
    held = [factor for factor in request.factors if factor.name in request.set]
    return {
        "method": _within(request.method.values(), METHOD) or next(iter(request.method.values()), ""),
        "notes": _within(request.notes, NOTES),
        "backbone": environment.backbone,
        "examples": dataset.examples,
        "files": splits_in_words(dataset.roles, dataset.unused)
        if dataset.source.startswith("local:")
        else "",
        "tested": evidence.split == "test",
        "shared": {name: names.level(value) for name, value in shared.items() if name in SHARED},
        "of_some": [name for name in SHARED if len({name in arm.config for arm in request.arms}) > 1],
        "mix_lr": names.level(base["mix_lr"]) if base.get("mix_lr") else "",
        "mix_lr_varies": "mix_lr" not in shared,
        "never_stops": shared.get("patience", 0) >= shared.get("epochs", math.inf),
        "held": [names.setting(factor.name, request.set[factor.name], request) for factor in held],
        "ran": numbers(tables.confirmed(evidence.trials), "epochs").dropna(),
        "arms": [(names.arm(arm.name, request), names.otherwise(arm, request)) for arm in explained]
        if len(explained) <= EXPLAINED
        else [],
        "alike": len(evidence.alike(arm.name for arm in request.arms)),
        "search": _search(evidence),
        "rates": {
            names.arm(str(arm), request): {row["lr"]: row for row in records(own)}
            for arm, own in evidence.rates.groupby("arm", sort=False)
        },
        "tried": sorted(evidence.rates["lr"].dropna().unique()),
        "seed": request.seed,
        "dropped": dropped,
        "tuned": any(arm.name.endswith(TUNED) for arm in request.arms),
    }


def _within(paragraphs: Iterable[str], most: int) -> str:
    """Return those paragraphs, in order, that are at most so many words together."""
    told = ""
    for paragraph in paragraphs:
        if len(told.split()) + len(paragraph.split()) <= most:
            told = f"{told} {paragraph}".strip()
    return told


def _shared(evidence: Evidence) -> dict[str, Any]:
    """Return the settings that all arms share: their own value goes before the study's."""
    request = evidence.request
    values = {
        name: [arm.config.get(name, value) for arm in request.arms] or [value]
        for name, value in request.fixed.items()
    }
    shared = {name: own[0] for name, own in values.items() if all(value == own[0] for value in own)}
    # A searched learning rate is not fixed, but the arms that no search has tuned have one value all the same.
    return shared if request.rate is None else {"lr": request.rate, **shared}


def _search(evidence: Evidence) -> Mapping[str, Any] | None:
    """Return the study's search: trials by status, its best on validation, and that of the confirmed best arm."""
    request, tried = evidence.request, searched(evidence.trials)
    if tried.empty:
        return None
    done = numbers(tried[tried["status"] == "completed"], f"val/{request.metric}").dropna()
    best = next((arm for arm in evidence.request.arms if arm.role == "best"), None)
    row = evidence.row_of(best.name) if best else None
    return {
        "how": [name for name in (request.search, request.scheduler) if name],
        "statuses": tried["status"].value_counts().to_dict(),
        "best": float(done.max()) if len(done) and evidence.searches < 2 else None,
        "confirmed": float(row["val_mean"]) if row and row["val_n"] else None,
    }
