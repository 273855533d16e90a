"""Is the report right as often as it says? Simulated studies, written as results folders, read by `python -m reports`.

    python -m tests.calibration --processes 8    the long form: one to two hours on one core
    python -m tests.calibration --studies 200    coarser

Prints Markdown tables; docs/evidence.md holds those of the last long run. Nothing here trains: the truth is known.

Identical arms   no arm differs; the study is analysed at 3, 5 and 10 seeds. A *false claim* is a verdict
                 `better` or `worse` in claims.json, of any arm, at any analysis: at most 5% of studies may hold one.
Planted effect   one arm is better by one SD of the paired difference. The study is analysed at 3 seeds, its page
                 asks for more, and is given as many: at least 90% must then find that arm `better`.
Coverage         how often the interval of a difference misses the truth where paired differences are not normal.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
from scipy import stats

from adalayers.results import files as results
from adalayers.results.folder import Folder
from reports.__main__ import main as reports
from reports.evidence.statistics import comparison_alpha
from reports.words.text import table
from tests.helpers.made_up import MadeUp

ANALYSES = (3, 5, 10)
FIRST = 3
PART = 50
"""Studies that one process simulates at a time."""

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
"""Scores [arms, seeds] of arms that do not differ."""


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Luck that all arms of a seed share, and normal noise of SD 0.01."""
    return 0.4 + 0.02 * rng.normal(size=(1, shape[1])) + 0.01 * rng.normal(size=shape)


def accuracy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Accuracy on 100 examples, right 80% of the time: few values, many ties."""
    return rng.binomial(100, 0.8, size=shape) / 100


def collapsing(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal, but one trial in ten falls by thirty SDs, as when training collapses."""
    return normal(rng, shape) - 0.3 * (rng.random(shape) < 0.1)


KINDS: dict[str, Draw] = {
    "normal": normal,
    "accuracy on 100 examples": accuracy,
    "one trial in ten collapses": collapsing,
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


class Simulated:
    """A study of `comparisons` arms and the control, rewritten with other scores before each analysis."""

    def __init__(self, folder: Path, comparisons: int, seeds: int):
        made = MadeUp(seeds=seeds, search=0, evaluations=1, between=0)
        if comparisons >= len(made.arms):
            raise ValueError(f"wanted at most {len(made.arms) - 1} comparisons, got {comparisons}")
        self.arms = [arm["arm"] for arm in made.arms[: comparisons + 1]]
        self.place = Folder(folder)
        self._study = made.study
        self._study["asked"]["arms"] = made.arms[: comparisons + 1]
        self._rows = [made.of(arm) for arm in self.arms]

    def analyse(self, number: int, scores: np.ndarray, seeds: int) -> dict[str, str]:
        """Write the first `seeds` columns of `scores` [arms, seeds] as analysis `number`; return arm -> verdict."""
        self.write(number, scores, seeds)
        with contextlib.redirect_stdout(io.StringIO()):
            assert reports(["--claims-only", self.place.uri]) == 0
        return {claim["arm"]: claim["verdict"] for claim in json.loads(self.place.read_bytes(results.CLAIMS))}

    def write(self, number: int, scores: np.ndarray, seeds: int) -> None:
        rows = []
        for of_arm, values in zip(self._rows, scores[:, :seeds], strict=True):
            for row, value in zip(of_arm, values, strict=False):
                row["test/matthews"] = float(value)
                rows.append(row)
        results.write_trials(self.place, rows)
        self._study["happened"] |= {"looks": number, "counts": {"confirm": {"completed": len(rows)}}}
        self.place.write_json(results.STUDY, self._study)

    def page(self) -> str:
        with contextlib.redirect_stdout(io.StringIO()):
            assert reports([self.place.uri]) == 0
        return self.place.read_bytes(results.REPORT).decode()


def false_claims(
    studies: int, comparisons: int, draw: Draw = normal, analyses: Sequence[int] = ANALYSES, seed: int = 0
) -> Share:
    """Return the share of studies of identical arms that claim a difference at any analysis."""
    rng = np.random.default_rng([seed, 1])
    hits = 0
    for study in _studies(studies, comparisons, max(analyses)):
        scores = draw(rng, (comparisons + 1, max(analyses)))
        verdicts = {
            verdict
            for number, seeds in enumerate(analyses, start=1)
            for verdict in study.analyse(number, scores, seeds).values()
        }
        hits += bool(verdicts & {"better", "worse"})
    return Share(hits, studies)


def effects_found(studies: int, comparisons: int, seed: int = 0) -> tuple[Share, int]:
    """Return the share of studies that find a planted effect of one SD at the seeds their page asks for, and those."""
    rng = np.random.default_rng([seed, 2])
    wanted = seeds_wanted(comparisons)
    sd = 0.01 * np.sqrt(2)  # of the difference of two scores of `normal`
    hits = 0
    for study in _studies(studies, comparisons, wanted):
        scores = normal(rng, (comparisons + 1, wanted))
        scores[1] += sd
        study.analyse(1, scores, FIRST)
        hits += study.analyse(2, scores, wanted)[study.arms[1]] == "better"
    return Share(hits, studies), wanted


def seeds_wanted(comparisons: int) -> int:
    """Return the seeds that the page of a first analysis names, to find one SD."""
    (study,) = _studies(1, comparisons, FIRST)
    study.write(1, normal(np.random.default_rng(0), (comparisons + 1, FIRST)), FIRST)
    found = re.search(r"one standard deviation.*? takes (\d+) seeds per arm", study.page())
    assert found
    return int(found[1])


def _studies(number: int, comparisons: int, seeds: int) -> Iterator[Simulated]:
    with tempfile.TemporaryDirectory() as folder:
        study = Simulated(Path(folder), comparisons, seeds)
        for _ in range(number):
            yield study


DIFFERENCES: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], np.ndarray], float]] = {
    "normal": (lambda rng, shape: rng.normal(1, 1, size=shape), 1.0),
    "accuracy on 1,000 examples, 85% against 80%": (
        lambda rng, shape: (rng.binomial(1000, 0.85, shape) - rng.binomial(1000, 0.8, shape)) / 1000,
        0.05,
    ),
    "accuracy on 100 examples, 85% against 80%": (
        lambda rng, shape: (rng.binomial(100, 0.85, shape) - rng.binomial(100, 0.8, shape)) / 100,
        0.05,
    ),
    "accuracy on 100 examples that differ in two": (
        lambda rng, shape: (rng.binomial(2, 0.5, shape) - rng.binomial(2, 0.5, shape)) / 100,
        0.0,
    ),
    "skewed (exponential, skewness 2)": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "either arm collapses one time in ten": (
        lambda rng, shape: collapsing(rng, shape) - collapsing(rng, shape),
        0.0,
    ),
    "one arm alone collapses one time in ten": (
        lambda rng, shape: rng.normal(size=shape) - 30 * (rng.random(shape) < 0.1),
        -3.0,
    ),
}
"""Paired differences [simulations, seeds] and their true mean."""


