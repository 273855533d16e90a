"""What each interval covers: seeds, seeds and examples; and how often an arm wins on one seed."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.resampling import RESAMPLES
from reports.parts.part import Part
from reports.words.labels import SPLITS
from reports.words.text import NONE, code, estimate, folded, interval, several, table


@dataclass(frozen=True)
class Info:
    """without_examples: why claims lack the interval over examples."""

    claims: tuple[Claim, ...]
    split: str
    without_examples: tuple[str, ...]


def info(evidence: Evidence) -> Info | None:
    claims = tuple(evidence.claims)
    return Info(claims, evidence.split, tuple(evidence.without_examples)) if claims else None


def section(info: Info) -> list[str]:
    claims = info.claims
    split, first = SPLITS[info.split], claims[0]
    heads = ["arm", "difference [over seeds]", f"[over seeds and {split} examples]"]
    rows = [
        [
            code(claim.arm),
            estimate(claim.difference, claim.low, claim.high, claim.n, signed=True),
            _with_examples(claim),
            estimate(claim.improvement, claim.improvement_low, claim.improvement_high, claim.n, 2),
        ]
        for claim in claims
    ]
    why = f" Left out where {several(info.without_examples)}." if info.without_examples else ""
    return [
        f"Each is an interval of {first.interval_level:.3%}, so that those of one column hold together, at all "
        f"analyses, with {first.level:.0%}. *Over seeds*: what would change with other initialisations and orders, on "
        f"these very {split} examples; verdicts rest on it. *Over seeds and {split} examples*: what would also change "
        f"with other examples of the same kind (paired bootstrap, {RESAMPLES:,} draws, the same for all arms); read "
        f"this one for a claim about new data.{why}",
        "*Beats the control*: the share of seeds on which the arm is ahead, a tie counting half, with Clopper and "
        "Pearson's exact interval: an estimate of how often it would be ahead on one fresh seed.",
        folded(
            "The intervals of each arm",
            len(rows),
            table([*heads, "beats the control, share of seeds"], rows),
        ),
    ]


def _with_examples(claim: Claim) -> str:
    if claim.examples_low is None or claim.examples_high is None:
        return NONE
    return interval(claim.examples_low, claim.examples_high, signed=True)


PART = Part("What the intervals cover", info, section)
