"""The search as a report reads it: space and importances."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from optuna import distributions

from adalayers.comparisons import IMPORTANCES_FROM
from adalayers.results.study_file import RequestRecord, StudyFile
from reports.reading.load import load
from reports.reading.space import Domain, as_choice, describe, domains, edges
from reports.tables.importances import importances, search_points, target_share
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import evidence_of

ALPHA = Domain("alpha", "scientific", 1.0, 1024.0, log=True)
WEIGHT = Domain("entropy_weight", "scientific", choices=("0.0", "0.001", "0.01"))
LR = Domain("lr", "nuisance", 0.0, 1.0)
SPACE = [ALPHA, WEIGHT, LR]


def points(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Completed trials whose score is that of `lr`, with a little of alpha and noise; best first."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"trial_id": [f"t{i:03d}" for i in range(n)]})
    table["alpha"], table["lr"] = 2 ** rng.uniform(0, 10, n), rng.uniform(0, 1, n)
    table["entropy_weight"] = rng.choice(WEIGHT.choices, n)
    table["score"] = table["lr"] + 0.02 * np.log2(table["alpha"]) + 0.05 * rng.normal(size=n)
    return table.sort_values("score", ascending=False).reset_index(drop=True)


def written(kind, *given, **how):
    """Return a distribution as `study.json` describes it."""
    made = getattr(distributions, f"{kind}Distribution")(*given, **how)
    return json.loads(distributions.distribution_to_json(made))


def test_the_space_of_a_study_is_read_as_it_is_written_scientific_first():
    space = {"rate": written("Float", 0.5, 1024, log=True), "whole": written("Int", 1, 8)}
    space |= {"chosen": written("Categorical", (0.0, 1e-4, None))}
    odd = [written("Categorical", (8,)), written("Float", 1, 1), {"name": "?"}, {}]  # none is searched
    space |= {f"odd {place}": each for place, each in enumerate(odd)}
    request = RequestRecord(scientific=("chosen",), nuisance=("rate",), spaces={"": space})
    found = domains(StudyFile(request=request))
    assert {domain: describe(domain) for domain in found} == {
        Domain("chosen", "scientific", choices=("0.0", "0.0001", "None")): "choice(0.0, 0.0001, None)",
        Domain("rate", "nuisance", 0.5, 1024.0, log=True): "loguniform(0.5, 1024)",
        Domain("whole", "searched", 1, 8): "uniform(1, 8)",
    }
    assert [domain.name for domain in found] == ["chosen", "rate", "whole"]


def test_choices_are_compared_as_numbers():
    values = [0, np.float64(1e-3), "uniform", 0.5, math.nan]
    choices = ("0.0", "0.001", "uniform")
    assert [as_choice(value, choices) for value in values] == ["0.0", "0.001", "uniform", None, None]


def test_search_points_leave_out_what_is_not_whole(tmp_path):
    made = MadeUp(seeds=1, search=6, stopped=2)
    rows = [row for row in made.trials if row["stage"] == "search"]
    rows[2]["val/matthews"] = math.nan
    rows[3]["config/lr"] = None
    rows[4]["status"] = "failed"
    loaded = load(made.write(tmp_path))
    found = search_points(loaded.trials, loaded.study.request, domains(loaded.study))
    assert found["trial_id"].tolist() == ["search005"], "0 and 1 were stopped"


def test_a_hyperparameter_that_no_trial_uses_is_passed_over(tmp_path):
    made = MadeUp(seeds=1, search=12, stopped=0)
    for row in made.trials:
        row.pop("config/lr")
    made.study["request"]["search"] = "grid"
    evidence = evidence_of(made, tmp_path)
    assert "lr" not in {domain.name for domain in evidence.space}
    assert (len(evidence.points), evidence.points["score"].is_monotonic_decreasing) == (12, True)
    assert "lr" not in {edge["name"] for edge in edges(evidence.trials, evidence.loaded.study)}


def test_importances_add_up_to_one_and_lead_with_what_matters():
    table = importances(points(), SPACE)
    assert (table["name"].iloc[0], table["importance"].iloc[0] > 0.8) == ("lr", True)
    assert table["importance"].sum() == pytest.approx(1)
    assert (table["low"] <= table["high"]).all()
    assert set(table["n"]) == {60}
    assert [target_share(n) for n in (10, 20, 60)] == [0.5, 0.25, 0.1]


def test_importances_from_too_little():
    few, equal = points(IMPORTANCES_FROM - 1), points().assign(score=0.5)
    for done, space in ((few, SPACE), (equal, SPACE), (points(), [ALPHA])):
        assert importances(done, space).empty
    but_one = importances(points(20).assign(score=[1.0] + [0.5] * 19), SPACE)
    assert but_one["importance"].sum() == pytest.approx(1)
