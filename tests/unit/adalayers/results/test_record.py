"""The record: what is written when a trial ends, and what a kill at any moment leaves."""

import numpy as np
import pandas as pd
import pytest

from adalayers.errors import BadInput
from adalayers.results import files as results
from adalayers.results.files import BEST, HISTORY, PREDICTIONS, TRIALS
from adalayers.results.record import PROGRESS, StudyRecord
from adalayers.results.trial_row import TrialRow
from adalayers.storage.folder import Folder

T1, T2, T3, T5, T7, T9 = (f"t{number:012x}" for number in (1, 2, 3, 5, 7, 9))


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "study")


def begin(record, trial_id, stage="confirm", seed=1):
    arm = "x" if stage == "confirm" else ""
    record.begin(TrialRow(trial_id=trial_id, stage=stage, arm=arm, seed=seed, settings={"alpha": 1.0}))


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
    work.write_json(PROGRESS, {"status": status, "error": error, "row": row, "history": history})


def test_an_ended_trial_is_in_every_file(folder, record):
    leave(record, T1)
    record.end(T1)
    record.write()
    trials = results.read_trials(folder)
    assert trials.loc[0, ["trial_id", "status"]].tolist() == [T1, "completed"]
    assert trials.loc[0, ["val/f1", "test/f1"]].tolist() == [0.5, 0.4]
    assert folder.read_parquet(HISTORY)["trial_id"].tolist() == [T1]
    assert folder.read_parquet(PREDICTIONS)["trial_id"].tolist() == [T1]
    assert folder.read_bytes(f"{BEST}/model.safetensors") == f"model of {T1}".encode()
    assert not folder.exists("work")


def test_the_best_model_follows_validation_and_ties_go_to_the_smallest_id(folder):
    record = StudyRecord(folder, "f1")
    for trial_id, score in ((T5, 0.5), (T7, 0.7), (T3, 0.7), (T9, 0.7)):
        begin(record, trial_id)
        leave(record, trial_id, score=score)
        record.end(trial_id)
    assert record.best() == T3
    assert folder.read_bytes(f"{BEST}/model.safetensors") == f"model of {T3}".encode()


def test_a_stopped_trial_keeps_what_it_did_and_is_no_candidate_for_best(folder):
    record = StudyRecord(folder, "f1")
    begin(record, T1, stage="search")
    leave(record, T1, status="unfinished", score=0.9)
    row = record.end(T1, "stopped")
    assert (row.status, row.score("f1"), row.found["epochs"]) == ("stopped", 0.9, 2)
    assert len(record.history(T1)) == 1
    assert record.best() is None


@pytest.mark.parametrize("status", ["failed", "diverged"])
def test_what_went_wrong_is_in_the_row(folder, record, status):
    leave(record, T1, status=status, error="ValueError: too hot")
    record.end(T1)
    record.write()
    assert results.read_trials(folder).loc[0, ["status", "error"]].tolist() == [status, "ValueError: too hot"]
    assert StudyRecord(folder, "f1").finished(T1) == (status == "diverged")


def test_a_failure_is_kept_over_what_the_trial_noted_as_it_began_and_has_not_ended_for_the_next_run(
    folder, record
):
    leave(record, T1, status="failed", error="too hot")
    record.end(T1)
    record.write()
    begun = {**record.rows[T1].cells(), "status": "unfinished"}
    record.work(T1).write_sealed("row.json", {"number": 0, "row": begun})
    again = StudyRecord(folder, "f1")
    assert (again.rows[T1].status, again.rows[T1].error) == ("failed", "too hot")
    assert record.ended(T1)
    assert not again.ended(T1)
    again.end(T1, "failed")
    assert again.ended(T1)


def test_a_worker_that_died_leaves_a_failed_row(folder, record):
    row = record.end(T1, "failed", "the worker process died")
    assert (row.status, row.error) == ("failed", "the worker process died")


def test_a_trial_that_ended_but_was_not_merged_is_merged_on_opening(folder, record):
    begin(record, T2)
    record.write()
    leave(record, T1)
    leave(record, T2, status="unfinished")
    again = StudyRecord(folder, "f1")  # the driver was killed before `end`
    assert again.rows[T1].status == "completed"
    assert again.rows[T2].status == "unfinished"
    assert again.work(T2).exists(PROGRESS), "what continues must be kept"
    assert folder.read_parquet(HISTORY)["trial_id"].tolist() == [T1]


def test_a_stop_that_was_merged_into_trials_alone_is_completed_on_opening(folder):
    record = StudyRecord(folder, "f1")
    begin(record, T1, stage="search")
    leave(record, T1, status="unfinished")
    record._took = 1e9  # the study's files are not due
    record.end(T1, "stopped")
    assert not record.written
    assert not folder.exists(HISTORY)
    again = StudyRecord(folder, "f1")
    assert again.rows[T1].status == "stopped"
    assert len(again.history(T1)) == 1


def test_reopening_changes_no_finished_row(folder):
    record = StudyRecord(folder, "f1")
    for trial_id, score in ((T1, 1 / 3), (T2, 0.1 + 0.2)):
        begin(record, trial_id)
        leave(record, trial_id, score=score)
        record.end(trial_id)
    record.write()
    before = folder.read_bytes(TRIALS)
    again = StudyRecord(folder, "f1")
    again.write()
    assert folder.read_bytes(TRIALS) == before
    assert again.score(T2) == 0.1 + 0.2


