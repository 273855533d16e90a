"""How much error the analyses of a study may spend, and when (alpha spending; Lan and DeMets 1983)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adalayers.comparisons import BLOCK

PLANNED, RESERVE = 0.04, 0.01
"""Error of one family of comparisons up to the planned seeds, and of all extensions together."""

POWER = 1.5
"""Of the spending function: error spent grows as share ** POWER of the planned seeds (Kim and DeMets 1987)."""

PRIMARY = 0.8
"""Share of the error that the primary comparisons divide between them; the others divide the rest."""


@dataclass(frozen=True)
class Budget:
    """What a study may have spent as one of its analyses is made.

    stages: (seeds before, seeds planned) of the first plan and of every extension so far. Extension j has half of what
            extension j - 1 had, the first of them half of `RESERVE`; one that plans no further seeds (arms joined, or
            failed trials were run again) has its error at once.
    seeds:  those that the analysis covers
    """

    stages: tuple[tuple[int, int], ...] = field(default=((0, 1),))
    seeds: int = 1

    def spent(self, pairs: int) -> float:
        """Return the error that a family may have spent at this analysis, by comparisons with so many pairs."""
        return sum(
            stage_error(number) * self._share(number, pairs, before, planned)
            for number, (before, planned) in enumerate(self.stages)
        )

    def _share(self, number: int, pairs: int, before: int, planned: int) -> float:
        """Return the share of a stage's error that is spent at so many pairs."""
        if number == 0:
            # At the last analysis all of it: pairs that failed do not come any more.
            return 1.0 if self.seeds >= planned else min(1.0, pairs / planned) ** POWER
        if planned == before:
            return 1.0
        # How many seeds an extension asks for may follow from what was seen: its spending must not.
        blocks = max(0.0, (pairs - before) / BLOCK)
        return blocks / (blocks + 1)


def stage_error(number: int) -> float:
    """Return the error of the first plan (0) or of extension `number`."""
    return PLANNED if number == 0 else RESERVE / 2**number


def next_budget(budget: Budget | None, *, seeds: int, planned: int) -> Budget:
    """Return the budget of an analysis of `seeds` seeds, made when `planned` were planned, after one of `budget`."""
    if budget is None:
        return Budget(((0, max(1, planned)),), seeds)
    last = budget.stages[-1][1]
    if planned > last:
        return Budget((*budget.stages, (last, planned)), seeds)
    if budget.seeds >= last:
        return Budget((*budget.stages, (last, last)), seeds)
    return Budget(budget.stages, seeds)


def shares(primary: Sequence[bool]) -> list[float]:
    """Return the share of a family's error that each of its comparisons has; True: it is a primary one."""
    many, others = sum(primary), len(primary) - sum(primary)
    if not many or not others:
        return [1 / len(primary)] * len(primary)
    return [PRIMARY / many if one else (1 - PRIMARY) / others for one in primary]
