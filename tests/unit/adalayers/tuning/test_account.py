"""What study.json says of runs, analyses and openings of the test split, whatever became of a run."""

from __future__ import annotations

from types import SimpleNamespace

from adalayers.tuning.account import Account, InterimAnalysis

GIT = {"commit": "abc", "dirty": False}
ARMS = ("a", "b")
LOOKED = (InterimAnalysis(2, {}),)


def record(*rows: tuple[str, int], test: bool = True, status: str = "completed") -> SimpleNamespace:
    """Return what an account reads of a record: its rows."""
    scores = {"val/f1": 0.5} | ({"test/f1": 0.5} if test else {})
    return SimpleNamespace(
        rows={
            f"{arm}{seed}": {"stage": "confirm", "arm": arm, "seed": seed, "status": status, **scores}
            for arm, seed in rows
        }
    )


def after(before: dict, opened: SimpleNamespace, closed: SimpleNamespace, analyses=LOOKED) -> dict:
    """Return what `study.json` holds after a run that found `opened` and left `closed`."""
    account = Account(before, opened)
    return {
        "runs": account.runs(
            "finished", closed, GIT, ARMS, planned=2, until_decided=False, analyses=analyses, smoke=False
        )
    }


FIRST = (("a", 1), ("b", 1))
SECOND = (*FIRST, ("a", 2))


def test_a_run_that_adds_confirmed_trials_is_a_look_and_an_opening():
    one = after({}, record(), record(*FIRST))
    two = after(one, record(*FIRST), record(*SECOND))
    happened = two["runs"]
    assert (happened["analyses"], happened["test_opened"]) == (2, 2)
    assert [run["seeds"] for run in happened["history"]] == [{"a": [1], "b": [1]}, {"a": [2], "b": []}]
    assert [run["test_scored"] for run in happened["history"]] == [2, 1]
    assert all(run["ended"] >= run["started"] for run in happened["history"])


def test_reading_again_and_failing_are_no_analyses():
    one = after({}, record(), record(*FIRST))
    again = after(one, record(*FIRST), record(*FIRST), analyses=())
    assert (again["runs"]["analyses"], len(again["runs"]["history"])) == (1, 2)
    failed = after({}, record(), record(*FIRST, status="failed"), analyses=())
    assert (failed["runs"]["analyses"], failed["runs"]["test_opened"]) == (1, 0)


def test_rows_that_a_killed_run_left_uncounted_are_its_own_but_no_analysis():
    killed = after(
        {}, record(), record(), analyses=()
    )  # killed after the rows were written, before they were counted
    happened = after(killed, record(*FIRST), record(*SECOND))["runs"]
    assert [run["confirmed"] for run in happened["history"]] == [2, 1]
    assert [run["analyses"] for run in happened["history"]] == [[], [2]]
    assert (happened["analyses"], happened["test_opened"]) == (1, 2)


def test_without_a_test_split_it_is_never_opened():
    happened = after({}, record(), record(*FIRST, test=False))["runs"]
    assert (happened["analyses"], happened["test_opened"]) == (1, 0)


def test_runs_of_an_older_file_still_count():
    old = {"runs": {"history": [{"started": "2026-01-01", "seconds": 1.0, "confirmed": 2, **GIT}]}}
    happened = after(old, record(*FIRST), record(*SECOND))["runs"]
    assert (happened["analyses"], happened["test_opened"]) == (2, 2)
    assert happened["history"][1]["seeds"] == {"a": [2], "b": []}
