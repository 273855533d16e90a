"""The record: what is written when a trial ends, and what a kill at any moment leaves."""

import pandas as pd
import pytest

from adalayers.results import files as results
from adalayers.results.files import BEST, HISTORY, PREDICTIONS, TRIALS
from adalayers.results.folder import Folder
from adalayers.results.record import PROGRESS, StudyRecord


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "study")


def begin(record, trial_id, stage="confirm", seed=1):
    record.begin(
        trial_id,
        {"stage": stage, "arm": "x" if stage == "confirm" else "", "config/alpha": 1.0, "seed": seed},
    )


def leave(record, trial_id, status="completed", score=0.5, error=""):
    """Leave what a worker leaves."""
    work = record.work(trial_id)
    row = {
        "epochs": 2,
        "best_epoch": 1,
        "val/f1": score,
        "test/f1": score - 0.1,
        "parameters": 10,
        "seconds": 1.5,
    }
    history = [{"epoch": 1.0, "step": 5, "val/f1": score, "mix/weight_01": 1.0}]
    if status == "completed":
        work.write_bytes(f"{BEST}/model.safetensors", f"model of {trial_id}".encode())
        work.write_parquet(
            PREDICTIONS,
            pd.DataFrame(
                {"split": ["val"], "index": [0], "label": ["a"], "prediction": ["b"], "score": [0.9]}
            ),
        )
    work.write_json(PROGRESS, {"status": status, "error": error, "row": row, "history": history})


def test_an_ended_trial_is_in_every_file(folder):
    record = StudyRecord(folder, "f1")
    begin(record, "t1")
    leave(record, "t1")
    record.end("t1")
    record.write()
    trials = results.read_trials(folder)
    assert trials.loc[0, ["trial_id", "status", "val/f1", "test/f1"]].tolist() == [
        "t1",
        "completed",
        0.5,
        0.4,
    ]
    assert folder.read_parquet(HISTORY)["trial_id"].tolist() == ["t1"]
    assert folder.read_parquet(PREDICTIONS)["trial_id"].tolist() == ["t1"]
    assert folder.read_bytes(f"{BEST}/model.safetensors") == b"model of t1"
    assert not folder.exists("work")


def test_the_best_model_follows_validation_and_ties_go_to_the_smallest_id(folder):
    record = StudyRecord(folder, "f1")
    for trial_id, score in (("t5", 0.5), ("t7", 0.7), ("t3", 0.7), ("t9", 0.6)):
        begin(record, trial_id)
        leave(record, trial_id, score=score)
        record.end(trial_id)
    assert record.best() == "t3"
    assert folder.read_bytes(f"{BEST}/model.safetensors") == b"model of t3"


def test_a_stopped_trial_keeps_what_it_did_and_is_no_candidate_for_best(folder):
    record = StudyRecord(folder, "f1")
    begin(record, "t1", stage="search")
    leave(record, "t1", status="unfinished", score=0.9)
    row = record.end("t1", "stopped")
    assert (row["status"], row["val/f1"], row["epochs"]) == ("stopped", 0.9, 2)
    assert len(record.history("t1")) == 1
    assert record.best() is None


@pytest.mark.parametrize("status", ["failed", "diverged"])
def test_what_went_wrong_is_in_the_row(folder, status):
    record = StudyRecord(folder, "f1")
    begin(record, "t1")
    leave(record, "t1", status=status, error="ValueError: too hot")
    record.end("t1")
    assert results.read_trials(folder).loc[0, ["status", "error"]].tolist() == [status, "ValueError: too hot"]
    assert StudyRecord(folder, "f1").finished("t1") == (status == "diverged")


def test_a_worker_that_died_leaves_a_failed_row(folder):
    record = StudyRecord(folder, "f1")
    begin(record, "t1")
    row = record.end("t1", "failed", "the worker process died")
    assert (row["status"], row["error"]) == ("failed", "the worker process died")


def test_a_trial_that_ended_but_was_not_merged_is_merged_on_opening(folder):
    record = StudyRecord(folder, "f1")
    for trial_id in ("t1", "t2"):
        begin(record, trial_id)
    record.write()
    leave(record, "t1")
    leave(record, "t2", status="unfinished")
    again = StudyRecord(folder, "f1")  # the driver was killed before `end`
    assert again.rows["t1"]["status"] == "completed"
    assert again.rows["t2"]["status"] == "unfinished"
    assert again.work("t2").exists(PROGRESS), "what continues must be kept"
    assert folder.read_parquet(HISTORY)["trial_id"].tolist() == ["t1"]


def test_a_stop_that_was_merged_into_trials_alone_is_completed_on_opening(folder):
    record = StudyRecord(folder, "f1")
    begin(record, "t1", stage="search")
    leave(record, "t1", status="unfinished")
    record._took = 1e9  # history and predictions are not due
    record.end("t1", "stopped")
    assert folder.exists(TRIALS)
    assert not folder.exists(HISTORY)
    again = StudyRecord(folder, "f1")
    assert again.rows["t1"]["status"] == "stopped"
    assert len(again.history("t1")) == 1


def test_reopening_changes_no_finished_row(folder):
    record = StudyRecord(folder, "f1")
    for trial_id, score in (("t1", 1 / 3), ("t2", 0.1 + 0.2)):
        begin(record, trial_id)
        leave(record, trial_id, score=score)
        record.end(trial_id)
    before = folder.read_bytes(TRIALS)
    again = StudyRecord(folder, "f1")
    again.write()
    assert folder.read_bytes(TRIALS) == before
    assert again.score("t2") == 0.1 + 0.2
