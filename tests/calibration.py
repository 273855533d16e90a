"""Is the report right as often as it says? Simulated studies whose truth is known, judged by the report's own code.

    python -m tests.calibration --processes 2    the long form: about half an hour of two idle cores
    python -m tests.calibration --studies 200    coarser

Prints Markdown tables; docs/evidence.md holds those of the last long run. Nothing here trains.

False claims     no arm differs. A *false claim* is a verdict `better` or `worse` of any planned comparison, at any
                 analysis: at most 5% of studies may hold one.
Factor effect    one level of a factor is better by the SD of a cell: how many seeds find it, against cell by cell.
Until decided    trials that studies run block by block need, against a fixed number of seeds of the same power.
Best set         how often the best setting is in the set of those that may be best.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import pandas as pd
from scipy import stats

from adalayers.comparisons import FIRST, block_end
from adalayers.results.study_file import Run
from reports.evidence.analyses import analyses
from reports.evidence.best_set import best_set
from reports.evidence.claims import BETTER, SAME, WORSE, Claim, claims, undecided
from reports.evidence.planning import chance, seeds_for
from reports.evidence.spending import PLANNED, next_budget, shares
from reports.reading.load import Plan
from reports.words.text import table
from tests.helpers import made_scores

PART = 50
"""Studies that one process simulates at a time."""
SD = 0.01
"""Of one score, once its arm and its seed are known."""
EDGE = {"until-decided": math.sqrt(2) * SD, "fixed": 1.3 * math.sqrt(2) * SD}
"""The smallest effect of interest of the simulations at it: in SDs of the difference, 1 and 1.3, where *no difference*
is false most often: of larger ones *better* is found first, of smaller ones nothing."""

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
"""Scores [arms, seeds] of arms that do not differ."""


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Luck that all arms of a seed share, and normal noise."""
    return 0.4 + 0.02 * rng.normal(size=(1, shape[1])) + SD * rng.normal(size=shape)


def unequal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """As `normal`, with noise from half of the SD in the first arm, the control, to eight times it in the last."""
    spreads = 2.0 ** np.linspace(-1, 3, shape[0])[:, None]
    return 0.4 + 0.02 * rng.normal(size=(1, shape[1])) + SD * spreads * rng.normal(size=shape)


def accuracy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Accuracy on 100 examples, right 80% of the time: few values, many ties."""
    return rng.binomial(100, 0.8, size=shape) / 100


def collapsing(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal, but one trial in ten falls by thirty SDs, as when training collapses."""
    return normal(rng, shape) - 30 * SD * (rng.random(shape) < 0.1)


def diverging(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal, but every trial among the worst 15% of its arm diverges: it has the trivial model's score, 0."""
    scores = normal(rng, shape)
    return np.where(scores < np.quantile(scores, 0.15, axis=1, keepdims=True), 0.0, scores)


KINDS: dict[str, Draw] = {
    "normal": normal,
    "arms of unequal spread": unequal,
    "accuracy on 100 examples": accuracy,
    "one trial in ten collapses": collapsing,
    "the worst 15% of trials diverge": diverging,
}


@dataclass(frozen=True)
class Share:
    """How often something happened, with Clopper and Pearson's 95% interval."""

    hits: int
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        found = stats.binomtest(self.hits, self.n).proportion_ci(0.95, method="exact")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.hits / self.n:.2%} [{low:.2%}, {high:.2%}], n = {self.n:,}"


def together(shares: Iterable[Share]) -> Share:
    """Return the share over all parts."""
    parts = list(shares)
    return Share(sum(part.hits for part in parts), sum(part.n for part in parts))


# The studies


OUTSIDE = ("published", "uniform", "last")


def grid() -> Plan:
    """Return the plan of a 4 x 3 factorial core with three arms outside it, as `alpha_lambda` has one."""
    arms = {**made_scores.GRID, **{name: {} for name in OUTSIDE}}
    return made_scores.plan(arms, smallest_effect=SD / 10)


def against_control(arms: int) -> Plan:
    """Return the plan of so many arms, each against one control."""
    return made_scores.plan([f"arm-{number}" for number in range(arms + 1)], smallest_effect=SD / 10)


