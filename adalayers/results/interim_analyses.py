"""The analyses of a study's confirmed trials: when one is made, and the error that it has.

All of a study share 5%: most of it goes to the analyses that are planned as the first is made, in equal parts, the rest
to extensions, half of what is left to each. So the levels of all analyses never add up to more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adalayers.comparisons import BLOCK, FIRST

PLANNED, EXTENSIONS = 0.04, 0.01
"""Error of all planned analyses of a study, and of all beyond them."""

CROSSED, OMNIBUS = 0.03, 0.01
"""Error of the planned analyses of a complete factorial, and of what is asked there of factors as wholes."""

_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class InterimAnalysis:
    """An analysis of the confirmed trials.

    Attributes:
        after: Of how many seeds of each arm it is, of those planned, in order.
        level: The error of each of its two Holm runs.
        planned: After how many seeds analyses were planned as the first one was made.
        extension: Whether it goes beyond these.
        covered: Arm -> its completed seeds that the analysis is of.
        failed: Arm -> its seeds that had failed: their comparisons are withheld here, whatever is run again later.
    """

    after: int = 0
    level: float = 0.0
    planned: tuple[int, ...] = ()
    extension: bool = False
    covered: dict[str, list[int]] = field(default_factory=dict)
    failed: dict[str, list[int]] = field(default_factory=dict, metadata={"later": True})


def planned_analyses(seeds: int, *, until_decided: bool) -> tuple[int, ...]:
    """Return after how many of `seeds` seeds analyses are planned.

    One at the end; until decided also after 6, and after the block of 3 nearest to the middle (of two, the earlier).
    """
    middle = BLOCK * -(-(FIRST + seeds - BLOCK) // (2 * BLOCK))
    return tuple(sorted({FIRST, middle, seeds})) if until_decided else (seeds,)


def next_analysis(
    made: Sequence[InterimAnalysis], seeds: int, *, until_decided: bool, error: float
) -> InterimAnalysis | None:
    """Return the analysis that follows those that were made, nothing covered yet; None below six seeds.

    Args:
        made: The analyses so far.
        seeds: How many each arm is to have, as asked for now.
        until_decided: Whether arms run on only until their comparisons are decided.
        error: Of all planned analyses: `PLANNED`, or `CROSSED` in a complete factorial.
    """
    if seeds < FIRST:
        return None
    planned = made[0].planned if made else planned_analyses(seeds, until_decided=until_decided)
    last = made[-1].after if made else 0
    levels = [analysis.level for analysis in made if not analysis.extension]
    left, coming = error - sum(levels), planned[len(levels) :]
    after = min(seeds, coming[0] if until_decided and coming else planned[-1])
    if left > _ROUNDING and coming and after > last:
        level = left / len(coming) if until_decided else left
        return InterimAnalysis(after=after, level=level, planned=planned)
    spent = sum(analysis.level for analysis in made if analysis.extension)
    return InterimAnalysis(
        after=max(seeds, last), level=(EXTENSIONS - spent) / 2, planned=planned, extension=True
    )
