"""How much of the score each factor of the core moves, and how much only several of them together.

The confirmed core is a whole grid run on the same seeds, so its scores decompose without a model of the
response: score = mean + each factor + each combination of factors + seed + the rest (a randomised block design).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import optimize, stats

from adalayers.results.study_file import Factor
from reports.evidence.statistics import LEVEL
from reports.reading.factors import column, in_order, levels

COLUMNS = ["part", "df", "size", "low", "high", "seeds", "cells"]


def decompose(
    core: pd.DataFrame,
    scores: dict[str, pd.Series],
    factors: Sequence[Factor],
    level: float = LEVEL,
    *,
    alike: bool = False,
) -> pd.DataFrame:
    """A row for each factor with two levels or more, then for each combination of them: their interaction.

    core:   as from `tables.core`, a row per cell; scores: arm -> its scores by seed.
    alike:  whether some cells give the same predictions: they are no independent witnesses then.
    part:   the names of its factors, a tuple
    size:   standard deviation of the part's true effects over its levels, in units of the score: what is
            left of the observed one (a mean square) once the noise that seeds alone would give is taken
            off, and 0 where nothing is left.
    low, high: interval of that size, from the noncentral F distribution (Steiger 2004); NaN without noise, where
            the part is smaller than noise alone would make it, and where cells are `alike`.
    seeds:  those on which every cell has a score: only these are used. cells: of the grid.

    Empty where the grid has holes, a single cell, or fewer than two shared seeds.
    """
    columns = [column(factor.name) for factor in factors]
    grid = core.dropna(subset=columns).drop_duplicates(columns)
    shape = [len(levels(grid[name])) for name in columns]
    if len(grid) < 2 or len(grid) != math.prod(shape) or any(arm not in scores for arm in grid["arm"]):
        return pd.DataFrame(columns=COLUMNS)
    by_seed = pd.concat([scores[arm] for arm in in_order(grid, factors)["arm"]], axis=1, join="inner")
    n = len(by_seed)
    if n < 2:
        return pd.DataFrame(columns=COLUMNS)
    values = by_seed.to_numpy(dtype=float).reshape(n, *shape)
    cells = values.mean(axis=0)
    blocks = values.mean(axis=tuple(range(1, values.ndim)), keepdims=True) - cells.mean()
    df_rest = (cells.size - 1) * (n - 1)
    noise = float(((values - cells[None] - blocks) ** 2).sum()) / df_rest
    table = []
    for part, effect in _effects(cells).items():
        df = math.prod(shape[axis] - 1 for axis in part)
        if df > 0:
            per_level = n * cells.size // effect.size
            total = per_level * float((effect**2).sum())
            row = {"part": tuple(factors[axis].name for axis in part), "df": df}
            row |= _size(total, df, noise, df_rest, per_level, level)
            if alike:
                row |= {"low": np.nan, "high": np.nan}
            table.append(row | {"seeds": n, "cells": cells.size})
    return pd.DataFrame(table, columns=COLUMNS)


def _effects(cells: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    """Return for each set of axes what its levels do beyond all smaller sets, the other axes of length 1."""
    axes = range(cells.ndim)
    effects: dict[tuple[int, ...], np.ndarray] = {}
    for part in (part for size in range(cells.ndim + 1) for part in itertools.combinations(axes, size)):
        mean = cells.mean(axis=tuple(axis for axis in axes if axis not in part), keepdims=True)
        effects[part] = mean - sum(effect for smaller, effect in effects.items() if set(smaller) < set(part))
    return {part: effect for part, effect in effects.items() if part}


def _size(
    total: float, df: int, noise: float, df_rest: int, per_level: int, level: float
) -> dict[str, float]:
    """Return size, low, high of one part: noncentrality / per_level is the sum of its squared effects."""
    scale = noise / (per_level * df)
    if noise <= 1e-18:  # the same difference on every seed, but for rounding: no interval can be computed
        return {"size": math.sqrt(total / (per_level * df)), "low": np.nan, "high": np.nan}
    observed = total / df / noise
    size = math.sqrt(max(0.0, observed - 1) * df * scale)
    ends = [_noncentrality(observed, df, df_rest, share) for share in ((1 + level) / 2, (1 - level) / 2)]
    if observed < 1 or ends[1] == 0:
        return {"size": size, "low": np.nan, "high": np.nan}
    low, high = (math.sqrt(end * scale) for end in ends)
    return {"size": size, "low": low, "high": high}


def _noncentrality(observed: float, df: int, df_rest: int, share: float) -> float:
    """Return the noncentrality under which F falls below `observed` with chance `share`; 0 where none does."""

    def below(noncentrality: float) -> float:
        return float(stats.ncf.cdf(observed, df, df_rest, noncentrality)) - share

    if stats.f.cdf(observed, df, df_rest) <= share:
        return 0.0
    high = max(1.0, observed * df)
    while below(high) > 0:
        high *= 2
    return float(optimize.brentq(below, 0.0, high, xtol=1e-6))
