"""Every planned comparison of the score with its intervals, and what each interval covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.resampling import RESAMPLES
from reports.parts.cells import difference, named
from reports.parts.part import Part
from reports.reading.load import Plan
from reports.words.labels import SPLITS
from reports.words.text import NONE, folded, interval, several, table

COMPARISON_TITLES = {
    "factor": "Levels of a factor, averaged over what else their arms differ in",
    "arm": "Arms outside the core, against the control",
    "simple": "Levels of a factor at one level of another",
    "interaction": "Interactions: how far two factors together differ from the sum of both",
}


@dataclass(frozen=True)
class Info:
    """without_examples: why claims lack the interval over examples."""

    claims: tuple[Claim, ...]
    plan: Plan
    split: str
    without_examples: tuple[str, ...]


def info(evidence: Evidence) -> Info | None:
    claims = tuple(evidence.claims)
    return Info(claims, evidence.plan, evidence.split, tuple(evidence.without_examples)) if claims else None


def section(info: Info) -> list[str]:
    claims = info.claims
    split = SPLITS[info.split]
    primary = sum(claim.primary for claim in claims)
    why = f" Left out where {several(info.without_examples)}." if info.without_examples else ""
    heads = [
        "comparison",
        "difference [over seeds]",
        f"[over seeds and {split} examples]",
        "verdict",
    ]
    paragraphs = [
        f"{len(claims)} comparisons were planned before any score was seen, {primary} of them primary: the page's "
        "answer, and what `--until-decided` waits for. Their verdicts share one error of 5% (Holm), and intervals are "
        "each at the level of its own test; those of the others hold together. A comparison keeps the claim of the "
        "analysis that decided it, so n may differ. Intervals hold where arms learn; near chance they miss more often.",
        f"*Over seeds*: what would change with other initialisations and orders, on these very {split} examples; "
        f"verdicts rest on it. *Over seeds and {split} examples*: what would also change with other examples of the "
        f"same kind (paired bootstrap, {RESAMPLES:,} draws, the same for all arms): read this one for a claim about "
        f"new data.{why}",
    ]
    for kind, title in COMPARISON_TITLES.items():
        rows = [
            [
                named(claim, info.plan),
                "identical predictions" if claim.tie else difference(claim),
                _with_examples(claim),
                claim.verdict or NONE,
            ]
            for claim in claims
            if claim.kind == kind
        ]
        if rows:
            body = table(heads, rows)
            paragraphs += [folded(title, len(rows), body, most=0)] if kind in LONG else [f"**{title}**", body]
    return paragraphs


LONG = ("simple", "interaction")
"""Kinds that open on a click."""


def compared_table(contrasts: Sequence[Claim], plan: Plan, unit: str, digits: int = 3) -> list[str]:
    """Return the comparisons of one measure as a table that opens on a click."""
    rows = [[named(claim, plan), difference(claim, digits), claim.shown] for claim in contrasts]
    if not rows:
        return []
    heads = ["comparison", f"difference in {unit} [interval]", "verdict"]
    return [folded("Comparisons", len(rows), table(heads, rows), most=0)]


def _with_examples(claim: Claim) -> str:
    if claim.examples_low is None or claim.examples_high is None:
        return NONE
    return interval(claim.examples_low, claim.examples_high, signed=True)


PART = Part("Comparisons", info, section)
