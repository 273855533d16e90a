"""What each look covered, what it might spend, and what it decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from reports.evidence.analyses import Look, changed
from reports.evidence.claims import BETTER, WORSE, Claim
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL, comparison_alpha, look_alpha, look_cost
from reports.parts.part import Part
from reports.words.text import NONE, code, count, escape, several, table


@dataclass(frozen=True)
class Info:
    """number: of this look; looks: all of them, this one last; empty where they cannot be worked out again."""

    claims: tuple[Claim, ...]
    number: int
    looks: tuple[Look, ...]


def info(evidence: Evidence) -> Info:
    return Info(tuple(evidence.claims), evidence.plan.looks, tuple(evidence.looks))


def section(info: Info) -> list[str]:
    claims = info.claims
    m = claims[0].comparisons if claims else 0
    if not m:
        return ["Nothing was compared, so nothing was looked at."]
    n = median_low(claim.n for claim in claims)
    cost = f": {look_cost(info.number, m, n):.2f} times that of an only look at n = {n}" if n > 1 else ""
    paragraphs = [
        f"This is look {info.number} at the confirmed trials. A look is a run of the study after which new "
        "confirmed trials could be read; rebuilding this page from the same files shows nothing new and is "
        f"none. Looking again gives chance more goes, so look j may spend only 5% / 2^j: this one "
        f"{look_alpha(info.number):.3%}, shared by {count(m, 'comparison')}, so each interval of a difference is one "
        f"of {1 - comparison_alpha(info.number, m):.4%}. All looks together, however many follow, then hold with "
        f"{LEVEL:.0%}. The price is width{cost}; the seeds needed, under Limits, count it in.",
    ]
    if info.number > 1 and not info.looks:
        paragraphs.append(
            "`study.json` does not say which seeds each look covered, so what earlier looks decided cannot be "
            "worked out again."
        )
    if info.looks:
        heads = ["look", "ended", "seeds per arm", "may spend", "called better or worse", "holds no longer"]
        paragraphs.append(table(heads, [_row(look, claims) for look in info.looks]))
    gone = sorted({arm for look in info.looks for arm in changed(look, claims)})
    if gone:
        paragraphs.append(
            f"**A claim of an earlier look no longer holds**: {several([code(arm) for arm in gone])}. The verdict on "
            "this page is that of this look."
        )
    return paragraphs


def _row(look: Look, now: Sequence[Claim]) -> list[str]:
    then = [
        f"{code(claim.arm)} {claim.verdict}"
        for claim in look.claims or ()
        if claim.verdict in (BETTER, WORSE)
    ]
    sizes = sorted({len(held) for held in (look.seeds or {}).values()})
    seeds = " to ".join(str(size) for size in sorted({sizes[0], sizes[-1]})) if sizes else NONE
    known = look.claims is not None
    return [
        str(look.number),
        escape(look.ended) or NONE,
        seeds,
        f"{look_alpha(look.number):.3%}",
        (several(then) or "none") if known else "not known",
        (several([code(arm) for arm in changed(look, now)]) or "none") if known else "not known",
    ]


PART = Part("Looks", info, section)
