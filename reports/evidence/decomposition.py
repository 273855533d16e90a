"""How much of the score alpha moves, how much lambda, and how much only the two together.

The confirmed core is a whole grid run on the same seeds, so its scores decompose without a model of the
response: score = mean + alpha + lambda + alpha x lambda + seed + the rest (a randomised block design).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import optimize, stats

from reports.evidence.statistics import LEVEL
from reports.evidence.tables import FACTORS

COLUMNS = ["part", "df", "size", "low", "high", "seeds", "cells"]
INTERACTION = "interaction"


def decompose(core: pd.DataFrame, scores: dict[str, pd.Series], level: float = LEVEL) -> pd.DataFrame:
    """A row for each factor with two levels or more, and for their interaction.

    core:   as from `tables.core`, a row per cell; scores: arm -> its scores by seed.
    size:   standard deviation of the part's true effects over its levels, in units of the score: what is
            left of the observed one (a mean square) once the noise that seeds alone would give is taken
            off, and 0 where nothing is left.
    low, high: interval of that size, from the noncentral F distribution (Steiger 2004); NaN without noise, and
            where the part is smaller than noise alone would make it: the method then gives no width at all.
    seeds:  those on which every cell has a score: only these are used. cells: of the grid.

    Empty where the grid has holes, a single cell, or fewer than two shared seeds.
    """
    grid = core.dropna(subset=list(FACTORS)).drop_duplicates(list(FACTORS))
    levels = [sorted(grid[factor].unique()) for factor in FACTORS]
    a, b = (len(level_) for level_ in levels)
    if len(grid) < 2 or len(grid) != a * b or any(arm not in scores for arm in grid["arm"]):
        return pd.DataFrame(columns=COLUMNS)
    by_seed = pd.concat([scores[arm] for arm in grid.sort_values(list(FACTORS))["arm"]], axis=1, join="inner")
    n = len(by_seed)
    if n < 2:
        return pd.DataFrame(columns=COLUMNS)
    values = by_seed.to_numpy(dtype=float).reshape(n, a, b)
    cells = values.mean(axis=0)
    grand = cells.mean()
    rows, columns = cells.mean(axis=1) - grand, cells.mean(axis=0) - grand
    both = cells - grand - rows[:, None] - columns[None, :]
    blocks = values.mean(axis=(1, 2)) - grand
    rest = values - cells[None] - blocks[:, None, None]
    df_rest = (a * b - 1) * (n - 1)
    noise = float((rest**2).sum()) / df_rest
    parts = [
        (FACTORS[0], a - 1, n * b * float((rows**2).sum()), n * b),
        (FACTORS[1], b - 1, n * a * float((columns**2).sum()), n * a),
        (INTERACTION, (a - 1) * (b - 1), n * float((both**2).sum()), n),
    ]
    table = [
        {
            "part": name,
            "df": df,
            **_size(total, df, noise, df_rest, per_level, level),
            "seeds": n,
            "cells": a * b,
        }
        for name, df, total, per_level in parts
        if df > 0
    ]
    return pd.DataFrame(table, columns=COLUMNS)


def _size(
    total: float, df: int, noise: float, df_rest: int, per_level: int, level: float
) -> dict[str, float]:
    """Return size, low, high of one part: noncentrality / per_level is the sum of its squared effects."""
    scale = noise / (per_level * df)
    if (
        noise <= 1e-18
    ):  # the same difference on every seed, rounding apart: nothing to reckon an interval from
        return {"size": math.sqrt(total / (per_level * df)), "low": np.nan, "high": np.nan}
    observed = total / df / noise
    size = math.sqrt(max(0.0, observed - 1) * df * scale)
    ends = [_noncentrality(observed, df, df_rest, share) for share in ((1 + level) / 2, (1 - level) / 2)]
    if ends[1] == 0:
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
