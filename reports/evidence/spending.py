"""How much error the analyses of a study may spend, and when (alpha spending; Lan and DeMets 1983)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adalayers.comparisons import BLOCK, FIRST

PLANNED, RESERVE = 0.04, 0.01
"""Error of one family of comparisons up to the planned seeds, and of all that is run beyond them."""

HALF = 4
"""Blocks of seeds beyond the plan after which half of `RESERVE` is spent."""

PRIMARY = 0.8
"""Share of the error that the primary comparisons divide between them; the others divide the rest."""


@dataclass(frozen=True)
class Budget:
    """What a study may have spent as one of its analyses is made.

    Attributes:
        planned: Seeds that were planned at the first analysis.
        seeds: Those that this one covers.
        repeats: How many analyses of the whole plan brought no further seeds: arms joined, or failed trials were run
            again.
    """

    planned: int = FIRST
    seeds: int = FIRST
    repeats: int = 0

    def spent(self, pairs: int) -> float:
        """Return the error that a family may have spent at this analysis, by comparisons with so many pairs.

        Nothing below `FIRST` pairs. Up to the plan, `PLANNED` x pairs / planned (the power family of Kim and DeMets
        1987 with exponent 1); at its end all of it, for pairs that failed do not come any more. Beyond it `RESERVE` x
        b / (b + `HALF`) after b blocks, whatever number of seeds was asked for: that may follow from what was seen.
        """
        if pairs < FIRST:
            return 0.0
        if self.seeds < self.planned:
            return PLANNED * min(1.0, pairs / self.planned)
        blocks = max(0.0, (pairs - self.planned) / BLOCK) + self.repeats
        return PLANNED + RESERVE * blocks / (blocks + HALF)


def next_budget(budget: Budget | None, *, seeds: int, planned: int) -> Budget:
    """Return the budget of an analysis of `seeds` seeds, made when `planned` were planned, after one of `budget`."""
    if budget is None:
        return Budget(max(FIRST, planned), seeds)
    repeated = seeds <= budget.seeds and budget.seeds >= budget.planned
    return Budget(budget.planned, max(seeds, budget.seeds), budget.repeats + repeated)


def shares(primary: Sequence[bool]) -> list[float]:
    """Return the share of a family's error that each of its comparisons has; True: it is a primary one."""
    many, others = sum(primary), len(primary) - sum(primary)
    if not many or not others:
        return [1 / len(primary)] * len(primary)
    return [PRIMARY / many if is_primary else (1 - PRIMARY) / others for is_primary in primary]