class Simulated:
    """A study that is run and judged as the driver and the report do it, on scores that are given."""

    def __init__(self, plan: Plan, scores: np.ndarray):
        self.plan, self.scores = plan, scores
        self.names = [arm.name for arm in plan.arms]
        self.had: dict[str, set[int]] = {name: set() for name in self.names}
        self.runs: list[Run] = []

    @property
    def trials_run(self) -> int:
        return sum(map(len, self.had.values()))

    def fixed(self, seeds: int) -> list[Claim]:
        """Run every arm with all seeds in one run; return the claims."""
        self._add(self.names, seeds, Run(confirmed=1, planned=seeds, analyses=(seeds,)))
        return self.claims()

    def until_decided(self, planned: int) -> list[Claim]:
        """Run block by block while primary comparisons are undecided; return the claims."""
        end = max((analysis for run in self.runs for analysis in run.analyses), default=0)
        wanted = undecided(self.claims()) if end else frozenset(self.names)
        while end < planned and wanted:
            end = block_end(end, planned)
            self._add(wanted, end, Run(confirmed=1, planned=planned, until_decided=True, analyses=(end,)))
            wanted = undecided(self.claims())
        return self.claims()

    def every_look(self, *plans: int) -> list[Claim]:
        """Run every arm with all seeds of one plan after another; return the claims of all analyses on the way.

        They are those of `until_decided`: a comparison ends where it is decided, whatever seeds its arms have later.
        """
        end = max((analysis for run in self.runs for analysis in run.analyses), default=0)
        for planned in plans:
            analyses = []
            while end < planned:
                end = block_end(end, planned)
                analyses.append(end)
            self._add(self.names, planned, Run(confirmed=1, planned=planned, analyses=tuple(analyses)))
        return self.claims()

    def claims(self) -> list[Claim]:
        frame = self.frame()
        return claims(frame, self.plan, analyses(self.runs, frame, self.plan), {})

    def frame(self) -> pd.DataFrame:
        """Return `trials.csv` as far as it has been run."""
        rows = [
            ("confirm", "completed", name, seed, f"{place:03d}-{seed:04d}", self.scores[place, seed - 1])
            for place, name in enumerate(self.names)
            for seed in sorted(self.had[name])
        ]
        return pd.DataFrame(rows, columns=["stage", "status", "arm", "seed", "trial_id", "test/matthews"])

    def _add(self, arms: Iterable[str], seeds: int, run: Run) -> None:
        added = {name: sorted(set(range(1, seeds + 1)) - self.had[name]) for name in arms}
        for name, new in added.items():
            self.had[name] |= set(new)
        covered = {name: sorted(had) for name, had in self.had.items()}
        self.runs.append(replace(run, seeds=added, covered=(covered,) * len(run.analyses)))


# False claims


def false_claims(studies: int, draw: Draw, how: str, seed: int = 0) -> Share:
    """Return the share of studies of identical arms that claim a difference, of the score, at any analysis.

    how: until-decided (to 20 seeds, then extended to 30), or fixed (6 seeds, extended to 12)
    """
    rng = np.random.default_rng([seed, 1])
    plan, hits = grid(), 0
    for _ in range(studies):
        study = Simulated(plan, draw(rng, (len(plan.arms), 30)))
        fixed = how == "fixed"
        found = [*study.fixed(6), *study.fixed(12)] if fixed else study.every_look(20, 30)
        hits += any(claim.verdict in (BETTER, WORSE) for claim in found)
    return Share(hits, studies)


def at_the_edge(studies: int, beyond: float, how: str, seed: int = 0) -> tuple[Share, Share]:
    """Return the shares of studies with a false claim, and with an interval that misses, where all arms differ.

    Args:
        studies: How many; nine arms and a control, until decided to 20 seeds or fixed at 6.
        beyond: The true difference of every arm as a multiple of the smallest effect: from 1 on *no difference seen*
            is false, as *worse* is.
        how: As of `false_claims`.
        seed: Of the draws.
    """
    rng = np.random.default_rng([seed, 7])
    plan = replace(against_control(9), smallest_effect=EDGE[how])
    truth = beyond * EDGE[how]
    false = missed = 0
    for _ in range(studies):
        scores = normal(rng, (len(plan.arms), 20))
        scores[1:] += truth
        study = Simulated(plan, scores)
        found = study.fixed(6) if how == "fixed" else study.every_look(20)
        false += any(claim.verdict in (SAME, WORSE) for claim in found)
        missed += any(
            claim.low is not None and not claim.low <= truth + 1e-12 <= claim.high + 2e-12 for claim in found
        )
    return Share(false, studies), Share(missed, studies)


