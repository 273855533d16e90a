"""Learning curves, single layers and profiles over depth, against numbers put in."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.evidence.evidence import Evidence
from reports.tables import convergence as curves
from reports.tables import mix as layers
from reports.tables.convergence import BestSoFar
from tests.helpers.made_layers import with_single_layers
from tests.helpers.made_scores import request
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import evidence_of


def curve_of(*trials: dict[int, float]) -> pd.DataFrame:
    """Return the learning curve of an arm whose trials had these best scores, by step."""
    own = {seed: (np.array([*trial]), np.array([*trial.values()])) for seed, trial in enumerate(trials)}
    return curves.learning_curves(BestSoFar({"a": own}, None), request(["a"]))


def test_a_learning_curve_is_the_best_so_far_of_every_seed():
    stopped_early = {10: 0.35, 20: 0.5}
    table = curve_of(*[{10: 0.1, 20: 0.3, 30: 0.3}] * 4, stopped_early)
    assert table["step"].tolist() == [10, 20, 30]
    assert table["mean"].tolist() == pytest.approx([0.15, 0.34, 0.34])
    assert set(table["n"]) == {5}
    wanted = stats.t.interval(0.95, 4, 0.15, np.std([0.1] * 4 + [0.35], ddof=1) / math.sqrt(5))
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx(list(wanted))
    # It starts where all seeds were evaluated; two are too few for a band.
    two = curve_of({10: 0.1}, {15: 0.3})
    assert two[["step", "mean"]].to_numpy().tolist() == [[15, 0.2]]
    assert two[["low", "high"]].isna().all(axis=None)
    # A long one is thinned and keeps its ends.
    long = curve_of({100 * step: 0.1 for step in range(1, 201)})
    assert (len(long), long["step"].min(), long["step"].max()) == (60, 100, 20_000)


def single_layers(evidence: Evidence) -> pd.DataFrame:
    """Return the table of single layers of a study, by test scores."""
    states = evidence.environment.hidden_states
    return layers.single_layers(evidence.arms, evidence.request, states).set_index("state")


def test_single_layers_and_the_arm_last_stands_for_the_last_layer_where_none_does(tmp_path):
    made = with_single_layers(MadeUp(seeds=3, search=0, layers=4))
    for row in made.of("layer=2"):
        row["test/matthews"] = 0.1 * row["seed"]
    made.of("layer=4")[0]["status"] = "failed"
    evidence = evidence_of(made, tmp_path)
    table = single_layers(evidence)
    assert table.index.tolist() == [1, 2, 3, 4]
    assert table.loc[2, "mean"] == pytest.approx(0.2)
    assert table["n"].tolist() == [3, 3, 3, 2]
    assert "last" not in set(table["arm"])
    learned = {arm.name for arm in evidence.request.arms if arm.config["mix"] == "learned"}
    assert evidence.learned_arm in learned
    arms = {arm["name"]: arm["config"] for arm in made.arms}
    for name, config in arms.items():
        config["k"] = 64 if name != "layer=2" else 128
    assert single_layers(evidence_of(made, tmp_path)).index.tolist() == [1, 3, 4], "of the control's width"
    made.trials = [row for row in made.trials if row["arm"] != "layer=4"]
    assert single_layers(evidence_of(made, tmp_path)).loc[4, "arm"] == "last"
    assert single_layers(evidence_of(MadeUp(seeds=2, search=0), tmp_path / "without")).empty


def mixed(*rows: dict) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return trials of one arm, best at epoch 1, and their history: weights of states, by the trial's own columns."""
    about = {"stage": "confirm", "status": "completed", "arm": "a", "best_epoch": 1}
    names = [f"t{seed}" for seed in range(len(rows))]
    trials = [{"trial_id": name, "seed": seed, **about} for seed, name in enumerate(names)]
    history = [
        {"trial_id": name, "epoch": 1} | {f"mix/weight_{state}": weight for state, weight in row.items()}
        for name, row in zip(names, rows, strict=True)
    ]
    return pd.DataFrame(trials), pd.DataFrame(history)


def test_a_profile_is_relative_to_the_uniform_mix_by_depth_in_the_stream():
    trials, history = mixed({"00": 0.4, "02": 0.6, "03": 0.0}, {"00": 0.2, "02": 0.8, "03": 0.0})
    later = history.assign(epoch=2, **{"mix/weight_00": 0.0})
    others = pd.DataFrame({"trial_id": ["another"], "epoch": 1, "mix/weight_01": 1.0})
    table = layers.profile(trials, pd.concat([history, later, others]), {"encoder": 4}, "a")
    # Three states of this arm: columns that only other arms have do not count.
    assert table["depth"].tolist() == [0, 0.5, 0.75]
    assert table["layer"].tolist() == ["embeddings", "layer 2", "layer 3"]
    assert table["mean"].tolist() == pytest.approx([3 * 0.3, 3 * 0.7, 0])
    assert set(table["n"]) == {2}
    assert layers.profile(trials, history.iloc[:0], {}, "a").empty
    of_two = mixed({"03": 0.25, "decoder_03": 0.75})
    table = layers.profile(*of_two, {"encoder": 12, "decoder": 6}, "a")
    assert (table["depth"].tolist(), table["mean"].tolist()) == ([0.25, 0.5], [0.5, 1.5])
    assert table["layer"].tolist() == ["layer 3", "decoder layer 3"]
    assert layers.profile(*of_two, {}, "a")["depth"].tolist() == [1, 1]  # as many as were mixed