def misses(differences: np.ndarray, truth: float, alpha: float) -> tuple[Share, Share]:
    """Return how often the paired t interval at 1 - alpha misses the truth, and how often there is none.

    differences: [simulations, seeds]. Differences that are all the same have no interval, and claim nothing.
    """
    n = differences.shape[1]
    mean, sd = differences.mean(axis=1), differences.std(axis=1, ddof=1)
    none = np.ptp(differences, axis=1) <= 1e-12
    half = stats.t.isf(alpha / 2, n - 1) * sd / np.sqrt(n)
    missed = ~none & (np.abs(mean - truth) > half)
    return Share(int(missed.sum()), len(differences)), Share(int(none.sum()), len(differences))


def coverage(simulations: int, comparisons: int, seeds: Sequence[int] = (3, 5, 13)) -> list[list[str]]:
    """Return rows of the table of misses: differences, n, misses at 5%, and at a comparison's part of analysis 1."""
    rng = np.random.default_rng(3)
    rows = []
    for name, (draw, truth) in DIFFERENCES.items():
        for n in seeds:
            differences = draw(rng, (simulations, n))
            plain, none = misses(differences, truth, 0.05)
            corrected, _ = misses(differences, truth, comparison_alpha(1, comparisons))
            cells = [f"{share.hits / share.n:.2%}" for share in (plain, corrected, none)]
            rows.append([name, str(n), *cells])
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--studies", type=int, default=4000, help="of each kind (default 4000)")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--comparisons", type=int, default=14, help="arms next to the control (default 14)")
    parser.add_argument("--simulations", type=int, default=200_000, help="of the coverage table")
    flags = parser.parse_args(arguments)
    analyses, m = ", ".join(map(str, ANALYSES)), flags.comparisons
    with ProcessPoolExecutor(flags.processes) as pool:
        # Parts of a fixed size and a seed each: the figures do not depend on the number of processes.
        sizes = [min(PART, flags.studies - start) for start in range(0, flags.studies, PART)]
        seeds = range(len(sizes))
        print(f"Identical arms, {m} comparisons, analyses at {analyses} seeds:\n")
        _row("scores", "studies with a false claim [95% interval]", head=True)
        for name, draw in KINDS.items():
            shares = pool.map(false_claims, sizes, repeat(m), repeat(draw), repeat(ANALYSES), seeds)
            _row(name, str(together(shares)))
        print(
            "\nOne arm better by one SD of the paired difference, at the seeds that analysis 1's page names:\n"
        )
        _row("comparisons", "seeds named", "studies that find it [95% interval]", head=True)
        for comparisons in (1, m):
            found = list(pool.map(effects_found, sizes, repeat(comparisons), seeds))
            _row(str(comparisons), str(found[0][1]), str(together(share for share, _ in found)))
    part = comparison_alpha(1, flags.comparisons)
    print(f"\nMisses of single intervals, {flags.simulations:,} simulations each:\n")
    heads = [
        "paired differences",
        "n",
        "at 5%",
        f"at {part:.3%} (analysis 1, {flags.comparisons} comparisons)",
        "none",
    ]
    print(table(heads, coverage(flags.simulations, flags.comparisons)))
    return 0


def _row(*cells: str, head: bool = False) -> None:
    """Print a row of a Markdown table as soon as it is known."""
    lines = table(cells, [] if head else [cells]).splitlines()
    print("\n".join(lines if head else lines[2:]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