def found_as_planned(studies: int, seed: int = 0) -> Share:
    """Return how often a comparison that is open after 6 seeds finds the effect with the seeds that planning names."""
    rng = np.random.default_rng([seed, 8])
    plan, hits, n = against_control(9), 0, 0
    for _ in range(studies):
        scores = 0.4 + SD * rng.normal(size=(10, 60))
        scores[1:] += 1.5 * math.sqrt(2) * SD
        study = Simulated(plan, scores)
        still_open = [claim for claim in study.fixed(6) if not claim.decided]
        if not still_open:
            continue
        frame = study.frame()
        seeds = seeds_for(1.5, still_open[0], analyses(study.runs, frame, plan))
        keys = {claim.key for claim in still_open}
        later = [claim for claim in study.every_look(seeds or 60) if claim.key in keys]
        hits, n = hits + sum(claim.verdict == BETTER for claim in later), n + len(later)
    return Share(hits, n)


# Effects


def factor_found(studies: int, seeds: int, shared: float, seed: int = 0) -> Share:
    """Return the share of fixed studies that find a level of a factor better by one SD of a cell.

    shared: the correlation of the noise of cells that differ in the other factor alone
    """
    rng = np.random.default_rng([seed, 2])
    plan, hits = grid(), 0
    alphas, weights = len(made_scores.ALPHAS), len(made_scores.WEIGHTS)
    for _ in range(studies):
        common = rng.normal(size=(alphas, 1, seeds))
        own = rng.normal(size=(alphas, weights, seeds))
        cells = SD * (math.sqrt(shared) * common + math.sqrt(1 - shared) * own)
        cells[1] += SD
        scores = 0.4 + np.concatenate(
            [cells.reshape(alphas * weights, seeds), SD * rng.normal(size=(len(OUTSIDE), seeds))]
        )
        found = Simulated(plan, scores).fixed(seeds)
        hits += any(
            claim.kind == "factor" and claim.names[0] == "alpha=8" and claim.verdict == BETTER
            for claim in found
        )
    return Share(hits, studies)


def fixed_seeds(effect: float, error: float) -> int:
    """Return how many seeds of one analysis find a difference of `effect` SDs nine times in ten."""
    return next(n for n in range(FIRST, 100) if chance([(n, error)], effect) >= 0.9)


def factor_seeds() -> int:
    """Return how many seeds find a level of `alpha` better by one SD of independent cells, nine times in ten."""
    plan = grid()
    planned = plan.comparisons
    level = next(effect for effect in planned if effect.names[0] == "alpha=8" and effect.kind == "factor")
    share = shares([comparison.primary for comparison in planned])[planned.index(level)]
    sd = math.sqrt(sum(weight**2 for weight in level.weights.values()))
    return fixed_seeds(1 / sd, PLANNED * share)


def cell_seeds() -> int:
    """Return how many seeds find one of the 14 arms better than the control by one SD of a cell, cell by cell."""
    return fixed_seeds(1 / math.sqrt(2), PLANNED / 14)


@dataclass(frozen=True)
class Cost:
    """Trials run over those of a fixed design, and how often an effect of one SD of the difference was found."""

    trials: int
    fixed: int
    found: Share


def cost(studies: int, effects: Sequence[float], planned: int, fixed: int, seed: int = 0) -> Cost:
    """Return what until-decided costs for arms against a control; effects: in SDs of the difference, in turn by arm."""
    rng = np.random.default_rng([seed, 3])
    plan = against_control(10)
    sizes = np.array([0.0, *(effects[place % len(effects)] for place in range(10))])
    trials, hits, ones = 0, 0, 0
    for _ in range(studies):
        # Independent differences of SD 1: the control's scores are the shared luck.
        scores = SD * (rng.normal(size=(11, planned)) + sizes[:, None])
        scores[0] = 0.0
        study = Simulated(plan, 0.4 + scores)
        found = study.until_decided(planned)
        trials += study.trials_run
        of_one = [claim.verdict == BETTER for claim, size in zip(found, sizes[1:], strict=True) if size == 1]
        hits, ones = hits + sum(of_one), ones + len(of_one)
    return Cost(trials, studies * 11 * fixed, Share(hits, max(1, ones)))


