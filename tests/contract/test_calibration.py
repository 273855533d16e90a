"""The short form of `python -m tests.calibration`: false claims, effects found, seeds saved."""

import dataclasses
import functools

import numpy as np
import pytest
from scipy import stats

from adalayers.results import files as results
from reports.evidence.evidence import Evidence
from reports.reading.load import load
from tests.calibration import (
    Simulated,
    cell_seeds,
    cost,
    factor_found,
    factor_seeds,
    false_claims,
    grid,
    normal,
    planned_for_power,
    unequal,
)
from tests.helpers.made_up import MadeUp


@functools.cache
def at_five_percent(n):
    return float(stats.t.isf(0.025, n - 1))


def each_alone(schedule):
    """Return critical values as if every analysis of every comparison were the only one."""
    return [at_five_percent(n) for n, _ in schedule]


@pytest.mark.parametrize("draw", [normal, unequal])
def test_identical_arms_are_seldom_called_different(draw):
    """Until decided, then extended: the interval of the share of false claims reaches below 5%."""
    share = false_claims(40, draw, "until-decided")
    assert share.interval[0] <= 0.05, share


def test_analyses_that_do_not_share_the_error_would_be_caught(monkeypatch):
    """The same simulation with 5% for every comparison at every analysis: well over 5% of studies claim something."""
    monkeypatch.setattr("reports.evidence.analyses.critical_values", each_alone)
    share = false_claims(30, normal, "until-decided")
    assert share.interval[0] > 0.05, share


def test_analyses_of_all_seeds_claim_what_until_decided_claims():
    """The simulation's short cut: arms that stop early change no claim."""
    rng = np.random.default_rng(1)
    plan = grid()
    for _ in range(4):
        scores = normal(rng, (len(plan.arms), 20)) + 0.02 * rng.normal(size=(len(plan.arms), 1))
        stopping = Simulated(plan, scores)
        one, other = stopping.until_decided(20), Simulated(plan, scores).every_look(20)
        assert stopping.trials_run < 20 * len(plan.arms)
        told = [[(c.verdict, c.n, c.low, c.high) for c in found if c.primary] for found in (one, other)]
        assert told[0] == told[1]


def test_a_factor_takes_far_fewer_seeds_than_its_cells_and_is_found():
    wanted = factor_seeds()
    assert wanted <= 0.6 * cell_seeds()
    share = factor_found(40, wanted, shared=0.0)
    assert share.interval[1] >= 0.9, share


def test_until_decided_is_cheaper_than_a_fixed_design_of_equal_power():
    fixed, planned = planned_for_power(10)
    mixed = cost(8, (0.0, 1.0, 2.0), planned, fixed)
    assert mixed.trials <= 0.9 * mixed.fixed
    assert mixed.found.interval[1] >= 0.9, mixed.found
    large = cost(4, (2.0,), planned, fixed)
    assert large.trials <= 0.6 * large.fixed


def test_what_is_simulated_is_what_a_results_folder_says(tmp_path):
    """The claims of a simulated study equal those read from the files of one with the same scores."""
    plan = grid()
    scores = normal(np.random.default_rng(0), (len(plan.arms), 6))
    scores[3:6] += 0.2
    study = Simulated(plan, scores)
    simulated = study.until_decided(6)
    made = MadeUp(seeds=6, search=0, evaluations=1, between=0)
    made.trials = [
        {**made.of(made.arms[0]["name"])[0], "trial_id": row.trial_id, "arm": row.arm, "seed": row.seed}
        | {"test/matthews": row.score}
        for row in study.frame().rename(columns={"test/matthews": "score"}).itertuples()
    ]
    made.study["request"] |= {
        "arms": [{"name": arm.name, "role": arm.role, "config": dict(arm.config)} for arm in plan.arms],
        "comparisons": [dataclasses.asdict(pair) for pair in plan.comparisons],
        "control": plan.control,
        "smallest_effect": plan.smallest_effect,
    }
    made.study["runs"]["history"] = [dataclasses.asdict(run) for run in study.runs]
    made.study["runs"]["analyses"] = len(study.runs)
    made.write(tmp_path)
    assert (tmp_path / results.TRIALS).exists()
    read = Evidence(load(tmp_path)).over_seeds
    assert [(c.key, c.n, c.verdict, c.analyses) for c in read] == [
        (c.key, c.n, c.verdict, c.analyses) for c in simulated
    ]
    assert [c.low for c in read] == pytest.approx([c.low for c in simulated])
    assert {c.verdict for c in read} > {"better"}