def test_files_that_are_not_due_are_made_whole_on_opening_in_the_order_of_the_trials(folder):
    """A driver that is killed loses no row, and the next one sees the trials as they came."""
    record = StudyRecord(folder, "f1")
    record._took = 1e9
    trials = {T9: "completed", T2: "unfinished", T5: "stopped", T1: "unfinished"}
    for trial_id, status in trials.items():
        begin(record, trial_id)
        leave(record, trial_id, status="unfinished" if status == "stopped" else status)
        if status != "unfinished":
            record.end(trial_id, "stopped" if status == "stopped" else None)
    assert not folder.exists(TRIALS)
    again = StudyRecord(folder, "f1")
    assert [(key, row.status) for key, row in again.rows.items()] == [*trials.items()]
    again.write()
    record.write()
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


def damage(folder, name, left):
    """Cut a file off after so many bytes, at its end where that is negative."""
    folder.write_bytes(name, folder.read_bytes(name)[:left])


@pytest.mark.parametrize("left", [0, 7, -5])
@pytest.mark.parametrize("name", [HISTORY, PREDICTIONS])
def test_a_damaged_file_of_rows_costs_what_it_held_and_no_row_of_trials(folder, record, name, left, capsys):
    begin(record, T2)
    leave(record, T1)
    record.end(T1)
    record.write()
    damage(folder, name, left)
    kept = folder.read_bytes(name)
    again = StudyRecord(folder, "f1")
    said = capsys.readouterr().err
    assert f"{name} in {folder.uri} could not be read" in said
    assert f"{name}.damaged" in said
    assert folder.read_bytes(f"{name}.damaged") == kept
    assert again.rows[T1].status == "completed"
    leave(again, T2)
    again.end(T2)
    again.write()
    assert folder.read_parquet(name)["trial_id"].tolist() == [T2]


@pytest.mark.parametrize("left", [0, 20, -1])
def test_rows_that_cannot_be_read_are_named_with_what_to_do(folder, record, left):
    damage(folder, TRIALS, left)
    before = folder.read_bytes(TRIALS)
    with pytest.raises(BadInput, match=r"could not read trials\.csv .* lost or in doubt; .*--label.*--fr"):
        StudyRecord(folder, "f1")
    assert folder.read_bytes(TRIALS) == before


@pytest.mark.parametrize("trial_id", ["../../victim", "", "t1", "t0123456789AB", "t0123456789ab/..", "."])
def test_a_row_whose_id_no_study_gives_is_refused_and_names_no_folder(folder, record, trial_id):
    text = folder.read_bytes(TRIALS).decode().replace(T1, trial_id)
    folder.write_bytes(TRIALS, text.encode())
    folder.path().parent.joinpath("victim").mkdir()
    with pytest.raises(BadInput, match="wanted trial ids as studies write them"):
        StudyRecord(folder, "f1")
    with pytest.raises(BadInput, match="wanted trial ids"):
        record.work(trial_id)
    assert folder.path().parent.joinpath("victim").exists()


ODD = [b"", b'{"status', b"null", b"[]", b"{}", b'{"history": 3}', b"[" * 100_000]


@pytest.mark.parametrize(
    ("name", "left"), [*((PROGRESS, text) for text in ODD), (PREDICTIONS, b""), (PREDICTIONS, b"PAR1\0\0")]
)
def test_a_trial_that_left_a_file_that_no_trial_writes_runs_again(folder, record, name, left, capsys):
    leave(record, T1)
    record.work(T1).write_bytes(name, left)
    again = StudyRecord(folder, "f1")  # the driver was killed before `end`
    assert again.rows[T1].status == "unfinished"
    assert f"trial {T1} left {name}, which cannot be read" in capsys.readouterr().err
    leave(again, T1)
    assert again.end(T1).status == "completed"


def test_a_trial_whose_files_are_damaged_as_it_ends_has_failed(folder, record):
    leave(record, T1)
    damage(record.work(T1), PREDICTIONS, 9)
    row = record.end(T1)
    assert (row.status, row.error) == ("failed", f"it left {PREDICTIONS}, which cannot be read")


def test_what_a_worker_that_outlived_its_driver_leaves_changes_no_finished_row(folder, record):
    leave(record, T1)
    record.end(T1)
    record.write()
    before = folder.read_bytes(TRIALS)
    history = record.history(T1)
    leave(record, T1, score=0.9)
    late = record.work(T1).read_sealed(PROGRESS)
    late["row"]["epochs"], late["row"]["seconds"] = 7, 99.0
    record.work(T1).write_json(PROGRESS, late)
    again = StudyRecord(folder, "f1")
    again.write()
    assert folder.read_bytes(TRIALS) == before
    after = again.history(T1).reset_index(drop=True)
    pd.testing.assert_frame_equal(after, history[after.columns])
    assert not folder.exists("work")


def test_a_hostile_folder_writes_and_deletes_nothing_elsewhere(folder, record, tmp_path):
    """Links where a study's own folders should be: it is refused before anything runs."""
    folder.delete("work")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / PROGRESS).write_text('{"status": "completed", "error": "", "row": {}, "history": []}')
    for name in (f"work/{T1}", "work", BEST):
        link = folder.path(name)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(victim)
        with pytest.raises(BadInput, match="it is a link to"):
            StudyRecord(folder, "f1")
        link.unlink()
        if link.parent.name == "work":
            link.parent.rmdir()
    assert [path.name for path in victim.iterdir()] == [PROGRESS]


def test_a_score_that_is_no_number_is_named(tmp_path):
    folder = Folder(tmp_path)
    row = {"trial_id": T1, "stage": "confirm", "arm": "a", "search": "", "status": "completed", "error": ""}
    results.write_trials(folder, [row | {"seed": 1, "fusion": "layer-mix", "val/accuracy": "0,75"}])
    with pytest.raises(BadInput, match=f"val/accuracy of trial {T1} is '0,75'.*--label.*--fresh"):
        StudyRecord(folder, "accuracy")
