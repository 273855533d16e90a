"""Several trials of a study in one worker: each ends in its own way, and none changes another's numbers."""

import importlib
import itertools
from unittest import mock

import pytest
import torch
from ray import tune

from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import Resources
from adalayers.results.provenance import other_software, software
from adalayers.results.record import PROGRESS
from adalayers.storage.folder import Folder
from adalayers.training import together, trainer
from adalayers.training.members import Members
from adalayers.training.together import Pace
from adalayers.tuning.job import TrialJob
from adalayers.tuning.trainable import run_in_study, trainable
from tests.helpers.made_data import made_data

SMALL = {"k": 8, "heads": 2, "batch_size": 16, "epochs": 4, "lr": 3e-3, "dropout": 0.3}
DATA = made_data()
MEMBERS = {
    "whole": {"alpha": 8.0},
    "stops": {"lr": 3e-2, "patience": 1},
    "diverges": {"lr": 1e30},
    "short": {"mix": "uniform", "epochs": 1},
}


@pytest.fixture(autouse=True)
def reported(monkeypatch):
    """What Tune hears, instead of Tune."""
    heard = []
    monkeypatch.setattr(tune, "report", lambda metrics: heard.append(metrics["epoch"]))
    return heard


@pytest.fixture(scope="module", autouse=True)
def in_turn():
    """Trials step one by one, as over live features, so that numbers can be compared bit for bit."""
    with mock.patch.object(together, "_kind", id):
        yield


def fails_midway(monkeypatch, error):
    """Let the thirtieth of all steps raise an error."""
    steps, whole = itertools.count(1), Members.gradients

    def step(*given):
        if next(steps) == 30:
            raise error
        return whole(*given)

    monkeypatch.setattr(Members, "gradients", step)


def jobs_of(folder, names):
    own = {"stage": "confirm", "arm": "", "seed": 3}
    configs = {name: LayerMixConfig(**{**SMALL, **MEMBERS.get(name, {})}) for name in names}
    return [TrialJob(trial_id=name, config=configs[name], work=str(folder / name), **own) for name in names]


def notes_of(folder, names):
    return {name: Folder(folder / name).read_sealed(PROGRESS) for name in names}


def ran(folder, names, **resources):
    """Run trials in one program and return what each left, but for times."""
    run_in_study(jobs_of(folder, names), DATA, Resources(**resources), lambda: None)
    notes = notes_of(folder, names)
    for note in notes.values():
        note["row"].pop("seconds", None)
    return notes


@pytest.fixture(scope="module")
def wanted(tmp_path_factory, in_turn):
    """What the members leave that nothing disturbs."""
    with mock.patch.object(tune, "report"):
        return ran(tmp_path_factory.mktemp("whole"), MEMBERS)


def test_members_that_stop_or_diverge_leave_the_others_as_they_are_alone_and_after_others(tmp_path, wanted):
    """Workers are reused: whatever a trial draws, sets or breaks, the next one does not see it."""
    statuses = ["completed", "completed", "diverged", "completed"]
    assert [note["status"] for note in wanted.values()] == statuses
    Folder(tmp_path / "diverges").write_bytes(PROGRESS, b"null")  # damage, which is replaced
    with mock.patch.object(trainer, "build_model", side_effect=MemoryError("no memory holds it")):
        assert ran(tmp_path, ["fails"])["fails"]["error"] == "MemoryError: no memory holds it"
    torch.rand(1000)
    for name, note in wanted.items():
        assert ran(tmp_path, [name])[name] == note
    assert ran(tmp_path / "again", ["whole"])["whole"] == wanted["whole"]


def test_a_member_that_fails_is_tried_again_as_often_as_asked_and_catches_up(tmp_path, wanted, monkeypatch):
    fails_midway(monkeypatch, OSError("the file system went away"))
    assert ran(tmp_path / "broken", MEMBERS, retries=1) == wanted
    fails_midway(monkeypatch, OSError("the file system went away"))
    notes = ran(tmp_path / "given up", MEMBERS, retries=0).values()
    failed = [note["error"] for note in notes if note["status"] == "failed"]
    assert failed == ["OSError: the file system went away"]


def test_what_was_completed_is_not_run_again_and_the_rest_goes_on(tmp_path, wanted, monkeypatch):
    ran(tmp_path, ["short"])
    fails_midway(monkeypatch, SystemExit())
    with pytest.raises(SystemExit):
        ran(tmp_path, MEMBERS)
    begun = mock.Mock(side_effect=trainer.build_model)
    monkeypatch.setattr(trainer, "build_model", begun)
    assert ran(tmp_path, MEMBERS) == wanted
    assert begun.call_count == 3


def test_a_group_that_memory_does_not_hold_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(Members, "gradients", mock.Mock(side_effect=torch.OutOfMemoryError("out of memory")))
    with pytest.raises(torch.OutOfMemoryError):
        ran(tmp_path, ["short", "whole"])


def test_a_confirmation_reports_its_first_and_last_evaluation_and_few_between(tmp_path, reported):
    ran(tmp_path, ["whole"])
    assert reported == [1, SMALL["epochs"]]


def test_what_is_done_after_an_epoch_takes_its_share_of_the_time_and_no_more(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    pace, done = Pace(0.05, 2.0), []
    for epoch in range(1, 101):
        for _ in range(3):  # trials
            if pace.due(epoch):
                with pace.doing():
                    now[0] += 0.5
                done.append(epoch)
        now[0] += 1.0
    assert done[:6] == [1, 1, 1, 30, 30, 30]  # 1.5 s are 5% of 30 s, and 30.5 have passed then
    assert all(done.count(epoch) == 3 for epoch in done)


@pytest.mark.parametrize(("gpus", "device"), [(None, "cuda"), (0.5, "cuda"), (0.0, "cpu")])
def test_a_trial_that_takes_no_gpu_leaves_those_it_sees_alone(monkeypatch, gpus, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    module = importlib.import_module("adalayers.tuning.trainable")
    assert module._device(Resources(gpus_per_trial=gpus)) == device


def test_a_worker_with_other_software_trains_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.set_num_threads", lambda n: pytest.fail("it went on"))
    driver = {**software(), "code": "0123456789abcdef", "torch": "1.0"}
    trainable({"jobs": jobs_of(tmp_path, "ab")}, data=[None], software=driver)
    for note in notes_of(tmp_path, "ab").values():
        assert note["status"] == "failed"
        assert "other software than its driver: the code of adalayers in /" in note["error"]
        assert f"torch is {software()['torch']} and not 1.0" in note["error"]
    assert other_software(software()) == ""
