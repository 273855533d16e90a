"""The search as a report reads it: space and importances."""

import json
import math

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import IntDistribution, distribution_to_json

from adalayers.comparisons import IMPORTANCES_FROM
from adalayers.results.study_file import RequestRecord, StudyFile
from reports.reading.load import load
from reports.reading.space import Domain, as_choice, describe, domains, read
from reports.tables.importances import importances, search_points, target_share
from tests.helpers.made_up import MadeUp, choice, ranged

ALPHA = Domain("alpha", "scientific", 1.0, 1024.0, log=True)
WEIGHT = Domain("entropy_weight", "scientific", choices=("0.0", "0.001", "0.01"))
LR = Domain("lr", "nuisance", 0.0, 1.0)
SPACE = [ALPHA, WEIGHT, LR]
REQUEST = RequestRecord(metric="f1")


def points(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Completed trials whose score is that of `lr`, with a little of alpha and noise; best first."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"trial_id": [f"t{i:03d}" for i in range(n)], "status": "completed"})
    table["alpha"], table["lr"] = 2 ** rng.uniform(0, 10, n), rng.uniform(0, 1, n)
    table["entropy_weight"] = rng.choice(WEIGHT.choices, n)
    table["score"] = table["lr"] + 0.02 * np.log2(table["alpha"]) + 0.05 * rng.normal(size=n)
    return table.sort_values("score", ascending=False).reset_index(drop=True)


@pytest.mark.parametrize(
    ("written", "wanted", "words"),
    [
        (ranged(0.5, 1024, log=True), {"low": 0.5, "high": 1024.0, "log": True}, "loguniform(0.5, 1024)"),
        (json.loads(distribution_to_json(IntDistribution(1, 8))), {"low": 1, "high": 8}, "uniform(1, 8)"),
        (choice(0.0, 1e-4, None), {"choices": ("0.0", "0.0001", "None")}, "choice(0.0, 0.0001, None)"),
    ],
)
def test_a_domain_is_read_as_a_study_writes_it(written, wanted, words):
    assert read("x", written) == Domain("x", "searched", **wanted)
    assert describe(read("x", written)) == words


@pytest.mark.parametrize("odd", [choice(8), ranged(1, 1), {"name": "?"}, {}, {"name": "FloatDistribution"}])
def test_what_is_no_searched_domain_is_none(odd):
    assert read("x", odd) is None


def test_the_space_of_a_study_scientific_first():
    space = {"a": ranged(0, 1), "b": choice(1, 2), "c": {"name": "?"}}
    found = domains(StudyFile(request=RequestRecord(scientific=("b",), nuisance=("a",), spaces={"": space})))
    assert [(domain.name, domain.role) for domain in found] == [("b", "scientific"), ("a", "nuisance")]


def test_choices_are_compared_as_numbers():
    assert as_choice(0, ("0.0", "0.001")) == "0.0"
    assert as_choice(np.float64(1e-3), ("0.0", "0.001")) == "0.001"
    assert as_choice("uniform", ("learned", "uniform")) == "uniform"
    assert as_choice(0.5, ("0.0", "0.001")) is None
    assert as_choice(math.nan, ("0.0", "0.001")) is None


def test_search_points_leave_out_what_is_not_whole(tmp_path):
    made = MadeUp(seeds=1, search=6, stopped=2)
    rows = [row for row in made.trials if row["stage"] == "search"]
    rows[2]["val/matthews"] = math.nan
    rows[3]["config/lr"] = None
    rows[4]["status"] = "failed"
    loaded = load(made.write(tmp_path))
    space = domains(loaded.study)
    found = search_points(loaded.trials, loaded.study.request, space)
    assert found["trial_id"].iloc[0] == "search005"
    assert sorted(found["trial_id"][1:]) == ["search000", "search001"]
    assert set(found["status"][1:]) == {"stopped"}


def test_importances_are_optunas():
    table = importances(points(), SPACE)
    study = optuna.create_study(direction="maximize")
    kinds = {
        "alpha": optuna.distributions.FloatDistribution(1, 1024, log=True),
        "entropy_weight": optuna.distributions.CategoricalDistribution(WEIGHT.choices),
        "lr": optuna.distributions.FloatDistribution(0, 1),
    }
    for row in points().to_dict("records"):
        study.add_trial(
            optuna.trial.create_trial(
                params={name: row[name] for name in kinds}, distributions=kinds, value=row["score"]
            )
        )
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.1)
    wanted = optuna.importance.get_param_importances(study, evaluator=evaluator)
    assert [target_share(n) for n in (10, 20, 60)] == [0.5, 0.25, 0.1]
    assert dict(zip(table["name"], table["importance"], strict=True)) == pytest.approx(wanted)
    assert table["name"].iloc[0] == "lr"
    assert table["importance"].sum() == pytest.approx(1)
    assert (table["low"] <= table["high"]).all()
    assert set(table["n"]) == {60}
    pd.testing.assert_frame_equal(table, importances(points(), SPACE))


@pytest.mark.parametrize(
    ("done", "space"),
    [
        (points(IMPORTANCES_FROM - 1), SPACE),
        (points().assign(status="stopped"), SPACE),
        (points().assign(score=0.5), SPACE),
        (points(), [ALPHA]),
    ],
)
def test_no_importances_from_too_little(done, space):
    assert importances(done, space).empty


def test_equal_scores_but_one_are_no_error():
    table = importances(points(20).assign(score=[1.0] + [0.5] * 19), SPACE)
    assert table["importance"].sum() == pytest.approx(1)
