"""From differences by seed to verdicts: paired t tests, two one-sided tests, and Holm's procedure over both.

Functions of plain numbers. Two errors are kept apart, each by a Holm run of its own: to call equal arms different (the
two-sided p value of a t test), and to call arms the same that differ by the smallest effect (the larger p value of two
one-sided tests; Schuirmann 1987). An analysis gives each run its level; over several analyses levels add up.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import special

from adalayers.results.intervals import all_same

BETTER, WORSE = "better", "worse"
SAME, OPEN, TIE = "no difference seen", "not enough evidence", "tie"

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Estimate:
    """A mean difference as its tests need it.

    Attributes:
        difference: The mean.
        error: Its standard error; df: the degrees of freedom of its t.
        smallest: The smallest effect of interest; None where that is not known: then nothing is ever the same.
    """

    difference: float
    error: float
    df: int
    smallest: float | None = None

    @property
    def p_value(self) -> float:
        """Of the two-sided test that the difference is 0."""
        return 2 * float(special.stdtr(self.df, -abs(self.difference) / self.error))

    @property
    def same_p_value(self) -> float:
        """The larger one of the two one-sided tests that the difference is at least `smallest`, up or down."""
        if self.smallest is None:
            return 1.0
        return float(special.stdtr(self.df, (abs(self.difference) - self.smallest) / self.error))

    def half(self, level: float, variance: float = 0.0) -> float:
        """Return the one-sided half-width at an error of `level`.

        half-width^2 = (t x standard error over seeds)^2 + (z x standard error over examples)^2: a handful of seeds
        leaves few degrees of freedom to the first alone, the second comes from hundreds of examples.

        Args:
            level: The error of one side.
            variance: Of the difference over draws of test examples.
        """
        t, z = -float(special.stdtrit(self.df, level)), -float(special.ndtri(level))
        return math.hypot(t * self.error, z * math.sqrt(variance))


def paired(by_seed: Iterable[float], smallest: float | None, *, scale: float) -> Estimate | None:
    """Return the mean of differences by seed, two at least; None where all are the same but for rounding.

    scale: the largest value they are differences of, which sets what rounding is: 0.3 - 0.2 and 0.4 - 0.3 are the same
    """
    values = np.fromiter(by_seed, dtype=float)
    if all_same(values, scale=scale):
        return None
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    return Estimate(float(values.mean()), error, int(values.size) - 1, smallest)


def unpaired(samples: Sequence[Sequence[float]], smallest: float | None, *, scale: float) -> Estimate | None:
    """Return the sum of the means of independent samples, with Welch's standard error.

    It has the degrees of freedom of the smallest sample: Welch's own reject too often at the small levels of a family.
    None where none varies. Each has two values at least.
    """
    arrays = [np.asarray(sample) for sample in samples]
    variances = [array.var(ddof=1) / array.size for array in arrays if not all_same(array, scale=scale)]
    if not variances:
        return None
    difference = float(sum(array.mean() for array in arrays))
    return Estimate(difference, math.sqrt(sum(variances)), min(map(len, samples)) - 1, smallest)


@dataclass(frozen=True)
class Step:
    """What a Holm run makes of one p value.

    Attributes:
        rejected: Whether it is rejected.
        level: The level of the step that rejected it, or at which the run stopped.
        adjusted: Its adjusted p value.
    """

    rejected: bool
    level: float
    adjusted: float


def holm(p_values: Mapping[Key, float], level: float, others: int = 0) -> dict[Key, Step]:
    """Run Holm's step-down procedure (Holm 1979).

    Args:
        p_values: Of the hypotheses that may be rejected.
        level: The error of the whole run.
        others: How many more hypotheses count, that may not.
    """
    many = len(p_values) + others
    steps: dict[Key, Step] = {}
    stopped = adjusted = 0.0
    for rank, (key, p_value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        own = level / (many - rank)
        adjusted = max(adjusted, min(1.0, (many - rank) * p_value))
        stopped = stopped or (own if p_value > own else 0.0)
        steps[key] = Step(not stopped, stopped or own, adjusted)
    return steps


@dataclass(frozen=True)
class Decision:
    """What the analyses so far say of a comparison.

    Attributes:
        analysis: The place of the one that decided it, else of the last one that asked.
        verdict: `BETTER`, `WORSE`, `SAME` or `OPEN`; None of what has none.
        different, same: What the two runs of that analysis made of it.
        comparisons: How many shared the level there.
    """

    analysis: int
    verdict: str | None
    different: Step
    same: Step
    comparisons: int


def decide(analyses: Sequence[tuple[float, Mapping[Key, Estimate | None]]]) -> dict[Key, Decision]:
    """Return what two Holm runs at each analysis decide of planned comparisons.

    What an analysis decides stays. Later, each run drops only what it rejected itself: what the other one closed still
    counts among its comparisons, as one that cannot be rejected.

    Args:
        analyses: The level of each, and the comparisons that it judges, all that were planned; None: one that cannot be
            tested, which counts all the same.
    """
    decisions: dict[Key, Decision] = {}
    rejected: tuple[set[Key], set[Key]] = (set(), set())
    for place, (level, family) in enumerate(analyses):
        asked = {
            key: estimate
            for key, estimate in family.items()
            if key not in decisions or decisions[key].verdict == OPEN
        }
        runs = []
        for dropped, p_value in zip(rejected, ("p_value", "same_p_value"), strict=True):
            own = {key: getattr(estimate, p_value, 1.0) for key, estimate in asked.items()}
            runs.append(holm(own, level, len(family.keys() - asked.keys() - dropped)))
            dropped |= {key for key, step in runs[-1].items() if step.rejected}
        for key, estimate in asked.items():
            different, same = (run[key] for run in runs)
            verdict = SAME if same.rejected else OPEN
            if estimate and different.rejected:
                verdict = BETTER if estimate.difference > 0 else WORSE
            decisions[key] = Decision(place, verdict, different, same, len(family))
    return decisions
