"""What arms and comparisons are called in words: "layer 3" for `layer=3`, "α = 64 instead of 1"."""

from __future__ import annotations

import re
from typing import Any

from adalayers.comparisons import Comparison, PlannedArm
from reports.reading.load import Plan

OF_MIX = {"learned": "learned mix", "uniform": "equal weights", "last": "last layer"}
"""`mix` of an arm's configuration -> what an arm is called that is named after it."""
NAMES_OF_MIX = {"mix": "learned", "learned": "learned", "uniform": "uniform", "last": "last"}
"""Word of an arm's name -> the `mix` that it has then."""
LONGEST = 300
"""Characters beyond which what an arm or a level is called is cut."""
WORDS = {"search-best": "the search's best", "layer-mix": "layer mix", "mix_lr": "rate of the mix"}


def arm(name: str, plan: Plan) -> str:
    """Return what an arm is called: its settings in symbols, and the mix in words."""
    known = next((planned for planned in plan.arms if planned.name == name), PlannedArm(name))
    fixed = {factor.name for factor in plan.factors if _levels(factor.name, plan) == 1}
    pieces: list[str] = []
    plain = False
    for token in name.split(" "):
        key, equals, value = token.partition("=")
        if equals and key.isidentifier() and value:
            if key in fixed and len(name.split(" ")) > 1:
                continue
            piece = _layer(value, known) if key == "layer" else setting(key, _number(value), plan)
            pieces, plain = [*pieces, piece], False
        elif plain:
            pieces[-1] += f" {_word(token, known)}"
        else:
            pieces, plain = [*pieces, _word(token, known)], True
    return _cut(", ".join(pieces))


def _cut(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def _levels(factor: str, plan: Plan) -> int:
    """Return how many levels the cells of the core have of a factor."""
    return len({str(arm.levels.get(factor)) for arm in plan.arms if arm.role == "core"})


def _layer(value: str, known: PlannedArm) -> str:
    return f"layer {value}" + (" (last)" if known.config.get("mix") == "last" else "")


def _word(token: str, known: PlannedArm) -> str:
    mix = NAMES_OF_MIX.get(token)
    is_mix = (
        mix is not None and known.fusion in ("", "layer-mix") and known.config.get("mix", "learned") == mix
    )
    if is_mix and mix is not None and "layer" not in known.name:
        return OF_MIX[mix]
    return WORDS.get(token, re.sub(r"(?<=[a-z])-(?=mix$)", " ", token))


def _number(value: str) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def setting(factor: str, value: Any, plan: Plan) -> str:
    """Return a level with its factor in symbols: "α = 64", "2,000 training examples"."""
    known = next((item for item in plan.factors if item.name == factor), None)
    if known is not None and known.condition and isinstance(value, int | float):
        return f"{value:,.0f} {plan.symbol(factor)}"
    return f"{WORDS.get(factor, plan.symbol(factor))} = {level(value)}"


def level(value: Any) -> str:
    """Return a level as text: "64", "yes"."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else _cut(str(value))


def where(claim: Comparison, plan: Plan) -> str:
    """Return at which level of another factor a comparison is: "λ = 0.01"; "" where it is at none."""
    return setting(claim.at.factor, claim.at.level, plan) if claim.at else ""


def compared(claim: Comparison, plan: Plan) -> str:
    """Return what a comparison is called: "α = 64 instead of 1, at λ = 0.01"; of an arm and the control, the arm."""
    if not claim.changes:
        named = arm(claim.arm, plan)
        return named if claim.control == plan.control else f"{named} against {arm(claim.control, plan)}"
    changed = ", ".join(setting(change.factor, change.level, plan) for change in claim.changes)
    if claim.kind == "interaction":
        return f"{changed} together"
    condition = f", at {where(claim, plan)}" if claim.at else ""
    return f"{changed} instead of {level(claim.changes[0].reference)}{condition}"
