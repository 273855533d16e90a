"""What a trial takes of a machine, and how many fit: said alike by the plan and by the run."""

import dataclasses

import pytest

from adalayers.command import cases as of_study
from adalayers.command.flags import parse
from adalayers.errors import BadInput
from adalayers.request import Resources
from tests.unit.adalayers.command.test_flags import STUDY


@pytest.mark.parametrize(
    ("settings", "cpus", "gpus", "fits"),
    [
        ({}, 2, 0, 2),
        ({}, 16, 1, 1),
        ({"max_concurrent": 8}, 2, 0, 2),
        ({"max_concurrent": 8, "gpus_per_trial": 0.0625}, 16, 1, 8),
        ({"gpus_per_trial": 0.25}, 16, 1, 4),
        ({"gpus_per_trial": 0.0}, 16, 1, 16),
        ({"cpus_per_trial": 0.5}, 2, 0, 4),
        ({"gpus_per_trial": 2.0}, 16, 1, 0),
    ],
)
def test_as_many_trials_run_at_a_time_as_all_resources_allow(settings, cpus, gpus, fits):
    assert dataclasses.replace(Resources(), **settings).at_a_time(cpus=cpus, gpus=gpus) == fits


def test_a_cluster_may_have_more_cpus_than_this_machine(monkeypatch):
    class Reached(Exception):
        pass

    def canonical(*_):
        raise Reached

    monkeypatch.setattr(of_study, "check_address", lambda address: None)
    monkeypatch.setattr(of_study.sources, "canonical", canonical)
    flags = parse(STUDY, ["--cpus-per-trial", "4096", "--tracking-uri", "none"])
    with pytest.raises(BadInput, match="--cpus-per-trial of at most"):
        of_study.cases(STUDY, flags)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    with pytest.raises(Reached):
        of_study.cases(STUDY, flags)
