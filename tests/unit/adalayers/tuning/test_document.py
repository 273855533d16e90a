"""The request in `study.json`, as arms come and go."""

import dataclasses
from types import SimpleNamespace

import pytest

from adalayers.comparisons import pair
from adalayers.results.study_file import RequestRecord, StudyFile
from adalayers.storage.folder import Folder
from adalayers.tuning.document import request_record
from tests.unit.adalayers.tuning.test_agenda import agenda, run, study_with, tuned_plan


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "study")


def test_tuned_arms_are_compared_with_what_the_controls_search_finds_best_now(folder):
    def comparisons(arms, factors, control):
        return [pair(arm.name, control) for arm in arms if arm.name != control]

    plan = tuned_plan()
    searches = [dataclasses.replace(search, becomes=search.name) for search in plan.searches]
    plan = dataclasses.replace(plan, tuned_only=True, searches=searches)
    study = study_with(comparisons=comparisons)
    before, arms = StudyFile(), ()
    for trials, control in ((1, "learned"), (4, "learned-4")):
        made = agenda(folder, plan=plan, trials=trials, seeds=1, arms=arms)
        run(made, score=lambda job: 0.9 if job.config.lr > 1e-3 else 0.1)
        case = SimpleNamespace(plan=plan, before=before, request=RequestRecord(trials=trials, seeds=1))
        found = request_record(study, case, made)
        assert found.control == control
        current = {arm.name for arm in made.arms}
        pairs = {(planned.arm, planned.control) for planned in found.comparisons}
        assert {(name, control) for name in current - {control}} <= pairs
        before, arms = dataclasses.replace(before, request=found), found.arms
