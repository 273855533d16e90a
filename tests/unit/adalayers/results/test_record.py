"""The record: what is written when a trial ends, and what a kill at any moment leaves."""

import numpy as np
import pandas as pd
import pytest

from adalayers.results import files as results
from adalayers.results.files import BEST, HISTORY, PREDICTIONS, TRIALS
from adalayers.results.record import PROGRESS, StudyRecord
from adalayers.results.trial_row import TrialRow
from tests.helpers.refusing import refused

T1, T2, T3, T5, T7, T9 = (f"t{number:012x}" for number in (1, 2, 3, 5, 7, 9))


def begin(record, *trial_ids):
    for trial_id in trial_ids:
        record.begin(TrialRow(trial_id=trial_id, stage="confirm", arm="x", seed=1, settings={"alpha": 1.0}))


@pytest.fixture
def record(folder):
    """A record in which a trial has begun."""
    record = StudyRecord(folder, "f1")
    begin(record, T1)
    record.write()
    return record


def leave(record, trial_id, status="completed", score=0.5, error=""):
    """Leave what a worker leaves."""
    work = record.work(trial_id)
    row = {"epochs": 2, "best_epoch": 1, "val/f1": score, "test/f1": score - 0.1, "seconds": 1.5}
    history = [{"epoch": 1.0, "step": 5, "val/f1": score, "mix/weight_01": 1.0}]
    if status == "completed":
        work.write_bytes(f"{BEST}/model.safetensors", f"model of {trial_id}".encode())
        rows = [{"split": "val", "index": 0, "label": "a", "prediction": "b", "score": 0.9}]
        work.write_parquet(PREDICTIONS, pd.DataFrame(rows))
    work.write_sealed(PROGRESS, {"status": status, "error": error, "row": row, "history": history})


def ended(record, trial_id=T1, said=None, **left):
    """Let a trial end with what it leaves, and write it all; return its row."""
    leave(record, trial_id, **left)
    row = record.end(trial_id, said)
    record.write()
    return row


def test_the_best_model_follows_validation_and_ties_go_to_the_smallest_id(folder):
    record = StudyRecord(folder, "f1")
    begin(record, T1, T2, T3, T5, T7, T9)
    row = ended(record, T1, "stopped", status="unfinished", score=0.9)  # no candidate, whatever it did
    assert (row.status, row.score("f1"), row.found["epochs"]) == ("stopped", 0.9, 2)
    assert (len(record.history(T1)), record.best()) == (1, None)
    for trial_id, score in ((T5, 0.5), (T7, 0.7), (T3, 0.7), (T9, 0.7)):
        ended(record, trial_id, score=score)
    assert record.best() == T3
    assert folder.read_bytes(f"{BEST}/model.safetensors") == f"model of {T3}".encode()


@pytest.mark.parametrize("status", ["failed", "diverged"])
def test_what_went_wrong_is_kept(folder, record, status):
    """A failed one has not ended for the next run."""
    ended(record, status=status, error="too hot")
    assert results.read_trials(folder).loc[0, ["status", "error"]].tolist() == [status, "too hot"]
    assert record.ended(T1)
    again = StudyRecord(folder, "f1")
    assert (again.rows[T1].status, again.rows[T1].error) == (status, "too hot")
    assert again.finished(T1) == again.ended(T1) == (status == "diverged")
    row = again.end(T1, "failed", "the worker process died")
    assert (row.status, row.error) == (status, "the worker process died" if status == "failed" else "too hot")
    assert again.ended(T1)


def test_a_trial_that_ended_but_was_not_merged_is_merged_on_opening(folder, record):
    begin(record, T2)
    record.write()
    leave(record, T1)
    leave(record, T2, status="unfinished")
    again = StudyRecord(folder, "f1")  # the driver was killed before `end`
    assert (again.rows[T1].status, again.rows[T2].status) == ("completed", "unfinished")
    assert again.work(T2).exists(PROGRESS), "what continues must be kept"
    assert folder.read_parquet(HISTORY)["trial_id"].tolist() == [T1]


def test_files_that_are_not_due_are_made_whole_on_opening_in_the_order_of_the_trials(folder):
    """A driver that is killed loses no row, and the next one sees the trials as they came."""
    record = StudyRecord(folder, "f1")
    record._took = 1e9  # seconds: files of rows by trial are not due again
    trials = {T9: "completed", T2: "unfinished", T5: "stopped", T1: "unfinished"}
    for trial_id, status in trials.items():
        begin(record, trial_id)
        leave(record, trial_id, status="completed" if status == "completed" else "unfinished")
        if status != "unfinished":
            record.end(trial_id, status)
    assert not record.written
    assert not folder.exists(HISTORY)
    again = StudyRecord(folder, "f1")
    assert [(key, row.status) for key, row in again.rows.items()] == [*trials.items()]
    assert len(again.history(T5)) == 1
    assert again.rows[T9] == record.rows[T9]


