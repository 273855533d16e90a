"""Is the report right as often as it says? Simulated studies whose truth is known, judged by the report's own code.

    python -m docs.evidence.calibration                  the long form: minutes of one core
    python -m docs.evidence.calibration --studies 200    coarser

Prints Markdown tables; docs/evidence.md holds those of the last long run. Nothing here trains.

equal      no arm differs: a false claim is a verdict `better` or `worse`, at any analysis; at most 5% of studies
effects    all arms differ: how often that is found, and by the smallest effect: how often they are called the same
pools      arms of one configuration, drawn from the trials that were trained for docs/evidence/
pages      each published page of six seeds or more, with its own differences and spreads
wholes     factors as wholes, where none matters: at most 1% of studies, in arms of equal and unequal spread
"""

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

from adalayers.results.interim_analyses import CROSSED, PLANNED, InterimAnalysis, next_analysis
from adalayers.results.study_file import RequestRecord
from reports.evidence.evidence import Evidence
from reports.evidence.holm import BETTER, SAME, WORSE, Estimate, decide, paired
from reports.evidence.omnibus import crossed, effects_of, permutation_p_values, spread_ratio
from reports.reading.load import load
from tests.helpers import made_scores

DOCS = Path(__file__).resolve().parents[1]
SD = 0.01
"""Of one score, once its arm and its seed are known."""
BASELINE = 0.0
"""The trivial model's score."""

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
"""Scores [arms, seeds] of arms that do not differ."""


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Luck that all arms of a seed share, and normal noise."""
    return 0.4 + 0.02 * rng.normal(size=(1, shape[1])) + SD * rng.normal(size=shape)


def unequal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """As `normal`, with noise from half of the SD in the first arm, the control, to eight times it in the last."""
    spreads = 2.0 ** np.linspace(-1, 3, shape[0])[:, None]
    return 0.4 + 0.02 * rng.normal(size=(1, shape[1])) + SD * spreads * rng.normal(size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Noise that is exponential: most scores are near the best, a few fall far below."""
    return 0.4 + 0.02 * rng.normal(size=(1, shape[1])) - SD * rng.exponential(size=shape)


def accuracy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Accuracy on 100 examples, right 80% of the time: few values, many ties."""
    return rng.binomial(100, 0.8, size=shape) / 100


def diverging(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal, but every trial among the worst 15% of its arm diverges: it has the trivial model's score."""
    scores = normal(rng, shape)
    return np.where(scores < np.quantile(scores, 0.15, axis=1, keepdims=True), BASELINE, scores)


