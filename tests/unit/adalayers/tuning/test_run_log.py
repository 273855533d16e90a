"""What study.json says of runs, analyses and openings of the test split, whatever became of a run."""

from types import SimpleNamespace

from adalayers.request import StudyRequest
from adalayers.results.interim_analyses import InterimAnalysis
from adalayers.results.study_file import EnvironmentRecord, RunsRecord
from adalayers.results.trial_row import TrialRow
from adalayers.tuning.run_log import RunLog

ANALYSED = (InterimAnalysis(after=2),)
FIRST = (("a", 1), ("b", 1))
SECOND = (*FIRST, ("a", 2))


def record(*rows: tuple[str, int], test: bool = True, status: str = "completed") -> dict:
    """Return the rows of a record."""
    scores = {"val/f1": 0.5} | ({"test/f1": 0.5} if test else {})
    return {
        f"{arm}{seed}": TrialRow(
            trial_id=f"{arm}{seed}", stage="confirm", arm=arm, seed=seed, status=status, found=scores
        )
        for arm, seed in rows
    }


def after(before: RunsRecord, opened: dict, closed: dict, analyses=ANALYSED) -> RunsRecord:
    """Return what `study.json` holds after a run that found the rows `opened` and left `closed`."""
    record_ = SimpleNamespace(rows=opened)
    log = RunLog(before, record_, EnvironmentRecord(), StudyRequest(seeds=2))
    record_.rows = closed
    return log.runs("finished", ("a", "b"), analyses)


def test_a_run_that_adds_confirmed_trials_is_an_analysis_and_an_opening():
    runs = after(after(RunsRecord(), {}, record(*FIRST)), record(*FIRST), record(*SECOND))
    assert (runs.analyses, runs.test_opened) == (2, 2)
    assert [run.seeds for run in runs.history] == [{"a": [1], "b": [1]}, {"a": [2], "b": []}]
    assert [run.test_scored for run in runs.history] == [2, 1]
    assert all(run.ended >= run.started for run in runs.history)


def test_reading_again_and_failing_are_no_analyses():
    again = after(after(RunsRecord(), {}, record(*FIRST)), record(*FIRST), record(*FIRST), analyses=())
    assert (again.analyses, len(again.history)) == (1, 2)
    failed = after(RunsRecord(), {}, record(*FIRST, status="failed"), analyses=())
    assert (failed.analyses, failed.test_opened) == (1, 0)


def test_rows_that_a_killed_run_left_uncounted_are_its_own_but_no_analysis():
    killed = after(RunsRecord(), {}, {}, analyses=())  # after the rows were written, before they were counted
    runs = after(killed, record(*FIRST), record(*SECOND))
    assert [run.confirmed for run in runs.history] == [2, 1]
    assert [run.analyses for run in runs.history] == [(), ANALYSED]
    assert (runs.analyses, runs.test_opened) == (1, 2)


def test_without_a_test_split_it_is_never_opened():
    runs = after(RunsRecord(), {}, record(*FIRST, test=False))
    assert (runs.analyses, runs.test_opened) == (1, 0)
