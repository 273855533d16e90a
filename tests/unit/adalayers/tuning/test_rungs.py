"""The scheduler's rungs: which evaluations are ranked."""

from types import SimpleNamespace

import pytest
from ray.tune.schedulers import TrialScheduler

from adalayers.config import trial_config
from adalayers.request import Resources
from adalayers.schedulers import SCHEDULERS
from adalayers.tuning.job import TrialJob
from adalayers.tuning.searcher import SearchScheduler, StudySearcher

EPOCHS = 8


def searching(name, evaluations=lambda identity: []):
    """Return a scheduler of one case with one search that has no finished trials."""
    search = SimpleNamespace(name="", finished=list, evaluations=evaluations)
    case = SimpleNamespace(agenda=SimpleNamespace(searches=[search]))
    return SearchScheduler(name, SimpleNamespace(cases=[case], stopped=set(), errors={}), epochs=EPOCHS)


@pytest.fixture
def asha():
    return searching("asha")


def trial(number):
    config = trial_config()
    job = TrialJob(trial_id=f"t{number}", stage="search", arm="", seed=0, config=config, work="")
    return SimpleNamespace(trial_id=str(number), config={"jobs": [job]})


def decisions(asha, **last):
    """Nine good trials end their first epoch; then a poor one reports `last`."""
    for number in range(9):
        asha.on_trial_add(None, trial(number))
        asha.on_trial_result(None, trial(number), {"epoch": 1, "best": 0.9, "last": False})
    asha.on_trial_add(None, trial(9))
    return asha.on_trial_result(None, trial(9), {"epoch": 1, "best": 0.1, "last": False} | last)


def test_a_poor_trial_is_stopped(asha):
    assert decisions(asha) == TrialScheduler.STOP
    assert asha._searcher.stopped == {(0, "t9")}


def test_one_that_is_trained_again_or_done_is_not(asha):
    assert decisions(asha, round=2.0) == TrialScheduler.CONTINUE
    assert decisions(asha, last=True) == TrialScheduler.CONTINUE
    assert not asha._searcher.stopped


def test_a_trial_that_goes_on_stands_in_the_rungs_with_the_scores_that_it_had_there():
    """Interrupted after epoch 2, it goes on with epoch 3: its rung at 1 has 0.2, and not what it reaches later."""
    had = {"t0": [{"epoch": 1.0, "score": 0.2}, {"epoch": 2.0, "score": 0.3}]}
    asha = searching("asha", lambda identity: had.get(identity, []))
    asha.on_trial_add(None, trial(0))
    asha.on_trial_result(None, trial(0), {"epoch": 3, "best": 0.9, "last": False})
    for number, best, decision in ((1, 0.1, TrialScheduler.STOP), (2, 0.3, TrialScheduler.CONTINUE)):
        asha.on_trial_add(None, trial(number))
        assert (
            asha.on_trial_result(None, trial(number), {"epoch": 1, "best": best, "last": False}) == decision
        )


def test_hyperband_ranks_trials_of_one_bracket_and_one_has_no_rungs():
    kind = SCHEDULERS["hyperband"]
    assert [rungs for _, rungs in kind.of(EPOCHS)] == [[1, 3], [3], []]
    hyperband, worst = searching("hyperband"), {"best": 0.1, "last": False}
    stopped = {}
    for number in range(60):
        hyperband.on_trial_add(None, trial(number))
        bracket = kind.bracket(f"t{number}", EPOCHS)
        for epoch in (1, 3):
            result = {"epoch": epoch} | (worst if number >= 50 else {"best": 0.9, "last": False})
            if hyperband.on_trial_result(None, trial(number), result) == TrialScheduler.STOP:
                stopped.setdefault(bracket, set()).add(epoch)
                break
        hyperband.on_trial_complete(None, trial(number), {})
    assert stopped == {0: {1}, 1: {3}}
    kept = [getattr(bracket, "_trial_info", {}) for bracket in hyperband._brackets[0, ""]]
    assert not any(kept), "trials that have ended are forgotten"


def test_fifo_stops_none():
    fifo = searching("fifo")
    assert decisions(fifo) == TrialScheduler.CONTINUE


@pytest.mark.parametrize("on_gpu", [True, False])
def test_a_group_spans_seeds_on_a_gpu_alone(on_gpu):
    calls = []
    next_group = lambda most, across_seeds: calls.append((most, across_seeds)) or "done"  # noqa: E731
    agenda = SimpleNamespace(next_group=next_group, waiting=int)
    searcher = StudySearcher([SimpleNamespace(live=False, agenda=agenda)], Resources(group="4"))
    searcher.on_gpu = on_gpu
    assert searcher.suggest("a") == StudySearcher.FINISHED
    assert calls == [(4, on_gpu)]
