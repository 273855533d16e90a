"""Several trials of a study in one worker: each ends in its own way, and none changes another's numbers."""

import importlib
from unittest import mock

import pytest
import torch
from ray import tune

from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import Resources
from adalayers.results.provenance import other_software, software
from adalayers.results.record import PROGRESS
from adalayers.storage.folder import Folder
from adalayers.training import trainer
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
    module = importlib.import_module("adalayers.tuning.trainable")  # the package names its function so
    monkeypatch.setattr(module, "Together", lambda counted: lambda requests: None)


def ran(folder, names, **resources):
    """Run trials in one program and return what each left, but for times."""
    jobs = [
        TrialJob(
            trial_id=name,
            stage="confirm",
            arm=name,
            seed=3,
            config=LayerMixConfig(**{**SMALL, **MEMBERS[name]}),
            work=Folder(folder / name).uri,
        )
        for name in names
    ]
    run_in_study(jobs, made_data(), Resources(**resources))
    notes = {name: Folder(folder / name).read_sealed(PROGRESS) for name in names}
    for note in notes.values():
        note["row"].pop("seconds", None)
    return notes


def test_members_that_stop_or_diverge_leave_the_others_as_they_are_alone(tmp_path):
    together = ran(tmp_path / "together", MEMBERS)
    assert [note["status"] for note in together.values()] == [
        "completed",
        "completed",
        "diverged",
        "completed",
    ]
    for name, note in together.items():
        assert ran(tmp_path / "alone", [name])[name] == note


def test_a_member_that_fails_is_tried_again_as_often_as_asked_and_catches_up(tmp_path, monkeypatch):
    wanted, whole, steps = ran(tmp_path / "well", MEMBERS), trainer.Trainer.step, []

    def once_broken(self, *args):
        steps.append(self)
        if len(steps) == 30:
            raise OSError("the file system went away")
        return whole(self, *args)

    monkeypatch.setattr(trainer.Trainer, "step", once_broken)
    assert ran(tmp_path / "broken", MEMBERS, retries=1) == wanted
    steps.clear()
    notes = ran(tmp_path / "given up", MEMBERS, retries=0).values()
    assert [note["error"] for note in notes if note["status"] == "failed"] == [
        "OSError: the file system went away"
    ]


def test_what_was_completed_is_not_run_again_and_the_rest_goes_on(tmp_path, monkeypatch):
    wanted = ran(tmp_path / "whole", MEMBERS)
    ran(tmp_path / "cut", ["short"])
    monkeypatch.setattr(tune, "report", mock.Mock(side_effect=[None] * 3 + [SystemExit]))
    with pytest.raises(SystemExit):
        ran(tmp_path / "cut", MEMBERS)
    begun = mock.Mock(side_effect=trainer.build_model)
    monkeypatch.setattr(tune, "report", mock.Mock())
    monkeypatch.setattr(trainer, "build_model", begun)
    assert ran(tmp_path / "cut", MEMBERS) == wanted
    assert begun.call_count == 3


def test_a_group_that_memory_does_not_hold_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "outputs", mock.Mock(side_effect=torch.OutOfMemoryError("out of memory")))
    with pytest.raises(torch.OutOfMemoryError):
        ran(tmp_path, MEMBERS)


def test_a_confirmation_reports_its_first_and_last_evaluation_and_few_between(tmp_path, reported):
    ran(tmp_path, ["whole"])
    assert [call.args[0]["epoch"] for call in reported.call_args_list] == [1, SMALL["epochs"]]


@pytest.mark.parametrize(("gpus", "device"), [(None, "cuda"), (0.5, "cuda"), (0.0, "cpu")])
def test_a_trial_that_takes_no_gpu_leaves_those_it_sees_alone(monkeypatch, gpus, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    module = importlib.import_module("adalayers.tuning.trainable")
    assert module._device(Resources(gpus_per_trial=gpus)) == device


def test_a_worker_with_other_software_trains_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.set_num_threads", lambda n: pytest.fail("it went on"))
    jobs = [
        TrialJob(
            trial_id=name, stage="confirm", arm="", seed=1, config=LayerMixConfig(), work=str(tmp_path / name)
        )
        for name in ("a", "b")
    ]
    driver = {**software(), "code": "0123456789abcdef", "torch": "1.0"}
    trainable({"jobs": jobs}, data=[None], software=driver)
    for name in ("a", "b"):
        note = Folder(tmp_path / name).read_sealed(PROGRESS)
        assert note["status"] == "failed"
        assert "other software than its driver: the code of adalayers in /" in note["error"]
        assert f"torch is {software()['torch']} and not 1.0" in note["error"]
    assert other_software(software()) == ""
