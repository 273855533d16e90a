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
from adalayers.training.steps import Pace
from adalayers.tuning.job import TrialJob
from adalayers.tuning.trainable import run_in_study, trainable
from tests.helpers.made_data import made_data

SMALL = {"k": 8, "heads": 2, "batch_size": 16, "epochs": 4, "lr": 3e-3, "dropout": 0.3}
MEMBERS = {
    "whole": {"alpha": 8.0},
    "stops": {"lr": 3e-2, "patience": 1},
    "diverges": {"lr": 1e30},
    "short": {"mix": "uniform", "epochs": 1},
}


@pytest.fixture(autouse=True)
def reported(monkeypatch):
    """What Tune hears, instead of Tune."""
    heard = mock.Mock()
    monkeypatch.setattr(tune, "report", heard)
    return heard


@pytest.fixture(autouse=True)
def in_turn(monkeypatch):
    """Trials step one by one, as over live features, so that numbers can be compared bit for bit."""
    monkeypatch.setattr(together, "_kind", id)


@pytest.fixture
def at_step(monkeypatch):
    """Return what lets a step, by its number in all, raise an error."""

    def at_step(number, error):
        steps, whole = itertools.count(1), Members.gradients

        def step(*given):
            if next(steps) == number:
                raise error
            return whole(*given)

        monkeypatch.setattr(Members, "gradients", step)

    return at_step


def ran(folder, names, **resources):
    """Run trials in one program and return what each left, but for times."""
    places = {name: Folder(folder / name).uri for name in names}
    configs = {name: LayerMixConfig(**{**SMALL, **MEMBERS[name]}) for name in names}
    own = {"stage": "confirm", "arm": "", "seed": 3}
    jobs = [TrialJob(trial_id=name, config=configs[name], work=places[name], **own) for name in names]
    run_in_study(jobs, made_data(), Resources(**resources), lambda: None)
    notes = {name: Folder(folder / name).read_sealed(PROGRESS) for name in names}
    for note in notes.values():
        note["row"].pop("seconds", None)
    return notes


def test_members_that_stop_or_diverge_leave_the_others_as_they_are_alone(tmp_path):
    together = ran(tmp_path / "together", MEMBERS)
    statuses = ["completed", "completed", "diverged", "completed"]
    assert [note["status"] for note in together.values()] == statuses
    for name, note in together.items():
        assert ran(tmp_path / "alone", [name])[name] == note


def test_a_member_that_fails_is_tried_again_as_often_as_asked_and_catches_up(tmp_path, at_step):
    wanted = ran(tmp_path / "well", MEMBERS)
    at_step(30, OSError("the file system went away"))
    assert ran(tmp_path / "broken", MEMBERS, retries=1) == wanted
    at_step(30, OSError("the file system went away"))
    notes = ran(tmp_path / "given up", MEMBERS, retries=0).values()
    failed = [note["error"] for note in notes if note["status"] == "failed"]
    assert failed == ["OSError: the file system went away"]


def test_what_was_completed_is_not_run_again_and_the_rest_goes_on(tmp_path, monkeypatch, at_step):
    wanted = ran(tmp_path / "whole", MEMBERS)
    ran(tmp_path / "cut", ["short"])
    at_step(30, SystemExit())
    with pytest.raises(SystemExit):
        ran(tmp_path / "cut", MEMBERS)
    begun = mock.Mock(side_effect=trainer.build_model)
    monkeypatch.setattr(trainer, "build_model", begun)
    assert ran(tmp_path / "cut", MEMBERS) == wanted
    assert begun.call_count == 3


def test_a_group_that_memory_does_not_hold_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(Members, "gradients", mock.Mock(side_effect=torch.OutOfMemoryError("out of memory")))
    with pytest.raises(torch.OutOfMemoryError):
        ran(tmp_path, MEMBERS)


def test_a_confirmation_reports_its_first_and_last_evaluation_and_few_between(tmp_path, reported):
    ran(tmp_path, ["whole"])
    assert [call.args[0]["epoch"] for call in reported.call_args_list] == [1, SMALL["epochs"]]


def test_a_group_writes_and_reports_at_one_epoch_for_all(tmp_path, reported, monkeypatch):
    """Of a group one speaks; what takes long is done more rarely, by all or by none."""
    written, whole = [], Folder.write_sealed

    def write(self, name, note):
        if note["status"] == "unfinished":
            written.append((note["history"][-1]["epoch"], self.uri))
        whole(self, name, note)

    monkeypatch.setattr(Folder, "write_sealed", write)
    module = importlib.import_module("adalayers.tuning.trainable")
    monkeypatch.setattr(module, "REPORT_SECONDS", 0.0)
    monkeypatch.setattr(module, "REPORT_SHARE", 1.0)
    names = ["whole", "stops", "short"]
    ran(tmp_path, names)
    epochs = [epoch for epoch, _ in written]
    assert epochs.count(1) == 3
    assert epochs.count(2) == 2
    assert [call.args[0]["epoch"] for call in reported.call_args_list] == sorted(set(epochs))


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
    own = {"stage": "confirm", "arm": "", "seed": 1, "config": LayerMixConfig()}
    jobs = [TrialJob(trial_id=name, work=str(tmp_path / name), **own) for name in ("a", "b")]
    driver = {**software(), "code": "0123456789abcdef", "torch": "1.0"}
    trainable({"jobs": jobs}, data=[None], software=driver)
    for name in ("a", "b"):
        note = Folder(tmp_path / name).read_sealed(PROGRESS)
        assert note["status"] == "failed"
        assert "other software than its driver: the code of adalayers in /" in note["error"]
        assert f"torch is {software()['torch']} and not 1.0" in note["error"]
    assert other_software(software()) == ""