KINDS: dict[str, Draw] = {
    "normal": normal,
    "arms of unequal spread": unequal,
    "skewed": skewed,
    "accuracy on 100 examples": accuracy,
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
        return f"{self.hits / self.n:.2%} [{low:.2%}, {high:.2%}]"


def factorial() -> RequestRecord:
    """Return the request of a 4 x 3 factorial core with three arms outside it, as `alpha_lambda` has one."""
    outside = {name: {} for name in ("published", "uniform", "last")}
    return made_scores.request({**made_scores.GRID, **outside}, smallest_effect=SD / 10)


def against_control(arms: int = 9, smallest: float = SD / 10) -> RequestRecord:
    """Return the request of so many arms, each against one control."""
    return made_scores.request([f"arm-{number}" for number in range(arms + 1)], smallest_effect=smallest)


RUNS = {"6, then 12": ((6, False), (12, False)), "until decided to 20, then 30": ((20, True), (30, True))}
"""Commands, one after the other: seeds, and whether until decided."""


def judged(request: RequestRecord, scores: np.ndarray, how: str) -> tuple[list[str], bool]:
    """Return what commands decide of the primary comparisons, and whether an interval of another one leaves out 0.

    Arms that stop early are given all seeds: a comparison that was decided keeps its claim, whatever comes after.

    scores: [arms, seeds]
    """
    names = [arm.name for arm in request.arms]
    error = CROSSED if crossed(request)[0] else PLANNED
    analyses: list[InterimAnalysis] = []
    for seeds, until_decided in RUNS[how]:
        while one := next_analysis(analyses, seeds, until_decided=until_decided, error=error):
            if analyses and one.after <= analyses[-1].after:
                break
            analyses.append(one)

    def estimates(after: int, *, primary: bool) -> dict[int, Estimate | None]:
        return {
            place: paired(
                np.array([planned.weights.get(name, 0.0) for name in names]) @ scores[:, :after],
                request.smallest_effect,
                scale=1.0,
            )
            for place, planned in enumerate(request.comparisons)
            if planned.primary == primary
        }

    decisions = decide([(one.level, estimates(one.after, primary=True)) for one in analyses])
    others = estimates(analyses[-1].after, primary=False)
    beyond = any(one and one.p_value <= error / len(others) for one in others.values())
    return [decision.verdict for decision in decisions.values()], beyond


def of_equal_arms(
    studies: int, request: RequestRecord, draw: Draw, how: str, seed: int = 0
) -> tuple[Share, Share]:
    """Return the shares of studies with a false claim, and with an interval without verdict that misses 0."""
    rng, false, missed = np.random.default_rng([seed, 1]), 0, 0
    for _ in range(studies):
        verdicts, beyond = judged(request, draw(rng, (len(request.arms), 30)), how)
        false, missed = false + bool({BETTER, WORSE} & {*verdicts}), missed + beyond
    return Share(false, studies), Share(missed, studies)


def of_effects(studies: int, sds: float, smallest: float, how: str, seed: int = 0) -> tuple[Share, Share]:
    """Return the shares of studies with a false claim, and of comparisons found, where nine arms beat a control.

    sds, smallest: by how much, and the smallest effect, in SDs of a difference
    """
    rng, false, found, sd = np.random.default_rng([seed, 7]), 0, 0, math.sqrt(2) * SD
    request = against_control(smallest=smallest * sd)
    for _ in range(studies):
        scores = normal(rng, (10, 30))
        scores[1:] += sds * sd
        verdicts, _ = judged(request, scores, how)
        false += WORSE in verdicts or (sds >= smallest and SAME in verdicts)
        found += verdicts.count(BETTER)
    return Share(false, studies), Share(found, 9 * studies)


# Trials that were trained


def of_pool(studies: int, scores: np.ndarray, how: str, smallest: float, seed: int = 0) -> Share:
    """Return the share of studies with a false claim, of four arms whose trials are drawn from one configuration's."""
    rng, false = np.random.default_rng([seed, 9]), 0
    request = against_control(3, smallest)
    for _ in range(studies):
        verdicts, _ = judged(request, rng.permutation(scores)[: 4 * 30].reshape(4, 30), how)
        false += bool({BETTER, WORSE} & {*verdicts})
    return Share(false, studies)


def of_page(folder: Path, studies: int, seed: int = 0) -> list[str] | None:
    """Return a row on a published study: what one analysis decides of its own differences, and how often it is wrong.

    Differences are drawn with the covariances that they have over its seeds; ties are left out.
    """
    evidence = Evidence(load(folder))
    primary = [claim for claim in evidence.over_seeds if claim.primary]
    free = [claim for claim in primary if claim.estimate]
    if not free:
        return None
    shared = sorted(set.intersection(*(set(claim.values) for claim in free)))
    differences = np.array([[claim.values[seed] for claim in free] for seed in shared])
    n, smallest = max(claim.n for claim in free), evidence.request.smallest_effect or 0.0
    covariance, means = np.atleast_2d(np.cov(differences, rowvar=False)), differences.mean(axis=0)
    rng = np.random.default_rng([seed, 11])

    def verdicts(truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        drawn = rng.multivariate_normal(truth, covariance, size=(studies, n), method="svd")
        return decided(drawn, smallest, evidence.error, len(primary))

    (signs, same), (of_none, _), (_, of_edge) = map(verdicts, (means, 0 * means, smallest * np.sign(means)))
    happened = {
        "equal": (of_none != 0).any(axis=1),
        "same": of_edge.any(axis=1),
        "wrong": (signs * np.sign(means) < 0).any(axis=1),
    }
    return [
        f"{folder.parent.name}/{folder.name}",
        str(len(primary)),
        f"{((signs != 0) | same).sum() / studies / len(primary):.1%}",
        *(str(Share(int(hits.sum()), studies)) for hits in happened.values()),
    ]


def decided(drawn: np.ndarray, smallest: float, level: float, planned: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what `holm.decide` does of many studies of one analysis each: the sign of what differs, and what is same.

    drawn: differences [studies, seeds, comparisons], of so many that were planned
    """
    df, mean = drawn.shape[1] - 1, drawn.mean(axis=1)
    error = drawn.std(axis=1, ddof=1) / math.sqrt(df + 1)
    steps = level / (planned - np.arange(mean.shape[1]))

    def rejected(p_values: np.ndarray) -> np.ndarray:
        order = np.argsort(p_values, axis=1)
        passed = np.logical_and.accumulate(np.take_along_axis(p_values, order, axis=1) <= steps, axis=1)
        return np.take_along_axis(passed, np.argsort(order, axis=1), axis=1)

    different = rejected(2 * special.stdtr(df, -np.abs(mean) / error))
    return np.sign(mean) * different, rejected(
        special.stdtr(df, (np.abs(mean) - smallest) / error)
    ) & ~different


# Factors as wholes

SPREADS = ("equal", "level 1.5", "level 2", "level 4", "cells 4", "skewed")
"""Of the noise: the same in all cells; so many times as much in one level of the first factor; rising fourfold over the
cells; exponential in one level."""

RATIOS = (1.5, 2.0, 2.5, 3.0, math.inf)
"""Ratios of spreads, as they are seen in a study, up to which it might be said that something matters."""


def of_wholes(studies: int, sizes: Sequence[int], seeds: int, how: str, seed: int = 0) -> list[Share]:
    """Return the shares of complete factorials in which something is said to matter, at 1%, though nothing does.

    One for each of `RATIOS`, up to which effects get more than their p value.
    """
    rng, cells = np.random.default_rng([seed, seeds, *sizes]), math.prod(sizes)
    level, effects = np.arange(cells) < cells // sizes[0], effects_of(len(sizes))
    kind, _, times = how.partition(" ")
    spreads = {"level": np.where(level, float(times or 1), 1.0), "cells": np.geomspace(1, 4, cells)}.get(
        kind, 1.0
    )
    hits = np.zeros(len(RATIOS), dtype=int)
    for start in range(0, studies, 100):
        noise = spreads * rng.normal(size=(min(100, studies - start), seeds, cells))
        if how == "skewed":
            noise[..., level] = rng.exponential(size=noise[..., level].shape) - 1
        p_values, ratios = permutation_p_values(noise, sizes, effects, draws=999), spread_ratio(noise, sizes)
        wrong = p_values.min(axis=1) <= 0.01 / len(effects)  # the first of Holm's steps
        hits += [int((wrong & (ratios <= most)).sum()) for most in RATIOS]
    return [Share(int(count), studies) for count in hits]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m docs.evidence.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = {"equal": _equal, "effects": _effects, "pools": _pools, "pages": _pages, "wholes": _wholes}
    parser.add_argument("--studies", type=int, default=2000, help="of each kind (default 2000)")
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    flags = parser.parse_args(arguments)
    for part in flags.parts:
        parts[part](flags.studies)
    return 0


def _equal(studies: int) -> None:
    print_row("equal arms", "run", "a false verdict", "a false interval without verdict", head=True)
    designs = {"4 x 3 core, 3 outside": factorial(), "9 arms, a control": against_control()}
    for (design, request), (name, draw), how in itertools.product(designs.items(), KINDS.items(), RUNS):
        print_row(f"{design}: {name}", how, *map(str, of_equal_arms(studies, request, draw, how)))


def _effects(studies: int) -> None:
    print_row(
        "nine arms better by, SDs", "smallest effect, SDs", "run", "a false verdict", "found", head=True
    )
    for sds, smallest, how in itertools.product((0.5, 1.0, 1.3, 2.0), (0.0, 1.0), RUNS):
        smallest = sds if smallest else 0.1
        print_row(f"{sds:g}", f"{smallest:g}", how, *map(str, of_effects(studies, sds, smallest, how)))


def _pools(studies: int) -> None:
    print_row("equal arms from trained trials", "run", "a false verdict", head=True)
    for path in sorted((DOCS / "evidence").glob("*.parquet")):
        pool = pd.read_parquet(path)
        for name, rows in pool[pool["order"] == pool["seed"]].groupby("configuration", observed=True):
            scores = rows["test"].to_numpy()
            smallest = float(scores.std() * math.sqrt(2))
            worst = np.where(scores < np.quantile(scores, 0.15), pool.attrs["baseline"], scores)
            for how, (some, drawn) in itertools.product(
                RUNS, (("", scores), (", worst 15% diverged", worst))
            ):
                share = of_pool(studies, drawn, how, smallest)
                print_row(f"{pool.attrs['corpus']}, {name}{some}", how, str(share))


def _pages(studies: int) -> None:
    heads = ("page", "primary", "decided", "equal arms called different")
    print_row(
        *heads, "arms at the smallest effect called the same", "a wrong direction of its own", head=True
    )
    for study in sorted(DOCS.glob("results/*/*/study.json")):
        if row := of_page(study.parent, studies):
            print_row(*row)


def _wholes(studies: int) -> None:
    heads = (f"ratio seen up to {most:g}" for most in RATIOS)
    print_row("cells", "seeds", "spread", *heads, head=True)
    for sizes, seeds, how in itertools.product(((2, 2), (2, 3), (4, 3), (3, 3, 3)), (6, 12, 20), SPREADS):
        shares = of_wholes(studies, sizes, seeds, how)
        print_row(" x ".join(map(str, sizes)), str(seeds), how, *map(str, shares))


def print_row(*cells: str, head: bool = False) -> None:
    """Print a row of a Markdown table as soon as it is known."""
    row = f"| {' | '.join(cells)} |"
    print(f"\n{row}\n|{' --- |' * len(cells)}" if head else row, flush=True)


if __name__ == "__main__":
    sys.exit(main())
