"""Learning curves, single layers and profiles over depth, against numbers put in."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.evidence.evidence import Evidence
from reports.reading.load import Loaded, load
from reports.tables import curves, layers
from reports.tables import mix as layer_weights
from tests.helpers.made_layers import with_single_layers
from tests.helpers.made_up import CONTROL, MadeUp


def curve_of(made: MadeUp, folder, scores=None, **how: bool) -> pd.DataFrame:
    """Return the curves of a study, with scores by trial, every ten steps, where they are given."""
    if scores:
        made.history = [
            {"trial_id": trial, "epoch": epoch, "step": 10 * epoch, "val/matthews": score}
            for trial, curve in scores.items()
            for epoch, score in enumerate(curve, start=1)
        ]
    loaded = load(made.write(folder))
    return curves.learning_curves(Evidence(loaded).best_so_far, loaded.study.request)


def single_layers(loaded: Loaded) -> pd.DataFrame:
    """Return the table of single layers of a study, by test scores."""
    study = loaded.study
    return layers.single_layers(loaded.trials, study.environment.hidden_states, study.request.metric, "test")


def test_a_learning_curve_is_the_best_so_far_of_every_seed(tmp_path):
    made = MadeUp(seeds=5, search=0, evaluations=3, between=0)
    made.trials = made.of(CONTROL)
    scores = {f"000{seed}": [0.1, 0.3, 0.2] for seed in range(1, 5)}
    scores["0005"] = [0.35, 0.5]  # stopped early
    table = curve_of(made, tmp_path, scores)
    assert table["arm"].tolist() == [CONTROL] * 3
    assert table["step"].tolist() == [10, 20, 30]
    assert table["mean"].tolist() == pytest.approx([0.15, 0.34, 0.34])
    assert set(table["n"]) == {5}
    wanted = stats.t.interval(0.95, 4, 0.15, np.std([0.1] * 4 + [0.35], ddof=1) / math.sqrt(5))
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx(list(wanted))
    made.trials.pop()
    four = curve_of(made, tmp_path)
    assert four[["low", "high"]].isna().all(axis=None)  # too few seeds for a band


def test_a_curve_starts_where_all_seeds_were_evaluated(tmp_path):
    made = MadeUp(seeds=2, search=0)
    made.trials = made.of(CONTROL)
    made.history = [
        {"trial_id": "0001", "epoch": 1, "step": 10, "val/matthews": 0.1},
        {"trial_id": "0002", "epoch": 1, "step": 15, "val/matthews": 0.3},
    ]
    table = curve_of(made, tmp_path)
    assert table[["step", "mean"]].to_numpy().tolist() == [[15, 0.2]]


def test_a_long_curve_is_thinned_and_keeps_its_ends(tmp_path):
    made = MadeUp(seeds=1, search=0, evaluations=200, between=0)
    table = curve_of(made, tmp_path)
    of_control = table[table["arm"] == CONTROL]
    assert len(of_control) == 60
    assert (of_control["step"].min(), of_control["step"].max()) == (100, 20_000)
    assert of_control["low"].isna().all()


def test_single_layers_and_the_learned_arm(tmp_path):
    made = with_single_layers(MadeUp(seeds=3, search=0, layers=4))
    for row in made.of("layer=2"):
        row["test/matthews"] = 0.1 * row["seed"]
    made.of("layer=4")[0]["status"] = "failed"
    loaded = load(made.write(tmp_path))
    table = single_layers(loaded).set_index("state")
    assert table.index.tolist() == [1, 2, 3, 4]
    assert table.loc[2, "mean"] == pytest.approx(0.2)
    assert table["n"].tolist() == [3, 3, 3, 2]
    assert "last" not in set(table["arm"])  # the last layer has an arm of its own
    evidence = Evidence(loaded)
    assert evidence.learned_arm in {
        arm.name for arm in loaded.study.request.arms if arm.config["mix"] == "learned"
    }


def test_the_arm_last_stands_for_the_last_layer_where_none_does(tmp_path):
    made = with_single_layers(MadeUp(seeds=2, search=0, layers=4))
    made.trials = [row for row in made.trials if row["arm"] != "layer=4"]
    loaded = load(made.write(tmp_path))
    table = single_layers(loaded).set_index("state")
    assert table.loc[4, "arm"] == "last"
    without = MadeUp(seeds=2, search=0).write(tmp_path / "without")
    assert single_layers(load(without)).empty


def test_a_profile_is_relative_to_the_uniform_mix(tmp_path):
    made = MadeUp(seeds=2, search=0, layers=4, evaluations=2, between=0)
    made.study["environment"]["backbone"]["layers"] = 4
    for row in made.of(CONTROL):
        row["best_epoch"] = 1
    for point in made.history:
        if point["trial_id"] in ("0001", "0002"):
            share = 0.4 if point["trial_id"] == "0001" else 0.2
            if point["epoch"] == 2:
                share = 0.0
            point |= {"mix/weight_01": np.nan, "mix/weight_03": 0, "mix/weight_04": np.nan}
            point |= {"mix/weight_00": share, "mix/weight_02": 1 - share}
    loaded = load(made.write(tmp_path))
    table = layers.profile(loaded.trials, loaded.history, {"encoder": 4}, CONTROL)
    # Three states of this arm: columns that only other arms have do not count.
    assert table["depth"].tolist() == [0, 0.5, 0.75]
    assert table["layer"].tolist() == ["embeddings", "layer 2", "layer 3"]
    assert table["relative"].tolist() == pytest.approx([3 * 0.3, 3 * 0.7, 0])
    assert set(table["n"]) == {2}
    empty = loaded.history.iloc[:0]
    assert layers.profile(loaded.trials, empty, {}, CONTROL).empty
    assert layers.profile(loaded.trials, loaded.history, {}, None).empty


def test_states_are_named_by_their_columns():
    weights = {"decoder_00": 0.1, "decoder_03": 0.2, "00": 0.3, "11": 0.4, "02": 0.0}
    history = pd.DataFrame(
        [{"trial_id": "t", "step": 1} | {f"mix/weight_{name}": weight for name, weight in weights.items()}]
    )
    table = layer_weights.mix_history(history, "t")
    names = ["embeddings", "layer 2", "layer 11", "decoder embeddings", "decoder layer 3"]
    assert table["layer"].tolist() == names
    assert table["weight"].tolist() == [0.3, 0.0, 0.4, 0.1, 0.2]


def test_depth_is_that_of_the_stream():
    trials = pd.DataFrame(
        {"trial_id": ["t"], "stage": "confirm", "status": "completed", "arm": "a", "seed": 1, "best_epoch": 1}
    )
    history = pd.DataFrame(
        {"trial_id": ["t"], "epoch": 1, "mix/weight_03": 0.25, "mix/weight_decoder_03": 0.75}
    )
    table = layers.profile(trials, history, {"encoder": 12, "decoder": 6}, "a")
    assert table["depth"].tolist() == [0.25, 0.5]
    assert table["relative"].tolist() == [0.5, 1.5]
    assert layers.profile(trials, history, {}, "a")["depth"].tolist() == [1, 1]  # as many as were mixed