@pytest.mark.parametrize("name", [PREDICTIONS, "sealed.json"])
def test_a_flipped_bit_is_not_read_as_another_value(folder, name):
    """Anywhere: a file says what it did, or cannot be read. Parquet's own checksums leave out the names of columns."""
    rows = pd.DataFrame({"trial_id": [T1] * 300, "score": np.random.default_rng(0).random(300)})
    sealed = name == "sealed.json"
    read = folder.read_sealed if sealed else folder.read_parquet
    folder.write_sealed(name, rows.to_dict("list")) if sealed else folder.write_parquet(name, rows)
    whole, said, refused = folder.read_bytes(name), read(name), 0
    for place in range(0, len(whole), max(len(whole) // 400, 1)):
        folder.write_bytes(name, whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :])
        try:
            again = read(name)
        except (ValueError, OSError):
            refused += 1
        else:
            assert {key: list(again[key]) for key in said} == {key: list(said[key]) for key in said}
    assert refused > 300


@pytest.mark.parametrize(("name", "left"), [(HISTORY, 0), (PREDICTIONS, -5)])
def test_a_damaged_file_of_rows_costs_what_it_held_and_no_row_of_trials(folder, record, name, left, capsys):
    begin(record, T2)
    ended(record)
    kept = folder.read_bytes(name)[:left]
    folder.write_bytes(name, kept)
    again = StudyRecord(folder, "f1")
    assert f"{name} in {folder.uri} could not be read" in capsys.readouterr().err
    assert folder.read_bytes(f"{name}.damaged") == kept
    assert again.rows[T1].status == "completed"
    ended(again, T2)
    assert folder.read_parquet(name)["trial_id"].tolist() == [T2]


def test_rows_that_cannot_be_read_are_named_with_what_to_do(folder, record):
    whole = folder.read_bytes(TRIALS)
    twice = whole + whole.splitlines()[1] + b"\n"
    for text, why in ((b"", ""), (whole[:-1], "ends within a row"), (twice, f"trial {T1} more than once")):
        folder.write_bytes(TRIALS, text)
        refused(rf"could not read trials\.csv .*{why}.*--label.*--fr", StudyRecord, folder, "f1")
        assert folder.read_bytes(TRIALS) == text


@pytest.mark.parametrize("trial_id", ["../../victim", "t0123456789AB", "t0123456789ab/.."])
def test_a_row_whose_id_no_study_gives_is_refused_and_names_no_folder(folder, record, trial_id):
    text = folder.read_bytes(TRIALS).decode().replace(T1, trial_id)
    folder.write_bytes(TRIALS, text.encode())
    refused("wanted trial ids as studies write them", StudyRecord, folder, "f1")
    refused("wanted trial ids", record.work, trial_id)


def test_a_score_that_is_no_number_is_named(folder, record):
    row = record.rows[T1].cells() | {"status": "completed", "val/f1": "0,75"}
    results.write_trials(folder, [row])
    refused(f"val/f1 of trial {T1} is '0,75'.*--label.*--fresh", StudyRecord, folder, "f1")


@pytest.mark.parametrize(("name", "left"), [(PROGRESS, b'{"history": 3}'), (PREDICTIONS, b"PAR1\0\0")])
def test_a_trial_that_left_a_file_that_no_trial_writes_runs_again(folder, record, name, left, capsys):
    leave(record, T1)
    record.work(T1).write_bytes(name, left)
    again = StudyRecord(folder, "f1")  # the driver was killed before `end`
    assert again.rows[T1].status == "unfinished"
    assert f"trial {T1} left {name}, which cannot be read" in capsys.readouterr().err
    assert ended(again).status == "completed"
    begin(again, T2)
    again.work(T2).write_bytes(name, left)
    row = again.end(T2)
    assert (row.status, row.error) == ("failed", f"it left {name}, which cannot be read")


def test_what_a_worker_that_outlived_its_driver_leaves_changes_no_finished_row(folder, record):
    ended(record, score=0.1 + 0.2)
    before, history = folder.read_bytes(TRIALS), record.history(T1)
    leave(record, T1, score=0.9)
    late = record.work(T1).read_sealed(PROGRESS)
    late["row"] |= {"epochs": 7, "seconds": 99.0}
    record.work(T1).write_sealed(PROGRESS, late)
    again = StudyRecord(folder, "f1")
    again.write()
    assert folder.read_bytes(TRIALS) == before
    assert again.score(T1) == 0.1 + 0.2
    after = again.history(T1).reset_index(drop=True)
    pd.testing.assert_frame_equal(after, history[after.columns])
    assert not folder.exists("work")


@pytest.mark.parametrize("name", [f"work/{T1}", "work", BEST])
def test_a_hostile_folder_writes_and_deletes_nothing_elsewhere(folder, record, tmp_path, name):
    """Links where a study's own folders should be: it is refused before anything runs."""
    folder.delete("work")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / PROGRESS).write_text('{"status": "completed", "error": "", "row": {}, "history": []}')
    folder.path(name).parent.mkdir(exist_ok=True)
    folder.path(name).symlink_to(victim)
    refused("it is a link to", StudyRecord, folder, "f1")
    assert [path.name for path in victim.iterdir()] == [PROGRESS]
