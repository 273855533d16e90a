"""The costs of methods, against the costs that were put in."""

from dataclasses import replace
from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from reports.evidence.evidence import Evidence
from reports.page.report import details_page, short_page
from reports.parts import methods
from reports.reading.load import load
from reports.tables import costs
from tests.helpers.made_up import CONTROL, CORE, MadeUp

CHEAP, DEAR, CHANGED = CONTROL, CORE[1], CORE[2]
COSTS = {CHEAP: (1.0, 1e9), DEAR: (5.0, 4e9), CHANGED: (900.0, 7e9)}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    made = MadeUp(seeds=4, search=0, evaluations=2, effects={DEAR: 0.1, CHANGED: 0.2})
    made.study["request"]["parts"] = ["methods"]
    for row in made.trials:
        use, training = COSTS.get(row["arm"], (50.0, 8e9))
        row |= {
            "cost/use": use,
            "cost/training": training,
            "cost/weights": 1e6,
            "cost/kept": 64,
            "cost/layers": 6,
            "config/base_model": "fine-tuned" if row["arm"] == CHANGED else "frozen",
        }
    return Evidence(load(made.write(tmp_path_factory.mktemp("methods") / "study")))


def test_costs_are_means_over_seeds_and_say_what_stays_intact(evidence):
    found = costs.by_arm(evidence.trials, evidence.plan, evidence.split).set_index("arm")
    assert found.loc[DEAR, ["use", "training", "n"]].tolist() == [5.0, 4e9, 4]
    assert found["intact"][[CHEAP, CHANGED]].tolist() == [True, False]
    assert found.loc[DEAR, "score"] == pytest.approx(fmean(evidence.scores[DEAR].values()))
    kinds = methods.info(evidence).costs.set_index("arm")["kind"]
    assert kinds[[CHEAP, CHANGED]].tolist() == ["frozen, matched", "base model changed"]


def test_trials_that_diverged_count_in_scores_and_cost_nothing(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    for row in made.trials:
        row |= {"cost/use": 5.0, "cost/weights": 1e6, "cost/layers": 6}
    lost = made.of(CHEAP)[0]
    for name in ("cost/use", "cost/weights", "cost/layers", "test/matthews", "val/matthews"):
        del lost[name]
    lost["status"] = "diverged"
    evidence = Evidence(load(made.write(tmp_path)))
    found = evidence.costs.set_index("arm").loc[CHEAP]
    kept = made.of(CHEAP)[1]["test/matthews"]
    assert (found["n"], found["use"]) == (2, 5.0)
    assert found["score"] == pytest.approx(kept / 2), "the other has the trivial score, 0"


def test_no_method_on_the_front_is_beaten_in_score_and_cost():
    table = pd.DataFrame({"arm": list("abcd"), "use": [1.0, 2.0, 2.0, 3.0], "score": [0.5, 0.7, 0.6, 0.7]})
    assert costs.front(table, "use") == ["a", "b"]


def test_a_study_that_ended_before_its_searches_did_has_no_arms_and_a_page(tmp_path):
    made = MadeUp(seeds=1, search=4, evaluations=2)
    made.study["request"] |= {"arms": [], "comparisons": [], "parts": ["methods"], "factors": []}
    made.trials[:] = [row for row in made.trials if row["stage"] == "search"]
    evidence = Evidence(load(made.write(tmp_path / "study")))
    assert evidence.learned_arm is None
    for page in (short_page(evidence), details_page(evidence)):
        assert page.text()
        page.figures()


def test_forty_methods_are_numbered_in_both_panels_and_named_below_within_the_figure(evidence):
    found = methods.info(evidence)
    rng = np.random.default_rng(0)
    costs = pd.concat([found.costs.iloc[[0]]] * 40).assign(
        arm=[f"method {number} by a name of thirty characters" for number in range(40)],
        score=0.5 + 0.02 * rng.normal(size=40),
        use=10 ** rng.uniform(0, 2, size=40),
        training=10 ** rng.uniform(9, 12, size=40),
    )
    figure = methods.draw(replace(found, costs=costs, fronts=dict.fromkeys(found.fronts, ())))
    figure.draw_without_rendering()
    legend = figure.legends[0].get_texts()
    assert [text.get_text().split(":")[0] for text in legend[4:]] == [str(number) for number in range(1, 41)]
    assert all(
        figure.bbox.fully_contains(*corner)
        for text in legend
        for corner in text.get_window_extent().get_points()
    )
    for axes in figure.axes:
        assert sorted(int(number) for text in axes.texts for number in text.get_text().split(", ")) == [
            *range(1, 41)
        ]
        boxes = [Text.get_window_extent(text) for text in axes.texts]
        assert all(box.count_overlaps(boxes) == 1 for box in boxes)  # its own
