"""The results folder: atomic writes, columns of the contract, and what is missing is named."""

import json

import pandas as pd
import pytest

from adalayers.results import files as results
from adalayers.results.files import PREDICTIONS, TRIALS
from adalayers.storage.folder import Folder


@pytest.fixture(params=["path", "uri"])
def folder(request, tmp_path):
    return Folder(tmp_path / "a study" if request.param == "path" else f"file://{tmp_path}/study")


def row(trial_id, stage, arm, status, seed, **more):
    ids = {"trial_id": trial_id, "stage": stage, "arm": arm, "status": status, "error": "", "seed": seed}
    return ids | more


def rows():
    one = {"config/k": 64, "val/f1": 0.5, "mix/entropy": 1.0, "mix/live_layers": 6}
    two = {"config/mix": "uniform", "val/f1": 0.6, "test/f1": 0.55}
    return [
        row("t1", "search", "", "stopped", 0, epochs=3, best_epoch=2, parameters=9, seconds=2.0, **one),
        row("t2", "confirm", "uniform", "completed", 1, epochs=4, best_epoch=4, parameters=8, **two),
        row("t3", "confirm", "uniform", "unfinished", 2),
    ]


def test_trials_round_trip_in_the_contracts_order(folder):
    results.write_trials(folder, rows())
    frame = results.read_trials(folder)
    assert " ".join(frame.columns) == (
        "trial_id stage arm search status error config/k config/mix seed fusion train_examples draw epochs best_epoch "
        "val/f1 test/f1 mix/entropy mix/live_layers parameters seconds group predictions"
    )
    assert frame["arm"].tolist() == ["", "uniform", "uniform"]
    assert frame["seed"].tolist() == [0, 1, 2]
    assert b",,,,3,2,0.5,," in folder.read_bytes(TRIALS), "whole numbers stay whole beside missing ones"


def test_predictions_are_told_apart_by_what_is_said_of_which_example():
    one = pd.DataFrame({"index": [0, 1, 2], "prediction": ["a", "b", "b"], "score": 0.9})
    assert results.prediction_hash(one) == results.prediction_hash(one[::-1].assign(score=0.1))
    others = [one.assign(prediction=["a", "b", "a"]), one.assign(index=[0, 1, 3]), one[:2]]
    assert len({results.prediction_hash(rows) for rows in [one, *others]}) == 4


def test_words_hash_as_their_text_did_and_apart_where_names_hold_blanks():
    def hash_of(*said: object) -> str:
        return results.prediction_hash(pd.DataFrame({"index": range(len(said)), "prediction": said}))

    assert hash_of(("O", "B-X"), ["O"]) == hash_of("O B-X", "O")
    same_text = [("a b", "c"), ("a", "b c"), ("a", "b", "c"), ("a b", "", "c"), ("a b", "c", "")]
    assert len({*map(hash_of, same_text)}) == len(same_text)


def test_labels_of_words_are_read_as_tuples(folder):
    said = [("O", "B-X"), (), ("O", "B-X"), ("a b",)]
    frame = pd.DataFrame({"trial_id": ["t1"] * 4, "label": said, "prediction": said[::-1]})
    folder.write_parquet(PREDICTIONS, frame.map(lambda cell: list(cell) if isinstance(cell, tuple) else cell))
    read = results.read_rows(folder, PREDICTIONS)
    pd.testing.assert_frame_equal(read, frame.astype({"trial_id": read["trial_id"].dtype}))
    assert read["label"][0] is read["prediction"][1]  # in memory once


def test_json_is_plain(folder):
    import numpy as np

    folder.write_json("x.json", {"a": np.float64(1.5), "b": (np.int64(2), float("nan")), "c": float("inf")})
    assert json.loads(folder.read_bytes("x.json")) == {"a": 1.5, "b": [2, None], "c": None}


def test_counts():
    frame = pd.DataFrame(rows())
    assert results.counts(frame) == {"confirm": {"completed": 1, "unfinished": 1}, "search": {"stopped": 1}}
