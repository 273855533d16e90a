"""How the numbers came about, and what that keeps them from saying."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.reading.factors import short
from reports.reading.load import as_text
from reports.words.labels import SPLITS
from reports.words.text import code, count, escape, listed, prose, several


@dataclass(frozen=True)
class Info:
    """method: what the study says of its model and factors; fast: labels of factors that set the speed of training.

    fixed: "name=value" of factors that the command fixed; dropped: arm -> why it was left out
    tuned: whether each arm is confirmed as a search of its own found it
    """

    method: dict[str, str]
    tools: tuple[str, ...]
    fast: tuple[str, ...]
    seeds: int
    split: str
    fixed: tuple[str, ...]
    dropped: tuple[tuple[str, str], ...]
    tuned: bool


def info(evidence: Evidence) -> Info:
    asked = evidence.loaded.study.request
    return Info(
        method=dict(asked.method),
        tools=tuple(tool for tool in (asked.search, asked.scheduler) if tool),
        fast=tuple(short(factor) for factor in evidence.plan.factors if factor.changes_speed),
        seeds=asked.seeds,
        split=evidence.split,
        fixed=tuple(f"{name}={as_text(asked.set[name])}" for name in asked.scientific if name in asked.set),
        dropped=tuple((arm.arm or "?", arm.reason or "no reason given") for arm in asked.dropped_arms),
        tuned="methods" in asked.parts and evidence.searches > 1,
    )


def section(info: Info) -> list[str]:
    told = [f"**{escape(title)}.** {prose(text)}" for title, text in info.method.items()]
    paragraphs = [
        *told[:1],
        _search(info),
        "**The confirmation** trains every arm below in full, without pruning, all with the same "
        f"{count(info.seeds, 'seed') if info.seeds else 'seeds'}. Only this stage supports claims. "
        + (
            "Each arm carries what its own search found best."
            if info.tuned
            else "Arms use the study's own setting of every nuisance hyperparameter; only the search's best "
            "carries what the search found."
        ),
        *told[1:],
        f"**Splits.** Models are chosen on validation. Arms are compared on {SPLITS[info.split]} scores"
        + (
            "."
            if info.split == "test"
            else ", for lack of test scores: choosing and comparing share a split."
        ),
    ]
    if info.fixed:
        paragraphs.append(
            f"**Fixed by the command**, though the study is about it: {several(map(code, info.fixed))}. Nothing is "
            "said here about other values."
        )
    if info.dropped:
        paragraphs.append("**Arms left out** before the start:")
        paragraphs.append(listed(f"{code(arm)}: {escape(reason)}" for arm, reason in info.dropped))
    return paragraphs


def _search(info: Info) -> str:
    tools = f" ({several(map(code, info.tools))})" if info.tools else ""
    names = several(info.fast)
    judged = (
        f", and {names} {'set' if len(info.fast) > 1 else 'sets'} how fast a model trains, so **the search alone "
        f"cannot judge {names}**"
        if info.fast
        else ""
    )
    return (
        f"**The search**{tools} draws configurations and stops poor ones early, on validation scores. Such pruning "
        f"favours fast starters{judged}."
    )


PART = Part("How it was done", info, section)
