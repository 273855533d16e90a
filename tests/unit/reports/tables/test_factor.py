"""Scores over a factor or the amount of data, costs, against what was put in."""

import pandas as pd
import pytest

from adalayers.comparisons import PlannedArm
from adalayers.results.study_file import Factor, RequestRecord
from reports.tables.factor import over_factor
from tests.helpers.made_layers import SIZES, with_sizes
from tests.helpers.made_up import CONTROL, CORE, MadeUp
from tests.helpers.pages import evidence_of

SMALL = {"seeds": 2, "search": 0, "evaluations": 2}


def over(made: MadeUp, folder) -> tuple[str, pd.DataFrame]:
    evidence = evidence_of(made, folder)
    return over_factor(evidence.arms, evidence.trials, evidence.request)


def test_scores_by_number_of_examples_a_line_per_label(tmp_path):
    made = with_sizes(MadeUp(seeds=3, search=0))
    for row in made.of("alpha=64 train_examples=300"):
        row["test/matthews"] = 0.1 * row["seed"]
    name, table = over(made, tmp_path)
    assert (name, list(dict.fromkeys(table["series"]))) == ("train_examples", ["alpha=1", "alpha=64"])
    assert table.loc[table["series"] == "alpha=1", "x"].tolist() == list(SIZES)
    row = table[(table["series"] == "alpha=64") & (table["x"] == 300)].iloc[0]
    assert (row["mean"], row["n"]) == (pytest.approx(0.2), 3)


def test_epochs_are_panels_and_what_happens_to_the_base_model_is_in_the_name():
    cells = [(base, size, epochs) for base in ("frozen", "tuned") for size in (8, 32) for epochs in (2, 4)]
    configs = {str(cell): {"base_model": cell[0], "epochs": cell[2]} for cell in cells}
    arms = pd.DataFrame({"arm": [*configs], "role": "core", "config/epochs": [cell[2] for cell in cells]})
    ran = {"stage": "confirm", "status": "completed", "seed": 1, "trial_id": [*configs]}
    ran["train_examples"] = [cell[1] for cell in cells]
    asked = tuple(PlannedArm(name, config=config, label="mix") for name, config in configs.items())
    request = RequestRecord(arms=asked, factors=(Factor("epochs", "epochs", condition=True),))
    name, table = over_factor(arms, arms.assign(**ran), request)
    assert (name, table["x"].tolist()) == ("train_examples", ran["train_examples"])
    assert table["panel"].tolist() == [2, 4] * 4
    assert table["series"].tolist() == ["mix"] * 4 + ["mix, tuned"] * 4


def test_the_first_factor_is_along_the_axis_and_the_others_are_lines(tmp_path):
    made = MadeUp(**SMALL)
    name, table = over(made, tmp_path)
    assert (name, table["arm"].tolist()) == ("alpha", list(CORE))
    assert (table["x"].nunique(), table["series"].iloc[0]) == (4, "λ = 0")
    made.study["request"] |= {"factors": [], "scientific": []}
    assert over(made, tmp_path)[1].empty


def test_costs_are_means_over_seeds_and_a_diverged_trial_has_none(tmp_path):
    made = MadeUp(**SMALL)
    for row in made.trials:
        base = "fine-tuned" if row["arm"] == CORE[1] else "frozen"
        row |= {"cost/use": 5.0, "cost/weights": 1e6, "cost/layers": 6, "config/base_model": base}
    lost, kept = made.of(CONTROL)
    for name in ("cost/use", "cost/weights", "cost/layers", "test/matthews", "val/matthews"):
        del lost[name]
    lost["status"] = "diverged"
    found = evidence_of(made, tmp_path).costs.set_index("arm")
    assert found["intact"][[CONTROL, CORE[1]]].tolist() == [True, False]
    assert (found.loc[CONTROL, "n"], found.loc[CONTROL, "use"]) == (2, 5.0)
    assert found.loc[CONTROL, "score"] == pytest.approx(kept["test/matthews"] / 2)  # the other: 0
