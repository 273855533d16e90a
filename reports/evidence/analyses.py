"""The analyses of a study's confirmed trials: what each covered, worked out again from `study.json`.

An analysis is planned: after a block of seeds under `--until-decided`, else as a run ends, of the whole blocks that it
left. Rebuilding a report, and blocks that are not whole, are none, but for a last block that ends at `--seeds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from adalayers.comparisons import BLOCK
from adalayers.results.study_file import Run
from reports.evidence.boundaries import critical_values
from reports.evidence.spending import Budget, next_budget
from reports.evidence.tables import confirmed
from reports.reading.load import Plan


@dataclass(frozen=True)
class Analysis:
    """One analysis.

    seeds:  arm -> the seeds that it covers, of every arm known by then
    budget: the error that may have been spent by then
    before: the same, at the analysis before it; None for the first one
    ended:  when its run ended, as `study.json` says; "" where it does not
    """

    number: int
    seeds: Mapping[str, frozenset[int]]
    budget: Budget
    before: Budget | None = None
    ended: str = ""


@dataclass
class Replay:
    """The error of one comparison, analysis by analysis, as those of its arms are gone through in order.

    schedule: (pairs, error spent up to them) of the analyses that had new pairs
    """

    schedule: list[tuple[int, float]] = field(default_factory=list)
    _spent: float = 0.0
    _error: float = 0.0
    _joined: bool = False

    def critical(self, analysis: Analysis, pairs: int, part: float) -> float | None:
        """Return the critical |t| of an analysis, given its part of the error; None where no pair is new to it."""
        if not self._joined and analysis.before is not None:  # what was spent before it joined is spent
            self._spent = analysis.before.spent(analysis.before.seeds)
        self._joined = True
        if pairs <= (self.schedule[-1][0] if self.schedule else 0):
            return None
        now = analysis.budget.spent(pairs)
        self._error += max(0.0, now - self._spent) * part
        self._spent = max(self._spent, now)
        self.schedule.append((pairs, self._error))
        return critical_values(self.schedule)[-1]

    @property
    def one_sided(self) -> float:
        """The critical t of the last analysis for a test of one side that has the comparison's whole error.

        One side of a two-sided test with twice the error: what crosses both sides is left out, far below 1e-6.
        """
        return critical_values([(pairs, 2 * error) for pairs, error in self.schedule])[-1]


def analyses(runs: Sequence[Run], trials: pd.DataFrame, plan: Plan) -> list[Analysis]:
    """Return the analyses that were made, in order; empty where no whole block of seeds has ended.

    Each covers the seeds that its run says, of those that `trials` still has.
    """
    rows = confirmed(trials).dropna(subset=["seed"])
    completed = {str(arm): frozenset(map(int, seeds)) for arm, seeds in rows.groupby("arm")["seed"]}
    made: list[Analysis] = []
    for run in runs:
        for after, covered in zip(run.analyses, run.covered, strict=False):
            for end in _ends(made, after):
                seeds = {
                    arm: completed.get(arm, frozenset()) & {s for s in of_arm if s <= plan.seed + end}
                    for arm, of_arm in covered.items()
                }
                before = made[-1].budget if made else None
                budget = next_budget(before, seeds=end, planned=run.planned)
                made.append(Analysis(len(made) + 1, seeds, budget, before, run.ended))
    return made


def _ends(made: Sequence[Analysis], after: int) -> list[int]:
    """Return after how many seeds there are analyses, up to `after`, beyond those that are made.

    Beyond the seeds first planned, blocks after which no run stopped are analysed as well: what an extension spends
    then does not depend on how many seeds it asked for.
    """
    if not made:
        return [after]
    last, planned = made[-1].budget.seeds, made[0].budget.planned
    return [*(end for end in range(last - last % BLOCK + BLOCK, after, BLOCK) if end > planned), after]
