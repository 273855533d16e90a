"""What Tune tells the searcher and the scheduler: which evaluations are ranked, and what ends a study."""

from collections import Counter
from hashlib import sha256
from types import SimpleNamespace

import pytest
from ray.tune.schedulers import TrialScheduler

from adalayers.config import trial_config
from adalayers.errors import CannotWrite
from adalayers.request import Resources
from adalayers.schedulers import SCHEDULERS
from adalayers.tuning.job import TrialJob
from adalayers.tuning.searcher import Abandoned, SearchScheduler, StudySearcher

EPOCHS = 8
STOP, CONTINUE = TrialScheduler.STOP, TrialScheduler.CONTINUE


def searching(name, *evaluated):
    """Return a scheduler of one case with one search, of which some trials were evaluated before."""
    search = SimpleNamespace(name="", evaluated=lambda: evaluated)
    case = SimpleNamespace(agenda=SimpleNamespace(searches=[search]))
    return SearchScheduler(name, SimpleNamespace(cases=[case], stopped=set(), errors={}), epochs=EPOCHS)


def job(number, stage="search"):
    return TrialJob(trial_id=f"t{number}", stage=stage, arm="", seed=0, config=trial_config(), work="w")


def trial(number):
    return SimpleNamespace(trial_id=str(number), config={"jobs": [job(number)]})


def reports(scheduler, number, epoch, best, **more):
    metrics = {"epoch": epoch, "best": best, "last": False} | more
    return scheduler.on_trial_result(None, trial(number), metrics)


@pytest.mark.parametrize(
    ("name", "last", "decided"),
    [
        ("asha", {}, STOP),
        ("asha", {"round": 2.0}, CONTINUE),  # it is trained again
        ("asha", {"last": True}, CONTINUE),  # it is done
        ("fifo", {}, CONTINUE),
    ],
)
def test_a_poor_trial_is_stopped_that_has_something_to_go(name, last, decided):
    """Nine good trials end their first epoch; then a poor one reports `last`."""
    scheduler = searching(name)
    for number in range(9):
        scheduler.on_trial_add(None, trial(number))
        reports(scheduler, number, 1, 0.9)
    scheduler.on_trial_add(None, trial(9))
    assert reports(scheduler, 9, 1, 0.1, **last) == decided
    assert scheduler._searcher.stopped == ({(0, "t9")} if decided == STOP else set())


def test_a_trial_that_goes_on_stands_in_the_rungs_with_the_scores_that_it_had_there():
    """Interrupted after epoch 2, it goes on with epoch 3: its rung at 1 has 0.2, and not what it reaches later."""
    asha = searching("asha", ("t0", [(1.0, 0.2), (2.0, 0.3)]))
    asha.on_trial_add(None, trial(0))
    reports(asha, 0, 3, 0.9)
    for number, best, decided in ((1, 0.1, STOP), (2, 0.3, CONTINUE)):
        asha.on_trial_add(None, trial(number))
        assert reports(asha, number, 1, best) == decided


def test_the_best_third_of_those_that_met_a_rung_before_goes_on():
    """Of 0.0 to 0.9 two thirds lie below 0.6."""
    asha = searching("asha", *((f"t{number}", [(1.0, number / 10)]) for number in range(10)))
    assert [reports(asha, number, 1, best) for number, best in ((10, 0.5), (11, 0.65))] == [STOP, CONTINUE]


def test_hyperband_ranks_trials_of_one_bracket_and_one_has_no_rungs():
    kind = SCHEDULERS["hyperband"]
    assert [rungs for _, rungs in kind.of(EPOCHS)] == [[1, 3], [3], []]
    hyperband, stopped = searching("hyperband"), set()
    for number in range(60):
        hyperband.on_trial_add(None, trial(number))
        for epoch in (1, 3):
            if reports(hyperband, number, epoch, 0.1 if number >= 50 else 0.9) == STOP:
                stopped.add((kind.bracket(f"t{number}", EPOCHS), epoch))
                break
    assert stopped == {(0, 1), (1, 3)}
    ids = (sha256(bytes([place % 256, place // 256])).hexdigest() for place in range(3000))
    of = Counter(kind.bracket(trial_id, EPOCHS) for trial_id in ids)
    assert [of[place] / 3000 for place in range(3)] == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.03)


@pytest.mark.parametrize("on_gpu", [True, False])
def test_a_group_spans_seeds_on_a_gpu_alone(on_gpu):
    calls = []
    next_group = lambda most, across_seeds: calls.append((most, across_seeds)) or "done"  # noqa: E731
    agenda = SimpleNamespace(next_group=next_group, waiting=int)
    case = SimpleNamespace(live=False, agenda=agenda)
    searcher = StudySearcher([case], Resources(group="4"), concurrency=1, on_gpu=on_gpu)
    assert searcher.suggest("a") == StudySearcher.FINISHED
    assert calls == [(4, on_gpu)]


@pytest.mark.parametrize("together", [1, 3])
def test_a_worker_that_cannot_write_ends_the_study_not_a_trial(together):
    """Nor could the trial's row be written, and what was there before goes on with the next run."""
    searcher = StudySearcher([SimpleNamespace(record=None)], Resources(), concurrency=1, on_gpu=False)
    searcher._trials["x"] = 0, [job(number, "confirm") for number in range(together)]
    full = CannotWrite("the disk is full")
    searcher.errors["x"] = SimpleNamespace(cause=full)
    with pytest.raises(Abandoned) as ended:
        searcher.on_trial_complete("x", error=True)
    assert ended.value.__cause__ is full
