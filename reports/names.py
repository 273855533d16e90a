"""What arms, comparisons and verdicts are called in words: "layer 3" for `layer=3`, "α = 64 instead of 1"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from adalayers.comparisons import Change, Comparison, PlannedArm
from adalayers.results.study_file import RequestRecord, StudyFile
from reports import words
from reports.evidence.holm import BETTER, OPEN, SAME, TIE, WORSE
from reports.reading import factors
from reports.reading.factors import known, short

OF_MIX = {"learned": "learned mix", "uniform": "equal weights", "last": "last layer"}
"""`mix` of an arm's configuration -> what an arm is called that is named after it."""
NAMES_OF_MIX = {"mix": "learned", "learned": "learned", "uniform": "uniform", "last": "last"}
"""Word of an arm's name -> the `mix` that it has then."""
LAST = " (last)"
"""Behind the name of a layer that is the base model's last."""

LONGEST = 300
"""Characters beyond which what an arm or a level is called is cut."""
WORDS = {
    "search-best": "the search's best",
    "layer-mix": "layer mix",
    "mix_lr": "learning rate of p",
    "cutoff_when": "cutoff applied",
}
UNSAID = ("cutoff_when",)
"""Settings that tell a reader nothing."""
VERDICTS = {BETTER: BETTER, WORSE: WORSE, SAME: "no difference", OPEN: "open", TIE: "identical predictions"}
"""A verdict -> what tables and figures call it."""


def title(study: StudyFile) -> str:
    """Return the title of a study's page: "Layers taken away: minilm on conll2003"."""
    backbone, dataset = study.environment.backbone.name, study.environment.dataset.name
    where = f"{backbone} on {dataset}" if backbone and dataset else study.name
    label = f" ({study.request.label})" if study.request.label else ""
    return f"{study.request.title or study.study.replace('_', ' ')}: {where}{label}"


def arm(name: str, request: RequestRecord) -> str:
    """Return what an arm is called: its settings in symbols, and the mix in words."""
    own = next((planned for planned in request.arms if planned.name == name), PlannedArm(name))
    if own.words:
        return words.cut(own.words, LONGEST)
    fixed = {factor.name for factor in request.factors if _levels(factor.name, request) == 1}
    pieces: list[str] = []
    plain = False
    for token in name.replace("uniform mix", "uniform").split(" "):
        key, _, value = token.partition("=")
        if key.isidentifier() and value:
            if key not in fixed or " " not in name:
                piece = _layer(value, own) if key == "layer" else setting(key, factors.level(value), request)
                pieces, plain = [*pieces, piece], False
        elif plain:
            pieces[-1] += f" {_word(token, own)}"
        else:
            pieces, plain = [*pieces, _word(token, own)], True
    return words.cut(", ".join(pieces), LONGEST)


def _levels(factor: str, request: RequestRecord) -> int:
    """Return how many levels the cells of the core have of a factor."""
    return len({str(arm.levels.get(factor)) for arm in request.arms if arm.role == "core"})


def _layer(value: str, own: PlannedArm) -> str:
    return f"layer {value}" + (LAST if own.config.get("mix") == "last" else "")


def _word(token: str, own: PlannedArm) -> str:
    mix = NAMES_OF_MIX.get(token, "")
    # Equal weights are equal in every fusion.
    is_mix = (mix == "uniform" or own.fusion in ("", "layer-mix")) and own.config.get("mix", "learned") == mix
    if mix and is_mix and "layer" not in own.name:
        return OF_MIX[mix]
    return WORDS.get(token, re.sub(r"(?<=[a-z])-(?=mix$)", " ", token))


def symbol(hyperparameter: str, request: RequestRecord) -> str:
    """Return what the head of a table calls a hyperparameter: a factor's label, else its name."""
    return short(known(hyperparameter, request.factors))


def with_meaning(hyperparameter: str, request: RequestRecord) -> str:
    """Return what a figure calls a hyperparameter: a factor with its meaning, else what it is in words."""
    factor = known(hyperparameter, request.factors)
    return factors.name(factor) if factor.label else words.short(f"config/{hyperparameter}")


def setting(factor: str, value: Any, request: RequestRecord) -> str:
    """Return a level with its factor in symbols: "α = 64", "2,000 training examples"."""
    if factor == "mix" and value in OF_MIX:
        return OF_MIX[value]
    if known(factor, request.factors).condition and isinstance(value, int | float):
        return f"{value:,.0f} {symbol(factor, request)}"
    return f"{WORDS.get(factor, symbol(factor, request))} = {level(value)}"


def level(value: Any) -> str:
    """Return a level as text: "64", "yes"."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}"
    return "all layers" if value == "layers" else words.cut(str(value).replace("-", " "), LONGEST)


def otherwise(arm: PlannedArm, request: RequestRecord) -> str:
    """Return what an arm has otherwise than the control, in symbols; "" where it has nothing."""
    control = next((other for other in request.arms if other.name == request.control), arm)
    differs = {
        key: value
        for key, value in arm.config.items()
        if control.config.get(key) != value and key not in UNSAID
    }
    if arm.fusion != control.fusion:
        differs = {"fusion": arm.fusion, **differs}
    rounded = {key: float(f"{own:.3g}") if isinstance(own, float) else own for key, own in differs.items()}
    return ", ".join(setting(key, value, request) for key, value in rounded.items())


def sides(claim: Comparison, request: RequestRecord) -> tuple[str, str] | None:
    """Return the arm and its control where two arms are compared, also by the one level in which they differ.

    Not of a grid: there levels are compared, whatever cells there are of them.
    """
    crossed = sum(_levels(factor.name, request) > 1 for factor in request.factors) > 1
    if len(claim.weights) != 2 or claim.kind not in ("arm", "factor") or (claim.changes and crossed):
        return None
    control, arm = sorted(claim.weights, key=claim.weights.__getitem__)
    return arm, control


def compared(claim: Comparison, request: RequestRecord) -> str:
    """Return what a comparison is called: "α = 64 instead of 1, at λ = 0.01"; of an arm and the control, the arm."""
    own, control = sides(claim, request) or (claim.arm, claim.control)
    if own:
        return arm(own, request) + (f" against {arm(control, request)}" if control != request.control else "")
    condition = f", at {setting(claim.at.factor, claim.at.level, request)}" if claim.at else ""
    if len(claim.changes) == 1:
        return f"{alternatives(claim.changes, request)}{condition}"
    changed = ", ".join(setting(change.factor, change.level, request) for change in claim.changes)
    return f"{changed} together"


def alternatives(changes: Sequence[Change], request: RequestRecord) -> str:
    """Return what levels of a factor with one reference are called: "α = 8 or 64 instead of 1"."""
    first, *others = changes
    said = [setting(first.factor, first.level, request), *(_of(first.factor, one.level) for one in others)]
    listed = f"{', '.join(said[:-1])} or {said[-1]}" if others else said[0]
    return f"{listed} instead of {_of(first.factor, first.reference)}"


def _of(factor: str, value: Any) -> str:
    return OF_MIX.get(value, str(value)) if factor == "mix" else level(value)
