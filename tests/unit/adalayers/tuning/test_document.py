"""The request in `study.json`, as arms come and go."""

from dataclasses import replace
from types import SimpleNamespace

from adalayers.comparisons import pair
from adalayers.results.study_file import RequestRecord, StudyFile
from adalayers.storage.folder import Folder
from adalayers.tuning.document import request_record
from tests.unit.adalayers.tuning.test_agenda import agenda, best_above, run, study_with, tuned_plan


def test_tuned_arms_are_compared_with_what_the_controls_search_finds_best_now(tmp_path):
    def comparisons(arms, factors, control):
        return [pair(arm.name, control) for arm in arms if arm.name != control]

    plan, study = tuned_plan(tuned_only=True), study_with(comparisons=comparisons)
    plan = replace(plan, searches=[replace(search, becomes=search.name) for search in plan.searches])
    before, arms = StudyFile(), ()
    for trials, control in ((1, "learned"), (4, "learned-4")):
        made = agenda(Folder(tmp_path), plan=plan, trials=trials, seeds=1, arms=arms)
        run(made, score=best_above(1e-3))
        case = SimpleNamespace(plan=plan, before=before, request=RequestRecord(trials=trials, seeds=1))
        found = request_record(study, case, made)
        assert found.control == control
        pairs = {(planned.arm, planned.control) for planned in found.comparisons}
        assert {(arm.name, control) for arm in made.arms if arm.name != control} <= pairs
        before, arms = replace(before, request=found), found.arms
