"""How a study ended, by the trials that failed, and what its file says before."""

import dataclasses

import pytest

from adalayers.command.cases import cases
from adalayers.command.flags import parse
from adalayers.data.feature_choice import FeatureChoice
from adalayers.results.files import write_trials
from adalayers.results.study_file import RunsRecord
from adalayers.study import trial_id
from adalayers.tracking.mirror import Mirror
from adalayers.tuning.case import ReadyCase
from adalayers.tuning.run import most_failed
from adalayers.tuning.running_case import RunningCase, StudyOutcome
from studies.alpha_lambda import STUDY


@pytest.mark.parametrize(
    ("counts", "most"),
    [
        ([{}], False),
        ([{"confirm": {"completed": 4, "failed": 44}}], True),
        ([{"search": {"completed": 2}, "confirm": {"failed": 2}}], False),  # half is not most
        ([{"search": {"completed": 2}, "confirm": {"failed": 3}}], True),
        ([{"search": {"diverged": 4}}], True),  # nothing has a score
        ([{"search": {"diverged": 4, "failed": 1}}], True),
        ([{"search": {"diverged": 9}, "confirm": {"completed": 1}}], False),  # they count, at the baseline
        ([{"confirm": {"failed": 3}}, {"confirm": {"completed": 3}}], False),
        ([{"confirm": {"failed": 4}}, {"confirm": {"completed": 3}}], True),
        ([{"confirm": {"unfinished": 5, "failed": 1}}], False),
    ],
)
def test_a_study_of_which_most_trials_failed_is_said_to_have(counts, most):
    assert most_failed([StudyOutcome("finished", by_stage) for by_stage in counts]) is most


@pytest.mark.parametrize(("seeds", "state"), [(1, "finished"), (2, "running")])
def test_a_finished_case_with_nothing_left_stays_so_until_it_is_closed(world, tmp_path, seeds, state):
    """What comes before the first trial, another case's say, may end in bad input."""
    argv = ["--backbone", str(world["backbone"]), "--dataset", str(world["dataset"])]
    argv += ["--output", str(tmp_path)]
    argv += ["--trials", "0", "--seeds", str(seeds), "--set", "k=8", "heads=2"]
    flags = parse(STUDY, argv)
    (case,) = cases(STUDY, flags)
    data = case.prepared.data("live")
    confirmed = {"stage": "confirm", "search": "", "status": "completed", "error": "", "seed": 1}
    rows = [
        {"trial_id": trial_id(arm.config, data.shape, 1, data.provenance), "arm": arm.name}
        | {f"config/{name}": value for name, value in arm.config.used(data.shape).items()}
        | {**confirmed, "fusion": arm.config.fusion}
        for arm in case.plan.arms
    ]
    write_trials(case.folder, rows)
    before = dataclasses.replace(case.before, runs=RunsRecord(state="finished"))
    ready = ReadyCase(
        case=dataclasses.replace(case, before=before),
        features=FeatureChoice("live", "a test"),
        data=data,
        mirror=Mirror("none", case.folder, experiment="", run_name="", study_key=""),
    )
    RunningCase(STUDY, ready, reports=None)
    assert case.folder.read_json("study.json")["runs"]["state"] == state
