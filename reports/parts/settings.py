"""The settings compared, defined: what scores are, what the control is, the factors' levels, the arms outside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from adalayers.comparisons import TUNED, PlannedArm
from adalayers.results.study_file import EnvironmentRecord, RequestRecord
from reports.evidence.evidence import Evidence
from reports.parts.part import DETAILS, Part
from reports.reading.factors import level_name, levels, name
from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.tables import arms as tables
from reports.words.labels import SPLITS, short
from reports.words.text import code, escape, prose, several, table

MEANING = {
    "uniform": "all layers alike, nothing learned",
    "last": "the last layer alone",
    "best": "the best configuration of the search",
}
ARMS = 10
"""Most arms outside the core that are defined on this page."""
NOTE = 400
"""Most characters of a note of the study on this page."""


@dataclass(frozen=True)
class Info:
    """What the section says.

    Attributes:
        method: The study's own paragraphs on its model and factors.
        backbone: The sizes of backbone and data, a sentence; "" where they are not known.
        identical: Arm -> an earlier one, those of the core first, with the same predictions on every seed.
        cells: Arms in the core.
        shared: Settings that all arms share, with their values.
        seeds: The most of an arm.
        rate: Where the learning rate that arms share came from; "" where each tried several.
        steps: As of `tables.mix_steps`.
        trained: Epochs that the confirmed trials ran, and at which they were best, a sentence; "" before any has.
    """

    plan: Plan
    split: str
    method: tuple[str, ...]
    backbone: str
    identical: dict[str, str]
    notes: tuple[str, ...]
    cells: int
    shared: dict[str, Any]
    seeds: int
    rate: str
    trained: str
    steps: dict[str, tuple[float, float | None]]


def info(evidence: Evidence) -> Info:
    request = evidence.loaded.study.request
    arms = sorted(evidence.plan.arms, key=lambda arm: arm.role != "core")
    return Info(
        plan=evidence.plan,
        split=evidence.split_name,
        method=tuple(request.method.values()),
        backbone=_backbone(evidence.loaded.study.environment),
        identical=evidence.alike(arm.name for arm in arms),
        notes=request.notes,
        cells=len(evidence.core),
        shared=_shared(evidence.plan, request.fixed),
        seeds=request.seeds,
        rate="" if len(evidence.rates) else _source(request),
        trained=_trained(tables.confirmed(evidence.trials)),
        steps=evidence.mix_steps,
    )


def section(info: Info) -> list[str]:
    plan = info.plan
    rows = [
        [
            escape(name(factor)),
            several([level_name(value) for value in values], 12) + _steps(plan, factor.name, info.steps),
        ]
        for factor in plan.factors
        if (values := _levels(plan, factor.name))
    ]
    outside = [arm for arm in plan.arms if arm.role != "core" and arm.name != plan.control]
    rows += [
        [code(arm.name), meaning(arm, plan) + _step(arm, info.steps) + _same_as(info.identical.get(arm.name))]
        for arm in outside[: ARMS if len(outside) > ARMS + 1 else None]
    ]
    if len(outside) > ARMS + 1:
        rows.append([f"{len(outside) - ARMS} more arms", f"`{DETAILS}`"])
    crossed = ""
    if len(plan.factors) > 1 and info.cells > 1:
        named = several([escape(name(factor).split(",")[0]) for factor in plan.factors])
        every = info.cells == math.prod(len(_levels(plan, factor.name)) for factor in plan.factors)
        crossed = f" The core {f'crosses all levels of {named}' if every else f'varies {named}'}: {info.cells} arms."
    heads = ["factor, or arm outside the core", "levels, or what it is"]
    if not plan.factors:
        heads = ["arm", "what it is, as far as it differs from the control"]
    settings = ", ".join(
        f"{key} {value}{info.rate if key == 'lr' else ''}"
        for key, value in info.shared.items()
        if key in ("lr", "k", "epochs", "patience", "batch_size")
    )
    return [
        prose(" ".join(info.method)) if len(info.method) < 3 else prose(info.method[0]),
        f"{info.backbone}Scores are {escape(short(plan.metric))} on {info.split}, at the epoch best on validation. "
        f"Arms share seeds, {info.seeds} at most. Control: "
        f"{code(plan.control)}.{crossed}{_tuned(plan)}"
        f"{f' All else alike: {escape(settings)}.' if settings else ''}{info.trained}",
        table(heads, rows) if rows else "",
        *(prose(note, NOTE) for note in info.notes),
    ]


def _steps(plan: Plan, factor: str, steps: Mapping[str, tuple[float, float | None]]) -> str:
    """Return what a level is multiplied with to be a step of the learned mix, where that is one number."""
    rates = set()
    for arm in plan.arms:
        if arm.role == "core":
            level, (step, _) = arm.levels.get(factor), steps.get(arm.name, (0.0, None))
            rates.add(f"{step / level:.6g}" if isinstance(level, int | float) and level else "0")
    return f"; a step is that × mix_lr {rate}" if len(rates) == 1 and (rate := rates.pop()) != "0" else ""


def _step(arm: PlannedArm, steps: Mapping[str, tuple[float, float | None]]) -> str:
    """Return the step of an arm's learned mix, and how far it goes in the steps that were run."""
    step, travel = steps.get(arm.name, (None, None))
    if step is None:
        return ""
    return f"; a step {step:.3g}{'' if travel is None else f', all run {travel:.3g}'}"


