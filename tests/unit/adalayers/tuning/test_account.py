"""What study.json says of runs, looks and openings of the test split, whatever became of a run."""

from __future__ import annotations

from types import SimpleNamespace

from adalayers.tuning.account import Account, Look

GIT = {"commit": "abc", "dirty": False}
ARMS = ("a", "b")
LOOKED = (Look(2, {}),)


def record(*rows: tuple[str, int], test: bool = True, status: str = "completed") -> SimpleNamespace:
    """Return what an account reads of a record: its rows."""
    scores = {"val/f1": 0.5} | ({"test/f1": 0.5} if test else {})
    return SimpleNamespace(
        rows={
            f"{arm}{seed}": {"stage": "confirm", "arm": arm, "seed": seed, "status": status, **scores}
            for arm, seed in rows
        }
    )


def after(before: dict, opened: SimpleNamespace, closed: SimpleNamespace, looks=LOOKED) -> dict:
    """Return what `study.json` holds after a run that found `opened` and left `closed`."""
    account = Account(before, opened)
    return {
        "happened": account.happened(
            "finished", closed, GIT, ARMS, planned=2, until_decided=False, looks=looks, smoke=False
        )
    }


FIRST = (("a", 1), ("b", 1))
SECOND = (*FIRST, ("a", 2))


def test_a_run_that_adds_confirmed_trials_is_a_look_and_an_opening():
    one = after({}, record(), record(*FIRST))
    two = after(one, record(*FIRST), record(*SECOND))
    happened = two["happened"]
    assert (happened["looks"], happened["test_opened"]) == (2, 2)
    assert [run["seeds"] for run in happened["runs"]] == [{"a": [1], "b": [1]}, {"a": [2], "b": []}]
    assert [run["test_scored"] for run in happened["runs"]] == [2, 1]
    assert all(run["ended"] >= run["started"] for run in happened["runs"])


def test_reading_again_and_failing_are_no_looks():
    one = after({}, record(), record(*FIRST))
    again = after(one, record(*FIRST), record(*FIRST), looks=())
    assert (again["happened"]["looks"], len(again["happened"]["runs"])) == (1, 2)
    failed = after({}, record(), record(*FIRST, status="failed"), looks=())
    assert (failed["happened"]["looks"], failed["happened"]["test_opened"]) == (1, 0)


def test_rows_that_a_killed_run_left_uncounted_are_its_own_but_no_analysis():
    killed = after(
        {}, record(), record(), looks=()
    )  # killed after the rows were written, before they were counted
    happened = after(killed, record(*FIRST), record(*SECOND))["happened"]
    assert [run["confirmed"] for run in happened["runs"]] == [2, 1]
    assert [run["looks"] for run in happened["runs"]] == [[], [2]]
    assert (happened["looks"], happened["test_opened"]) == (1, 2)


def test_without_a_test_split_it_is_never_opened():
    happened = after({}, record(), record(*FIRST, test=False))["happened"]
    assert (happened["looks"], happened["test_opened"]) == (1, 0)


def test_runs_of_an_older_file_still_count():
    old = {"happened": {"runs": [{"started": "2026-01-01", "seconds": 1.0, "confirmed": 2, **GIT}]}}
    happened = after(old, record(*FIRST), record(*SECOND))["happened"]
    assert (happened["looks"], happened["test_opened"]) == (2, 2)
    assert happened["runs"][1]["seeds"] == {"a": [2], "b": []}
