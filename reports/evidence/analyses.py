"""The analyses of a study's confirmed trials: what each covered, worked out again from `study.json`.

An analysis is planned: after a block of seeds under `--until-decided`, else as a run ends, of the whole blocks that it
left. Rebuilding a report, and blocks that are not whole, are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from adalayers.comparisons import block_end
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


def analyses(runs: Sequence[Run], trials: pd.DataFrame, plan: Plan) -> list[Analysis]:
    """Return the analyses that were made, in order; empty where no whole block of seeds has ended.

    Beyond the seeds first planned, blocks that no one looked after are analysed as well: what an extension spends then
    does not depend on how many seeds it asked for.
    """
    had = _seeds(trials, plan)
    if any(run.confirmed and not run.seeds for run in runs) or not any(run.confirmed for run in runs):
        return _unrecorded(had, plan)
    found: list[Analysis] = []
    known: dict[str, frozenset[int]] = {}
    for run in runs:
        known = {
            arm: known.get(arm, frozenset()) | {*run.seeds.get(arm, ())} for arm in {**known, **run.seeds}
        }
        most = max((len(of_arm) for of_arm in known.values()), default=0)
        analyses = run.analyses if run.planned else (most,) if run.confirmed else ()
        for place, after in enumerate(analyses):
            covered = run.covered[place] if place < len(run.covered) else known
            planned = run.planned or most
            end = found[-1].budget.seeds if found and run.planned else after
            while (end := block_end(end, after)) < after:
                if end > found[0].budget.stages[0][1]:
                    _add(found, end, run, covered, had, plan, planned)
            _add(found, after, run, covered, had, plan, planned)
    return found


def _add(
    found: list[Analysis],
    after: int,
    run: Run,
    covered: Mapping[str, Iterable[int]],
    had: Mapping[str, frozenset[int]],
    plan: Plan,
    planned: int,
) -> None:
    """Add an analysis after `after` seeds of those that are `covered` and that `trials.csv` still has."""
    before = found[-1].budget if found else None
    seeds = {
        arm: frozenset(
            seed
            for seed in of_arm
            if seed in had.get(arm, ()) and (not run.planned or seed <= plan.seed + after)
        )
        for arm, of_arm in covered.items()
    }
    budget = next_budget(before, seeds=after, planned=planned)
    found.append(Analysis(len(found) + 1, seeds, budget, before, run.ended))


def _seeds(trials: pd.DataFrame, plan: Plan) -> dict[str, frozenset[int]]:
    rows = confirmed(trials).dropna(subset=["seed"])
    seeds = {arm.name: frozenset[int]() for arm in plan.arms}
    return seeds | {str(arm): frozenset(map(int, of_arm)) for arm, of_arm in rows.groupby("arm")["seed"]}


def _unrecorded(seeds: Mapping[str, frozenset[int]], plan: Plan) -> list[Analysis]:
    """Return the one analysis of a study whose runs say nothing: of all there is, at the last's part of the error."""
    most = max((len(of_arm) for of_arm in seeds.values()), default=0)
    if not most:
        return []
    before, budget = None, next_budget(None, seeds=most, planned=most)
    for _ in range(plan.analyses - 1):
        before, budget = budget, next_budget(budget, seeds=most, planned=most)
    return [Analysis(plan.analyses, seeds, budget, before)]
