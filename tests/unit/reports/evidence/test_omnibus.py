"""Factors as wholes: against F tests of what was put in, and by how often none is called one."""

import math

import numpy as np
import pytest
from scipy import stats

from adalayers.results.interim_analyses import CROSSED
from adalayers.study import Factor
from reports.evidence.omnibus import MATTERS, omnibus, permutation_p_values, spread_ratio
from tests.helpers.made_scores import GRID, analysed, by_seed, request

EFFECTS = [(0,), (1,), (0, 1)]


def test_permutation_gives_the_p_value_of_f_where_scores_are_normal():
    """Of two levels, and of six cells as levels of one factor, in blocks of seeds."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(8, 6)) + rng.normal(size=(8, 1)) + np.repeat([0.0, 0.7], 3)
    left = table - table.mean(axis=1, keepdims=True)
    cells = left.mean(axis=0)
    error = ((left - cells) ** 2).sum() / (7 * 5)
    levels = cells.reshape(2, 3).mean(axis=1)
    of_levels = stats.f.sf(8 * 3 * (levels**2).sum() / error, 1, 7 * 5)
    of_cells = stats.f.sf(8 * (cells**2).sum() / 5 / error, 5, 7 * 5)
    assert permutation_p_values(table, [2, 3], EFFECTS)[0] == pytest.approx(of_levels, abs=0.02)
    assert permutation_p_values(table, [6], [(0,)])[0] == pytest.approx(of_cells, abs=0.02)


def test_an_interaction_alone_is_no_effect_of_its_factors_and_equal_scores_show_nothing():
    rng = np.random.default_rng(0)
    table = 0.1 * rng.normal(size=(6, 4)) + [1, -1, -1, 1]
    one, two, together = permutation_p_values(table, [2, 2], EFFECTS)
    assert together == 1 / 10_000 < 0.05 < min(one, two)
    assert permutation_p_values(np.tile([[0.4], [0.5]], 4), [2, 2], EFFECTS).tolist() == [1.0] * 3


def scores(seeds: int, unequal: float = 1.0):
    """Return scores of the grid: alpha 512 is 0.05 better, and alpha 8 varies so many times as much."""
    rng, better, sds = np.random.default_rng(0), {512: 0.05}, {8: 0.01 * unequal}
    rows = {arm: (better.get(of["alpha"], 0.0), sds.get(of["alpha"], 0.01)) for arm, of in GRID.items()}
    return by_seed({arm: 0.4 + gain + sd * rng.normal(size=seeds) for arm, (gain, sd) in rows.items()})


def test_a_complete_crossing_is_asked_for_each_factor_and_their_interaction():
    found = omnibus(request(GRID), scores(6), "test", analysed(GRID, 6))
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
    made, looks = scores(7), analysed(GRID, 7)
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
    found = omnibus(request(GRID), scores(6, unequal=5.0), "test", analysed(GRID, 6))
    assert {effect.verdict for effect in found} == {None}
