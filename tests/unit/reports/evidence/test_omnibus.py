"""Factors as wholes: against F tests of what was put in, and by how often none is called one."""

import math

import numpy as np
import pytest
from scipy import stats

from adalayers.results.interim_analyses import CROSSED
from adalayers.study import Factor
from reports.evidence.omnibus import MATTERS, omnibus, permutation_p_values, spread_ratio
from tests.helpers.made_scores import GRID, analysed, request
from tests.helpers.made_up import CORE, MadeUp
from tests.helpers.pages import evidence_of

EFFECTS = [(0,), (1,), (0, 1)]


def f_test(table: np.ndarray, rows: int, columns: int) -> list[float]:
    """Return the p values of both factors and of their interaction in a design of seeds by rows by columns."""
    seeds, cells = table.shape
    cube = (table - table.mean(axis=1, keepdims=True)).reshape(seeds, rows, columns)
    mean = cube.mean(axis=0)
    by_row, by_column = mean.mean(axis=1, keepdims=True), mean.mean(axis=0, keepdims=True)
    squares = [
        columns * seeds * (by_row**2).sum(),
        rows * seeds * (by_column**2).sum(),
        seeds * ((mean - by_row - by_column) ** 2).sum(),
    ]
    degrees = [rows - 1, columns - 1, (rows - 1) * (columns - 1)]
    left, of_left = ((cube - mean) ** 2).sum(), (seeds - 1) * (cells - 1)
    return [
        stats.f.sf(square / df / (left / of_left), df, of_left)
        for square, df in zip(squares, degrees, strict=True)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_permutation_gives_the_p_values_of_f_where_scores_are_normal(seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(8, 6)) + rng.normal(size=(8, 1)) + np.repeat([0.0, 0.7], 3)
    found = permutation_p_values(table, [2, 3], EFFECTS)
    assert found == pytest.approx(f_test(table, 2, 3), abs=0.02)


def test_an_interaction_alone_is_no_effect_of_its_factors():
    rng = np.random.default_rng(0)
    table = 0.1 * rng.normal(size=(6, 4)) + [1, -1, -1, 1]
    one, two, together = permutation_p_values(table, [2, 2], EFFECTS)
    assert together == 1 / 10_000 < 0.05 < min(one, two)


def test_scores_that_never_differ_show_nothing():
    assert permutation_p_values(np.tile([[0.4], [0.5]], 4), [2, 2], EFFECTS).tolist() == [1.0] * 3


def scores(seeds: int, effect: float):
    rng = np.random.default_rng(0)
    made = {arm: {seed: 0.4 + 0.01 * rng.normal() for seed in range(1, seeds + 1)} for arm in GRID}
    for arm, config in GRID.items():
        made[arm] = {seed: x + effect * (config["alpha"] == 512) for seed, x in made[arm].items()}
    return made


def test_a_complete_crossing_is_asked_for_each_factor_and_their_interaction():
    found = omnibus(request(GRID), scores(6, 0.05), "test", analysed(GRID, 6))
    assert [(effect.as_json()["arm"], effect.verdict) for effect in found] == [
        ("alpha", MATTERS),
        ("weight", "not enough evidence"),
        ("alpha x weight", "not enough evidence"),
    ]
    alpha = found[0].as_json()
    assert (alpha["kind"], alpha["n"], alpha["p_value"], alpha["primary"]) == ("omnibus", 6, 1e-4, False)
    assert {alpha[name] for name in ("control", "difference", "low", "high", "at_most")} == {None}
    assert found[0].level == pytest.approx(0.04 / CROSSED * 0.01 / 3)  # `analysed` has 4%


def test_what_is_not_asked():
    made, looks = scores(7, 0.05), analysed(GRID, 7)
    gone = {arm: row for arm, row in made.items() if arm != "alpha=8 weight=0"}
    incomplete = {arm: config for arm, config in GRID.items() if arm in gone}
    assert omnibus(request(incomplete), gone, "test", looks) == []  # a cell is missing
    assert omnibus(request(GRID), made, "test", []) == []  # no analysis yet
    one = {arm: {"alpha": config["alpha"]} for arm, config in GRID.items() if config["weight"] == 0}
    assert omnibus(request(one), made, "test", looks) == []  # one factor
    del made["alpha=8 weight=0"][3]
    assert {effect.n for effect in omnibus(request(GRID), made, "test", looks)} == {6}
    condition = (Factor("alpha", "alpha", condition=True), Factor("weight", "weight"))
    asked = omnibus(request(GRID, factors=condition), made, "test", looks)
    assert [effect.factors for effect in asked] == [("weight",), ("alpha", "weight")]


def test_levels_that_vary_unequally_get_p_alone():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, 6)) * [1, 1, 1, 3, 3, 3] + rng.normal(size=(400, 1))
    # Of a seed's own mean each cell keeps a part: (25 x 9 + 2 x 9 + 3) / 36 against (25 + 2 + 27) / 36.
    assert spread_ratio(table, [2, 3]) == pytest.approx(math.sqrt(246 / 54), rel=0.1)
    made = scores(6, 0.05)
    for arm, config in GRID.items():
        spread = 5.0 if config["alpha"] == 8 else 1.0
        made[arm] = {seed: 0.4 + spread * (score - 0.4) for seed, score in made[arm].items()}
    found = omnibus(request(GRID), made, "test", analysed(GRID, 6))
    assert {effect.verdict for effect in found} == {None}
    assert all(0 < effect.p_value <= 1 for effect in found)


def test_the_grid_has_a_row_per_cell_with_its_mean_and_entropy(tmp_path):
    made = MadeUp(seeds=2, search=0)
    grid = evidence_of(made, tmp_path).grid.set_index("arm")
    assert list(grid.index) == list(CORE)
    rows = made.of(CORE[4])
    for column, name in (("mean", "test/matthews"), ("entropy", "mix/entropy")):
        assert grid.loc[CORE[4], column] == pytest.approx(np.mean([row[name] for row in rows]))
    assert (grid.loc[CORE[4], "config/alpha"], grid.loc[CORE[4], "config/entropy_weight"]) == (8, 0.001)
