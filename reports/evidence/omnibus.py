"""Whether a factor matters at all, and whether factors depend on each other: a complete crossing, asked as a whole.

Permutation within seeds (Freedman and Lane 1983): what is left of the scores once seeds and all other effects are taken
off is shuffled among the cells of each seed, which would change nothing if the effect were none.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from adalayers.comparisons import FIRST, Kind, crossing
from adalayers.results.interim_analyses import CROSSED, OMNIBUS, InterimAnalysis
from adalayers.results.intervals import TOLERANCE
from adalayers.results.study_file import RequestRecord
from adalayers.storage.to_json import JsonObject
from reports.evidence.claims import Claim, Values
from reports.evidence.holm import OPEN, holm

MATTERS = "matters"
DRAWS = 9999

UNEQUAL = 2.0
"""How many times as much one level may vary as another of its factor: beyond it something is said to matter too often,
and an effect gets its p value alone (docs/evidence.md: of what was simulated, the largest that does not)."""

_ROUNDING = 1 - 1e-9


@dataclass(frozen=True, kw_only=True)
class Omnibus(Claim):
    """What is found of an effect: of one factor, or how several depend on each other; it has no two arms."""

    factors: tuple[str, ...]
    primary: bool = False

    @property
    def kind(self) -> Kind:
        return "omnibus"

    def as_json(self) -> JsonObject:
        """Return the fields of `claims.json`; those of two arms are null."""
        return {**super().as_json(), "arm": " x ".join(self.factors), "control": None}


def crossed(request: RequestRecord) -> tuple[tuple[str, ...], dict[tuple[Any, ...], str]]:
    """Return the factors that a study crosses completely, and levels -> arm; none where it does not."""
    cells = {arm.name: arm.levels for arm in request.arms if arm.role == "core"}
    return crossing(cells, [factor.name for factor in request.factors])


def omnibus(
    request: RequestRecord, scores: Values, split: str, analyses: Sequence[InterimAnalysis]
) -> list[Omnibus]:
    """Return what is found of each factor and interaction, as of the last planned analysis.

    A condition is not asked by itself, nor with conditions alone. Seeds that lack a cell are left out.
    """
    names, arms = crossed(request)
    planned = [analysis for analysis in analyses if not analysis.extension]
    if not names or not planned:
        return []
    covered = planned[-1].covered
    levels = [list(dict.fromkeys(key[place] for key in arms)) for place in range(len(names))]
    cells = [arms[key] for key in itertools.product(*levels)]
    seeds = sorted(set.intersection(*({*covered.get(arm, ())} & scores.get(arm, {}).keys() for arm in cells)))
    if len(seeds) < FIRST:
        return []
    conditions = {factor.name for factor in request.factors if factor.condition}
    effects = [
        effect for effect in effects_of(len(names)) if not {names[place] for place in effect} <= conditions
    ]
    table, sizes = np.array([[scores[arm][seed] for arm in cells] for seed in seeds]), [*map(len, levels)]
    p_values = dict(zip(effects, permutation_p_values(table, sizes, effects).tolist(), strict=True))
    steps = holm(p_values, planned[-1].level * OMNIBUS / CROSSED)
    alike = spread_ratio(table, sizes) <= UNEQUAL
    return [
        Omnibus(
            factors=tuple(names[place] for place in effect),
            metric=request.metric,
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


def effects_of(factors: int) -> list[tuple[int, ...]]:
    """Return the effects of so many factors, as places: each alone, then interactions."""
    return [e for size in range(1, factors + 1) for e in itertools.combinations(range(factors), size)]


def spread_ratio(tables: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return how many times as much scores vary at one level as at another of the same factor, at most, per table.

    They vary around what seeds and cells have; arguments as of `permutation_p_values`.
    """
    of_seeds, of_cells = (tables.mean(axis=axis, keepdims=True) for axis in (-1, -2))
    left = tables - of_seeds - of_cells + tables.mean(axis=(-2, -1), keepdims=True)
    squares = (left**2).sum(axis=-2).reshape(*left.shape[:-2], *sizes)
    ratios = []
    for place in range(len(sizes)):
        of_level = squares.mean(axis=tuple(axis - len(sizes) for axis in range(len(sizes)) if axis != place))
        ratios.append(of_level.max(axis=-1) / np.maximum(of_level.min(axis=-1), np.finfo(float).tiny))
    return np.sqrt(np.max(ratios, axis=0))


def permutation_p_values(
    tables: np.ndarray, sizes: Sequence[int], effects: Sequence[Collection[int]], draws: int = DRAWS
) -> np.ndarray:
    """Return the p values [..., effects], by F with the residual of seeds and cells.

    Args:
        tables: Scores [..., seeds, cells], the cells in the order of `itertools.product` over the factors' levels.
        sizes: How many levels each factor has.
        effects: The places of the factors of each.
        draws: Permutations, of a fixed generator: the same for all effects and tables.
    """
    seeds, cells = tables.shape[-2:]
    rows = tables.reshape(-1, seeds, cells) - tables.reshape(-1, seeds, cells).mean(axis=-1, keepdims=True)
    means = rows.mean(axis=1)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(cells), (draws, seeds, 1)), axis=2)
    # The mean of each cell over seeds is a sum of what the draw puts there: a row of a sparse matrix per draw and cell.
    taken = (order + cells * np.arange(seeds)[:, None]).swapaxes(1, 2).ravel()
    ends = np.arange(0, taken.size + 1, seeds)
    shuffle = sparse.csr_array(
        (np.full(taken.size, 1 / seeds), taken, ends), shape=(draws * cells, seeds * cells)
    )
    p_values = []
    for effect in effects:
        averages = [np.full((size, size), 1 / size) for size in sizes]
        of_effect = reduce(
            np.kron,
            [np.eye(len(mean)) - mean if place in effect else mean for place, mean in enumerate(averages)],
        )
        left = rows - (means - means @ of_effect)[:, None]
        total = (left**2).sum(axis=(1, 2)) / seeds
        drawn = (shuffle @ left.reshape(-1, seeds * cells).T).reshape(draws, cells, -1)
        # [1 + draws, cells, tables], the own one first.
        every = np.concatenate([(of_effect @ means.T)[None], drawn])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = ((of_effect @ every) ** 2).sum(axis=1) / (total - (every**2).sum(axis=1))
        varies = np.abs(left).max(axis=(1, 2)) > TOLERANCE * np.abs(tables).max()
        as_large = (ratios >= ratios[0] * _ROUNDING).sum(axis=0)
        p_values.append(np.where(varies, as_large / (draws + 1), 1.0).reshape(tables.shape[:-2]))
    return np.stack(p_values, axis=-1)
