"""Whether a factor matters at all, and whether factors depend on each other: a complete crossing, asked as a whole.

Permutation within seeds (Freedman and Lane 1983): what is left of the scores once seeds and all other effects are taken
off is shuffled among the cells of each seed, which would change nothing if the effect were none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from adalayers.comparisons import FIRST, crossing
from adalayers.results.interim_analyses import CROSSED, OMNIBUS, InterimAnalysis
from adalayers.results.intervals import TOLERANCE
from reports.evidence.claims import FIELDS, Values
from reports.evidence.holm import OPEN, holm
from reports.reading.load import Plan

MATTERS = "matters"
DRAWS = 9999

UNEQUAL, FEW_CELLS = 2.0, 4
"""How many times as much one level may vary as another of its factor, where there are more cells than so few: beyond it
something is said to matter too often, and an effect gets its p value alone (docs/evidence.md)."""

_ROUNDING = 1 - 1e-9


@dataclass(frozen=True, kw_only=True)
class Omnibus:
    """What is found of an effect: of one factor, or how several depend on each other; fields as of `Claim`."""

    factors: tuple[str, ...]
    metric: str
    split: str
    n: int
    level: float
    comparisons: int
    analyses: int
    p_value: float
    p_adjusted: float
    verdict: str | None
    kind: str = "omnibus"
    at: str = ""
    primary: bool = False
    tie: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the fields of `claims.json`; those of two arms are null."""
        return {
            name: " x ".join(self.factors) if name == "arm" else getattr(self, name, None) for name in FIELDS
        }


def crossed(plan: Plan) -> tuple[tuple[str, ...], dict[tuple[Any, ...], str]]:
    """Return the factors that a study crosses completely, and levels -> arm; none where it does not."""
    cells = {arm.name: arm.levels for arm in plan.arms if arm.role == "core"}
    return crossing(cells, [factor.name for factor in plan.factors])


def omnibus(plan: Plan, scores: Values, split: str, analyses: Sequence[InterimAnalysis]) -> list[Omnibus]:
    """Return what is found of each factor and interaction, as of the last planned analysis.

    A condition is not asked by itself, nor with conditions alone. Seeds that lack a cell are left out.
    """
    names, arms = crossed(plan)
    planned = [analysis for analysis in analyses if not analysis.extension]
    if not names or not planned:
        return []
    covered = planned[-1].covered
    levels = [list(dict.fromkeys(key[place] for key in arms)) for place in range(len(names))]
    cells = [arms[key] for key in itertools.product(*levels)]
    seeds = sorted(set.intersection(*({*covered.get(arm, ())} & scores.get(arm, {}).keys() for arm in cells)))
    if len(seeds) < FIRST:
        return []
    conditions = {factor.name for factor in plan.factors if factor.condition}
    effects = [
        effect
        for size in range(1, len(names) + 1)
        for effect in itertools.combinations(range(len(names)), size)
        if not {names[place] for place in effect} <= conditions
    ]
    table = np.array([[scores[arm][seed] for arm in cells] for seed in seeds])
    p_values = dict(zip(effects, permutation_p_values(table, [*map(len, levels)], effects), strict=True))
    alike = len(cells) <= FEW_CELLS or spread_ratio(table, [*map(len, levels)]) <= UNEQUAL
    level = planned[-1].level * OMNIBUS / CROSSED
    steps = holm(p_values, level)
    return [
        Omnibus(
            factors=tuple(names[place] for place in effect),
            metric=plan.metric,
            split=split,
            n=len(seeds),
            level=steps[effect].level,
            comparisons=len(effects),
            analyses=len(planned),
            p_value=p_values[effect],
            p_adjusted=steps[effect].adjusted,
            verdict=(MATTERS if steps[effect].rejected else OPEN) if alike else None,
        )
        for effect in effects
    ]


def spread_ratio(table: np.ndarray, sizes: Sequence[int]) -> float:
    """Return how many times as much scores vary at one level as at another of the same factor, at most.

    They vary around what seeds and cells have; arguments as of `permutation_p_values`.
    """
    left = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    squares = (left**2).sum(axis=0).reshape(sizes)
    by_level = [
        squares.sum(axis=tuple({*range(len(sizes))} - {place})) / (squares.size / size)
        for place, size in enumerate(sizes)
    ]
    return math.sqrt(max(found.max() / max(found.min(), np.finfo(float).tiny) for found in by_level))


def permutation_p_values(
    table: np.ndarray, sizes: Sequence[int], effects: Sequence[Collection[int]], draws: int = DRAWS
) -> list[float]:
    """Return the p value of each effect, by F with the residual of seeds and cells.

    Args:
        table: Scores [seeds, cells], the cells in the order of `itertools.product` over the factors' levels.
        sizes: How many levels each factor has.
        effects: The places of the factors of each.
        draws: Permutations, of a fixed generator: the same for all effects.
    """
    seeds, cells = table.shape
    rows = table - table.mean(axis=1, keepdims=True)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(cells), (draws, seeds, 1)), axis=2)
    p_values = []
    for effect in effects:
        parts = [
            np.eye(size) - 1 / size if place in effect else np.full((size, size), 1 / size)
            for place, size in enumerate(sizes)
        ]
        of_effect = reduce(np.kron, parts)
        means = rows.mean(axis=0)
        left = rows - (means - means @ of_effect)
        if np.abs(left).max() <= TOLERANCE * np.abs(table).max():
            p_values.append(1.0)
            continue
        shuffled = np.take_along_axis(left[None], order, axis=2).mean(axis=1)
        ratios = [
            ((cell_means @ of_effect) ** 2).sum(axis=-1)
            / ((left**2).sum() / seeds - (cell_means**2).sum(axis=-1))
            for cell_means in (means @ of_effect, shuffled)
        ]
        p_values.append(float((1 + (ratios[1] >= ratios[0] * _ROUNDING).sum()) / (draws + 1)))
    return p_values
