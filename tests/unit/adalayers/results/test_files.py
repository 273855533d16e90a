"""The results folder: atomic writes, columns of the contract, and what is missing is named."""

import json

import numpy as np
import pandas as pd
import pytest

from adalayers.results import files as results
from adalayers.results.files import PREDICTIONS, TRIALS
from adalayers.storage.folder import Folder


@pytest.fixture(params=["path", "uri"])
def folder(request, tmp_path):
    return Folder(tmp_path / "a study" if request.param == "path" else f"file://{tmp_path}/study")


def row(trial_id, stage, arm, status, seed, **found):
    about = {"trial_id": trial_id, "stage": stage, "arm": arm, "status": status, "error": "", "seed": seed}
    return about | found


def test_trials_round_trip_in_the_contracts_order(folder):
    one = {"config/k": 64, "val/f1": 0.5, "mix/entropy": 1.0, "epochs": 3, "best_epoch": 2, "parameters": 9}
    two = {"config/mix": "uniform", "val/f1": 0.6, "test/f1": 0.55, "epochs": 4}
    rows = [
        row("t1", "search", "", "stopped", 0, **one),
        row("t2", "confirm", "uniform", "completed", 1, **two),
        row("t3", "confirm", "uniform", "unfinished", 2),
    ]
    results.write_trials(folder, rows)
    frame = results.read_trials(folder)
    assert " ".join(frame.columns) == (
        "trial_id stage arm search status error config/k config/mix seed fusion train_examples draw epochs best_epoch "
        "val/f1 test/f1 mix/entropy parameters seconds group predictions"
    )
    assert frame["arm"].tolist() == ["", "uniform", "uniform"]
    assert b",,,,3,2,0.5,," in folder.read_bytes(TRIALS), "whole numbers stay whole beside missing ones"
    counts = {"confirm": {"completed": 1, "unfinished": 1}, "search": {"stopped": 1}}
    assert results.counts(frame) == counts


def hash_of(*said: object, **columns: object) -> str:
    frame = pd.DataFrame({"index": range(len(said)), "prediction": said})
    return results.prediction_hash(frame.assign(**columns))


def test_predictions_are_told_apart_by_what_is_said_of_which_example():
    one = hash_of("a", "b", "b")
    assert one == hash_of("b", "b", "a", index=[2, 1, 0], score=0.1)
    assert len({one, hash_of("a", "b", "a"), hash_of("a", "b", "b", index=[0, 1, 3]), hash_of("a", "b")}) == 4
    # Words hash as their text did, and apart where names hold blanks.
    assert hash_of(("O", "B-X"), ["O"]) == hash_of("O B-X", "O")
    same_text = [("a b", "c"), ("a", "b c"), ("a", "b", "c"), ("a b", "", "c"), ("a b", "c", "")]
    assert len({*map(hash_of, same_text)}) == len(same_text)


def test_labels_of_words_are_read_as_tuples(folder):
    said = [("O", "B-X"), (), ("O", "B-X"), ("a b",)]
    frame = pd.DataFrame({"trial_id": ["t1"] * 4, "label": said, "prediction": said[::-1]})
    folder.write_parquet(PREDICTIONS, frame.map(lambda cell: list(cell) if isinstance(cell, tuple) else cell))
    read = results.read_rows(folder, PREDICTIONS)
    pd.testing.assert_frame_equal(read, frame.astype({"trial_id": read["trial_id"].dtype}))


def test_json_is_plain(folder):
    folder.write_json("x.json", {"a": np.float64(1.5), "b": (np.int64(2), float("nan")), "c": float("inf")})
    assert json.loads(folder.read_bytes("x.json")) == {"a": 1.5, "b": [2, None], "c": None}


def test_an_arm_may_be_called_as_what_is_missing(folder):
    names = ["None", "NA", "nan", "null", ""]
    rows = [row(f"t{i}", "confirm", name, "completed", 1) for i, name in enumerate(names)]
    results.write_trials(folder, rows)
    assert results.read_trials(folder)["arm"].tolist() == names
