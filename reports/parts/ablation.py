"""What each component contributes: the differences to the whole method, largest loss first; drawn by `quality`."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.claims import BETTER, Claim
from reports.evidence.evidence import Evidence
from reports.parts.cells import difference
from reports.parts.part import Part
from reports.words.labels import AxisLabel
from reports.words.text import NONE, code, folded, several, table


@dataclass(frozen=True)
class Info:
    """kept, tuned: component -> its claim against the whole, with hyperparameters kept, and where both were tuned."""

    kept: dict[str, Claim]
    tuned: dict[str, Claim]
    score: AxisLabel
    control: str


def info(evidence: Evidence) -> Info | None:
    claims = {claim.arm: claim for claim in evidence.claims if claim.difference is not None}
    arms = [arm for arm in evidence.plan.arms if arm.name in claims]
    kept = {arm.name: claims[arm.name] for arm in arms if arm.role == "component"}
    tuned = {name: claims[arm.name] for arm in arms for name in arm.tunes if arm.role == "tuned"}
    if not kept:
        return None
    ordered = dict(sorted(kept.items(), key=lambda item: item[1].difference or 0.0))
    return Info(ordered, tuned, evidence.scored, evidence.plan.control)


def section(info: Info) -> list[str]:
    scored = info.score.name
    heads = ["changed", f"{scored}, difference to {info.control} [corrected interval]", "verdict"]
    heads += ["both tuned again: difference", "verdict"] if info.tuned else []
    rows = []
    for name, claim in info.kept.items():
        row = [code(name), difference(claim), claim.verdict]
        if info.tuned:
            again = info.tuned.get(name)
            row += [difference(again), again.verdict] if again else [NONE, NONE]
        rows.append(row)
    tuned = (
        " *Tuned* compares the best of a search for each component with the best of an equal search for the whole."
        if info.tuned
        else " Hyperparameters are kept: `--trials N` also tunes each component again."
    )
    return [
        f"One component of {code(info.control)} is changed at a time; below 0 the change costs quality.{tuned}",
        folded("Every component", len(rows), table(heads, rows)),
    ]


def answer(info: Info) -> list[str]:
    """Name the largest loss and the largest gain."""
    lossy = [
        f"{code(name)} {difference(claim)}"
        for name, claim in list(info.kept.items())[:3]
        if (claim.difference or 0) < 0
    ]
    helps = [
        f"{code(name)} {difference(claim)}" for name, claim in info.kept.items() if claim.verdict == BETTER
    ]
    scored = info.score.name
    parts = [f"most is lost by {several(lossy)}" if lossy else "no change costs anything"]
    parts += [f"the method is better with {several(helps)}"] if helps else []
    return [f"**Components** (change of {scored}): {'; '.join(parts)}."]


PART = Part("What each component contributes", info, section, answer=answer)
