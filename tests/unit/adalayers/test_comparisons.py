"""Planned comparisons: which ones a study has, and their weights, by hand."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from adalayers.comparisons import Comparison, PlannedArm, crossing, planned_comparisons

ALPHAS, WEIGHTS = (1, 8, 64, 512), (0.0, 0.001, 0.01)


def grid(**levels: Sequence[float]) -> list[PlannedArm]:
    configs = [dict(zip(levels, values, strict=True)) for values in itertools.product(*levels.values())]
    return [PlannedArm(" ".join(f"{k}={v:g}" for k, v in own.items()), "core", own) for own in configs]


GRID = grid(alpha=ALPHAS, weight=WEIGHTS)
CONTROL = GRID[0].name
FACTORS = ("alpha", "weight")
LAST = PlannedArm("last", "last", {})


def named(found: Sequence[Comparison]) -> dict[tuple[str, str, str], Mapping[str, float]]:
    return {(pair.kind, *pair.names[::2]): pair.weights for pair in found}


def test_primary_are_levels_against_their_references_and_arms_outside_against_the_control():
    found = planned_comparisons([*GRID, LAST], FACTORS, CONTROL)
    assert [pair.names[:2] for pair in found if pair.primary] == [
        *((f"alpha={alpha}", "alpha=1") for alpha in ALPHAS[1:]),
        *((f"weight={weight:g}", "weight=0") for weight in WEIGHTS[1:]),
        ("last", CONTROL),
    ]
    assert found[5].weights == {"last": 1, CONTROL: -1}


def test_conditions_are_averaged_over_and_compared_at_but_not_compared():
    arms = grid(alpha=(1, 8), size=(32, 512), epochs=(25, 100))
    factors, conditions = ("alpha", "size", "epochs"), ("size", "epochs")
    found = planned_comparisons(arms, factors, arms[0].name, conditions=conditions)
    assert [(pair.kind, *pair.names[::2]) for pair in found] == [
        ("factor", "alpha=8", ""),
        *(("simple", "alpha=8", f"size={size}") for size in (32, 512)),
        *(("simple", "alpha=8", f"epochs={epochs}") for epochs in (25, 100)),
        ("interaction", "alpha=8 size=512", ""),
        ("interaction", "alpha=8 epochs=100", ""),
    ]


def test_a_level_is_named_whole_however_large():
    sizes = (2_000_001, 1_000_001)
    (found,) = planned_comparisons(
        [PlannedArm(f"size={n}", "core", {"size": n}) for n in sizes], ["size"], "size=2000001"
    )
    assert found.names == ("size=1000001", "size=2000001", "")


@pytest.mark.parametrize(
    ("control", "outside", "references"),
    [("alpha=64 weight=0.01", [], {"alpha=64", "weight=0.01"}), ("last", [LAST], {"alpha=1", "weight=0"})],
)
def test_the_reference_is_the_controls_level_or_the_first(control, outside, references):
    found = planned_comparisons([*outside, *GRID], FACTORS, control)
    assert {pair.names[1] for pair in found if pair.kind == "factor"} == references


def test_a_missing_cell_is_left_out_of_what_needs_it_and_a_fixed_factor_is_compared_with_nothing():
    arms = [arm for arm in GRID if arm.name != "alpha=8 weight=0.01"]
    by_name = named(planned_comparisons(arms, FACTORS, CONTROL))
    weights = {"alpha=8 weight=0": 0.5, "alpha=8 weight=0.001": 0.5}
    weights |= {"alpha=1 weight=0": -0.5, "alpha=1 weight=0.001": -0.5}
    assert by_name["factor", "alpha=8", ""] == weights
    assert ("simple", "alpha=8", "weight=0.01") not in by_name
    assert ("interaction", "alpha=8 weight=0.01", "") not in by_name
    assert Counter(kind for kind, *_ in by_name) == {"factor": 5, "simple": 15, "interaction": 5}
    fixed = planned_comparisons(grid(alpha=(1, 8), weight=(0.5,)), FACTORS, "alpha=1 weight=0.5")
    assert [pair.names[0] for pair in fixed] == ["alpha=8"]


def test_without_factors_every_arm_is_compared_with_the_control_and_without_a_control_none():
    found = planned_comparisons(GRID, (), CONTROL)
    expected = [("arm", arm.name, True) for arm in GRID[1:]]
    assert [(pair.kind, pair.names[0], pair.primary) for pair in found] == expected
    for control in ("", "alpha=2 weight=0"):
        assert planned_comparisons(GRID, FACTORS, control) == []


def test_three_factors_are_differences_of_means_of_cells():
    """Against pandas, on random scores: means over the other factors, and differences of differences."""
    arms = grid(a=(1, 2), b=(0, 1, 2), c=(5, 6))
    table = pd.DataFrame([arm.config for arm in arms], index=[arm.name for arm in arms])
    scores = table.assign(score=np.random.default_rng(0).normal(size=len(arms)))["score"]

    def mean(levels):
        return scores[(table[list(levels)] == list(levels.values())).all(axis=1)].mean()

    found = planned_comparisons(arms, ("a", "b", "c"), arms[0].name)
    assert Counter(pair.kind for pair in found) == {"factor": 4, "simple": 18, "interaction": 5}
    assert len(named(found)) == len(found)
    for pair in found:
        at = {pair.at.factor: pair.at.level} if pair.at else {}
        expected = 0.0
        for old in itertools.product((False, True), repeat=len(pair.changes)):
            sides = zip(pair.changes, old, strict=True)
            levels = {change.factor: change.reference if is_old else change.level for change, is_old in sides}
            expected += (-1) ** sum(old) * mean(levels | at)
        assert sum(weight * scores[name] for name, weight in pair.weights.items()) == pytest.approx(expected)


def test_a_crossing_is_complete_or_none():
    cells = {arm.name: arm.config for arm in grid(alpha=(1, 8, 64), weight=(0.0, 0.01), k=(64,))}
    factors, by_level = crossing(cells, ["alpha", "weight", "k"])
    assert factors == ("alpha", "weight")  # of k there is one level
    assert (len(by_level), by_level[8, 0.01]) == (6, "alpha=8 weight=0.01 k=64")
    lacking = {**cells, "alpha=8 weight=0.01 k=64": {"alpha": 8}}
    twice = {**cells, "again": cells["alpha=8 weight=0.01 k=64"]}
    for incomplete in (dict([*cells.items()][1:]), lacking, twice, {}):
        assert crossing(incomplete, ["alpha", "weight", "k"]) == ((), {})
    for other in ("k", "dropout"):  # cells differ in more
        assert crossing(cells, ["alpha", other]) == ((), {})