def _tuned(plan: Plan) -> str:
    """Say what arms are that stand next to one that was not tuned."""
    tuned = any(arm.name.endswith(TUNED) for arm in plan.arms)
    return " Each `..., tuned` is the best of a search for that arm, all of one size." if tuned else ""


def _source(request: RequestRecord) -> str:
    """Say by what arms were given the learning rate that they share, where nothing tuned it."""
    return f" ({'as set' if 'lr' in request.set else 'the default'}, tuned for none)"


def _trained(trials: pd.DataFrame) -> str:
    ran, best = (numbers(trials, column).dropna() for column in ("epochs", "best_epoch"))
    if ran.empty or best.empty:
        return ""
    return f" Epochs run: {_range(ran)}; best epoch: {_range(best)}."


def _range(values: pd.Series) -> str:
    low, high = f"{values.min():.0f}", f"{values.max():.0f}"
    return low if low == high else f"{low} to {high} (median {values.median():.0f})"


def _shared(plan: Plan, fixed: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that all arms share: their own value goes before the study's."""
    values = {
        name: [arm.config.get(name, value) for arm in plan.arms] or [value] for name, value in fixed.items()
    }
    shared = {name: own[0] for name, own in values.items() if all(value == own[0] for value in own)}
    # A searched learning rate is not fixed, but the arms that no search has tuned have one value all the same.
    rates = {arm.config.get("lr") for arm in plan.arms if arm.role != "best"}
    return {"lr": rates.pop(), **shared} if len(rates) == 1 and None not in rates else shared


def _backbone(environment: EnvironmentRecord) -> str:
    """Return the sizes of backbone and data, as far as they are known: a sentence."""
    backbone, examples = environment.backbone, environment.dataset.examples
    if not backbone.layers or not examples:
        return ""
    sizes = several([f"{n:,} {SPLITS.get(split, split)}" for split, n in examples.items()])
    objective = f" (pretrained for {escape(backbone.objective)})" if backbone.objective else ""
    return (
        f"{escape(backbone.name)}{objective} has {backbone.layers} layers of width {backbone.width}; "
        f"examples: {sizes}. "
    )


def _same_as(arm: str | None) -> str:
    return f"; predicts exactly what {code(arm)} does" if arm else ""


def _levels(plan: Plan, factor: str) -> list[Any]:
    return levels(arm.levels.get(factor) for arm in plan.arms if arm.role == "core")


def meaning(arm: PlannedArm, plan: Plan) -> str:
    """Return what an arm is, as far as it differs from the control."""
    told = MEANING.get(arm.role, "")
    control = next((candidate for candidate in plan.arms if candidate.name == plan.control), arm)
    differs = {key: value for key, value in arm.config.items() if control.config.get(key) != value}
    if arm.fusion != control.fusion:
        differs = {"fusion": arm.fusion, **differs}
    values = ", ".join(
        f"{key}={value:.3g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in differs.items()
    )
    aliases = f"; also {several([code(alias) for alias in arm.aliases])}" if arm.aliases else ""
    return f"{told}{': ' if told and values else ''}{code(values)}{aliases}"


PART = Part("The settings compared", info, section)
