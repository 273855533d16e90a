"""How a study ended, by the trials that failed."""

import pytest

from adalayers.tuning.run import StudyOutcome, most_failed


@pytest.mark.parametrize(
    ("counts", "most"),
    [
        ([{}], False),
        ([{"confirm": {"completed": 4, "failed": 44}}], True),
        ([{"search": {"completed": 2}, "confirm": {"failed": 2}}], False),  # half is not most
        ([{"search": {"completed": 2}, "confirm": {"failed": 3}}], True),
        ([{"search": {"diverged": 4}}], True),  # nothing has a score
        ([{"search": {"diverged": 4, "failed": 1}}], True),
        (
            [{"search": {"diverged": 9}, "confirm": {"completed": 1}}],
            False,
        ),  # they count, at the trivial baseline
        ([{"confirm": {"failed": 3}}, {"confirm": {"completed": 3}}], False),
        ([{"confirm": {"failed": 4}}, {"confirm": {"completed": 3}}], True),
        ([{"confirm": {"unfinished": 5, "failed": 1}}], False),
    ],
)
def test_a_study_of_which_most_trials_failed_is_said_to_have(counts, most):
    assert most_failed([StudyOutcome("finished", by_stage) for by_stage in counts]) is most