def planned_for_power(comparisons: int) -> tuple[int, int]:
    """Return the seeds of a fixed design, and of one run until decided, that find one SD nine times in ten."""
    for planned in range(FIRST, 100):
        end, budget, schedule = 0, None, []
        while end < planned:
            end = block_end(end, planned)
            budget = next_budget(budget, seeds=end, planned=planned)
            schedule.append((end, budget.spent(end) / comparisons))
        if chance(schedule, 1.0) >= 0.9:
            return fixed_seeds(1.0, PLANNED / comparisons), planned
    raise ValueError("no number of seeds reaches that power")


def best_kept(studies: int, seed: int = 0) -> Share:
    """Return the share of studies, run until decided, whose set of settings that may be best holds the best one.

    The best is ahead of five others by half an SD, of five more by nothing: ties are the hard case.
    """
    rng = np.random.default_rng([seed, 6])
    plan, hits = against_control(10), 0
    for _ in range(studies):
        scores = normal(rng, (11, 20))
        scores[6:] -= SD / 2
        study = Simulated(plan, scores)
        study.until_decided(20)
        frame = study.frame()
        hits += study.names[0] in best_set(frame, plan, analyses(study.runs, frame, plan)).arms
    return Share(hits, studies)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--studies", type=int, default=2000, help="of each kind (default 2000)")
    parser.add_argument("--processes", type=int, default=1)
    flags = parser.parse_args(arguments)
    with ProcessPoolExecutor(flags.processes) as pool:
        # Parts of a fixed size and a seed each: the figures do not depend on the number of processes.
        sizes = [min(PART, flags.studies - start) for start in range(0, flags.studies, PART)]
        seeds = range(len(sizes))
        print("Identical arms, a 4 x 3 core with three arms outside it:\n")
        print_row("scores", "run", "studies with a false claim [95% interval]", head=True)
        for name, draw in KINDS.items():
            for how in ("until-decided", "fixed"):
                found = pool.map(false_claims, sizes, repeat(draw), repeat(how), seeds)
                print_row(name, how, str(together(found)))
        few = [min(PART, size) for size in sizes[: max(1, len(sizes) // 4)]]
        print("\nNine arms that differ from the control by so many smallest effects:\n")
        print_row("difference", "run", "*no difference* or *worse* of any", "an interval misses", head=True)
        for beyond, how in itertools.product((1.0, 1.02), ("until-decided", "fixed")):
            found = list(pool.map(at_the_edge, few, repeat(beyond), repeat(how), seeds))
            print_row(f"{beyond:g}", how, *(str(together(part)) for part in zip(*found, strict=True)))
        planned = together(pool.map(found_as_planned, few, seeds))
        print(f"\nFound with the seeds that planning names, of what is open after six: {planned}")
        wanted, cells = factor_seeds(), cell_seeds()
        print(f"\nOne level of a factor better by one SD of a cell; cell by cell it takes {cells} seeds:\n")
        print_row("noise shared by cells of one level", "seeds", "share of cell by cell", "found", head=True)
        for shared in (0.0, 0.5, 0.9):
            share = together(pool.map(factor_found, few, repeat(wanted), repeat(shared), seeds))
            print_row(f"{shared:g}", str(wanted), f"{wanted / cells:.0%}", str(share))
        fixed, planned = planned_for_power(10)
        print(f"\nUntil decided ({planned} seeds at most) against {fixed} seeds fixed, of equal power:\n")
        print_row(
            "design", "effects", "trials, share of the fixed design's", "effects of one SD found", head=True
        )
        for effects in ((0.0, 1.0, 2.0), (2.0,), (2.0, 3.0, 4.0)):
            costs = list(pool.map(cost, few, repeat(effects), repeat(planned), repeat(fixed), seeds))
            print_row(
                "10 arms against a control", f"{effects} SDs of the difference", *_cost(costs, 1.0 in effects)
            )
        kept = together(pool.map(best_kept, few, seeds))
        print(f"\nThe best of eleven settings, five of them alike, is in the set that may be best: {kept}")
    return 0


def _cost(costs: Sequence[Cost], found: bool) -> tuple[str, str]:
    ratio = sum(cost.trials for cost in costs) / sum(cost.fixed for cost in costs)
    return f"{ratio:.0%}", str(together(cost.found for cost in costs)) if found else "none there"


def print_row(*cells: str, head: bool = False) -> None:
    """Print a row of a Markdown table as soon as it is known."""
    lines = table(cells, [] if head else [cells]).splitlines()
    print("\n".join(lines if head else lines[2:]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
