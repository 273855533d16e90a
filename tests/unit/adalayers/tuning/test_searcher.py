"""What Tune tells the searcher, and what that makes of it."""

from types import SimpleNamespace

import pytest

from adalayers.config import trial_config
from adalayers.errors import CannotWrite
from adalayers.request import Resources
from adalayers.tuning.job import TrialJob
from adalayers.tuning.searcher import Abandoned, StudySearcher


@pytest.mark.parametrize("together", [1, 3])
def test_a_worker_that_cannot_write_ends_the_study_not_a_trial(together):
    """Nor could the trial's row be written, and what was there before goes on with the next run."""
    jobs = [
        TrialJob(trial_id=f"t{i}", stage="confirm", arm="a", seed=i, config=trial_config(), work="w")
        for i in range(together)
    ]
    searcher = StudySearcher([SimpleNamespace(record=None)], Resources())
    searcher._trials["x"] = 0, jobs
    full = CannotWrite("the disk is full")
    searcher.errors["x"] = SimpleNamespace(cause=full)
    with pytest.raises(Abandoned) as ended:
        searcher.on_trial_complete("x", error=True)
    assert ended.value.__cause__ is full
