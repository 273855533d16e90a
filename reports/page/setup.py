"""How a study was done, in a few lines: data, model, training, arms that their names do not explain, and the search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from adalayers.comparisons import TUNED, PlannedArm
from adalayers.results.study_file import BackboneRecord, DatasetRecord, splits_in_words
from reports import names
from reports.evidence.evidence import Evidence
from reports.reading.frames import numbers, records
from reports.tables import arms as tables

SHARED = ("lr", "batch_size", "k", "epochs", "patience")
"""Settings that are told where all arms share them."""
EXPLAINED = 4
"""Most arms whose configuration is told; of more, all are in the details."""
METHOD, NOTES = 70, 40
"""Most words of the study's paragraphs on its method, and of its notes: what is longer is told whole in the details."""
BY_NAME = ("uniform", "last", "single", "untrained", "core", "control", "mix", "component", "tuned")
"""Roles of arms whose name, or the study's own words, say what they are."""


@dataclass(frozen=True)
class Search:
    """A search of the study: how many trials completed and were stopped, and its best on validation, then confirmed."""

    how: tuple[str, ...]
    completed: int
    stopped: int
    best: float | None
    confirmed: float | None
    tested: float | None


@dataclass(frozen=True)
class Setup:
    """What the paragraph says.

    Attributes:
        method: The study's own words on its model; notes: on its arms. Neither is ever cut.
        files: Of the user's own data, the files of each split and those that are not used; "" for other data.
        shared: Settings that all arms share, with their values.
        ran: Fewest and most epochs that were run, None where nothing says.
        arms: Arm in words -> what it has otherwise than the control.
        alike: Arms that predict the same as an earlier one on every seed.
        rates: Arm -> the rates that it tried, score and whether it was kept; tried: all rates.
        dropped: (arms, reason).
        tested: Whether arms are compared on test.
    """

    method: str
    notes: str
    backbone: BackboneRecord
    dataset: DatasetRecord
    files: str
    tested: bool
    shared: Mapping[str, str]
    ran: tuple[int, int] | None
    arms: tuple[tuple[str, str], ...]
    alike: tuple[str, ...]
    search: Search | None
    rates: Mapping[str, Mapping[float, tuple[float | None, str, bool]]]
    tried: tuple[float, ...]
    seed: int
    dropped: tuple[tuple[str, str], ...]
    tuned: bool


def setup(evidence: Evidence) -> Setup:
    study, plan = evidence.loaded.study, evidence.plan
    request, dataset = study.request, study.environment.dataset
    ran = numbers(tables.confirmed(evidence.trials), "epochs").dropna()
    explained = [
        arm
        for arm in plan.arms
        if arm.role not in BY_NAME and arm.name != plan.control and "=" not in arm.name
        if not any(f"`{arm.name}`" in note for note in request.notes)
    ]
    rates = {
        names.arm(str(arm), plan): {
            row["lr"]: (row["score"], str(row["status"]), bool(row["kept"])) for row in records(own)
        }
        for arm, own in evidence.rates.groupby("arm", sort=False)
    }
    dropped: dict[str, list[str]] = {}
    for arm in request.dropped_arms:
        dropped.setdefault(arm.reason or "no reason given", []).append(names.arm(arm.arm or "?", plan))
    return Setup(
        method=_within(request.method.values(), METHOD) or next(iter(request.method.values()), ""),
        notes=_within(request.notes, NOTES),
        backbone=study.environment.backbone,
        dataset=dataset,
        files=splits_in_words(dataset.roles, dataset.unused) if dataset.source.startswith("local:") else "",
        tested=evidence.split == "test",
        shared={name: names.level(value) for name, value in _shared(evidence).items() if name in SHARED},
        ran=None if ran.empty else (int(ran.min()), int(ran.max())),
        arms=tuple((names.arm(arm.name, plan), _otherwise(arm, evidence)) for arm in explained)
        if len(explained) <= EXPLAINED
        else (),
        alike=tuple(names.arm(arm, plan) for arm in evidence.alike(arm.name for arm in plan.arms)),
        search=_search(evidence),
        rates=rates,
        tried=tuple(sorted(evidence.rates["lr"].dropna().unique())),
        seed=plan.seed,
        dropped=tuple(
            (", ".join(arms) if len(arms) < 4 else f"{len(arms)} arms", why) for why, arms in dropped.items()
        ),
        tuned=any(arm.name.endswith(TUNED) for arm in plan.arms),
    )


def _within(paragraphs: Iterable[str], most: int) -> str:
    """Return those paragraphs, in order, that are at most so many words together."""
    told = ""
    for paragraph in paragraphs:
        if len(told.split()) + len(paragraph.split()) <= most:
            told = f"{told} {paragraph}".strip()
    return told


def _shared(evidence: Evidence) -> dict[str, Any]:
    """Return the settings that all arms share: their own value goes before the study's."""
    fixed, plan = evidence.loaded.study.request.fixed, evidence.plan
    values = {
        name: [arm.config.get(name, value) for arm in plan.arms] or [value] for name, value in fixed.items()
    }
    shared = {name: own[0] for name, own in values.items() if all(value == own[0] for value in own)}
    # A searched learning rate is not fixed, but the arms that no search has tuned have one value all the same.
    return shared if plan.rate is None else {"lr": plan.rate, **shared}


def _otherwise(arm: PlannedArm, evidence: Evidence) -> str:
    """Return what an arm has otherwise than the control."""
    plan = evidence.plan
    control = next((other for other in plan.arms if other.name == plan.control), arm)
    differs = {key: value for key, value in arm.config.items() if control.config.get(key) != value}
    if arm.fusion != control.fusion:
        differs = {"fusion": arm.fusion, **differs}
    told = ", ".join(
        names.setting(key, float(f"{value:.3g}") if isinstance(value, float) else value, plan)
        for key, value in differs.items()
    )
    return told or "as the control"


def _search(evidence: Evidence) -> Search | None:
    """Return the study's search; None where it made none."""
    request, rows = evidence.loaded.study.request, evidence.search
    if rows.empty:
        return None
    done: pd.Series = rows.loc[rows["status"] == "completed", "score"].dropna()
    best = next((arm for arm in evidence.plan.arms if arm.role == "best"), None)
    row = evidence.row_of(best.name) if best else None
    return Search(
        tuple(filter(None, (request.search, request.scheduler))),
        int((rows["status"] == "completed").sum()),
        int((rows["status"] == "stopped").sum()),
        float(done.max()) if len(done) and evidence.searches < 2 else None,
        float(row["val_mean"]) if row and row["val_n"] else None,
        float(row["mean"]) if row and row["n"] and evidence.split == "test" else None,
    )
