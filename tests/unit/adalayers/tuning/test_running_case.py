"""What study.json says of runs, analyses and openings of the test split, whatever became of a run."""

from types import SimpleNamespace

import pytest

from adalayers.request import StudyRequest
from adalayers.results.interim_analyses import InterimAnalysis
from adalayers.results.study_file import EnvironmentRecord, RunsRecord
from adalayers.results.trial_row import TrialRow
from adalayers.tuning.run import why_most_failed
from adalayers.tuning.running_case import RunLog

ANALYSED = (InterimAnalysis(after=2),)
FIRST, SECOND = ("a1", "b1"), ("a1", "b1", "a2")


def record(*trials: str, test: bool = True, status: str = "completed") -> dict:
    """Return the rows of a record; a trial is named by arm and seed."""
    scores = {"val/f1": 0.5} | ({"test/f1": 0.5} if test else {})
    own = {"stage": "confirm", "status": status, "found": scores}
    return {name: TrialRow(trial_id=name, arm=name[0], seed=int(name[1]), **own) for name in trials}


def after(before: RunsRecord, opened: dict, closed: dict, analyses=ANALYSED) -> RunsRecord:
    """Return what `study.json` holds after a run that found the rows `opened` and left `closed`."""
    record_ = SimpleNamespace(rows=opened)
    log = RunLog(before, record_, EnvironmentRecord(), StudyRequest(seeds=2))
    record_.rows = closed
    return log.runs("finished", ("a", "b"), analyses)


def test_a_run_that_adds_confirmed_trials_is_an_analysis_and_an_opening():
    first = after(RunsRecord(), {}, record(*FIRST))
    runs = after(first, record(*FIRST), record(*SECOND))
    assert (runs.analyses, runs.test_opened) == (2, 2)
    assert [run.seeds for run in runs.history] == [{"a": [1], "b": [1]}, {"a": [2], "b": []}]
    assert [run.test_scored for run in runs.history] == [2, 1]
    assert all(run.ended >= run.started for run in runs.history)
    again = after(first, record(*FIRST), record(*FIRST), analyses=())
    assert (again.analyses, len(again.history)) == (1, 2)
    failed = after(RunsRecord(), {}, record(*FIRST, status="failed"), analyses=())
    assert (failed.analyses, failed.test_opened) == (1, 0)
    untested = after(RunsRecord(), {}, record(*FIRST, test=False))
    assert (untested.analyses, untested.test_opened) == (1, 0)


def test_rows_that_a_killed_run_left_uncounted_are_its_own_but_no_analysis():
    killed = after(RunsRecord(), {}, {}, analyses=())  # after the rows were written, before they were counted
    runs = after(killed, record(*FIRST), record(*SECOND))
    assert [run.confirmed for run in runs.history] == [2, 1]
    assert [run.analyses for run in runs.history] == [(), ANALYSED]
    assert (runs.analyses, runs.test_opened) == (1, 2)


@pytest.mark.parametrize(
    ("counts", "most"),
    [
        ({}, False),
        ({"completed": 2, "failed": 2}, False),  # half is not most
        ({"completed": 2, "failed": 3}, True),
        ({"diverged": 4, "failed": 1}, True),  # nothing has a score
        ({"diverged": 9, "completed": 1}, False),  # they count, at the baseline
        ({"unfinished": 5, "failed": 1}, False),
    ],
)
def test_a_study_of_which_most_trials_failed_is_said_to_have(counts, most):
    rows = [row for status, n in counts.items() for row in n * [*record("a1", status=status).values()]]
    assert bool(why_most_failed(rows)) is most
