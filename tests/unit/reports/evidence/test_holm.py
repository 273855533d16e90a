"""The two Holm runs, against tests of SciPy and steps worked out by hand."""

import pytest
from scipy import stats

from reports.evidence.holm import BETTER, OPEN, SAME, WORSE, Estimate, decide, holm, paired, unpaired


def test_independent_samples_have_welchs_error_and_the_fewest_degrees_of_freedom():
    one, two = [0.7, 0.72, 0.69, 0.75], [-0.5, -0.56, -0.45, -0.52, -0.53, -0.6]
    estimate = unpaired([one, two], 0.01, scale=0.75)
    t = stats.ttest_ind(one, [-value for value in two], equal_var=False).statistic
    assert estimate.difference / estimate.error == pytest.approx(t)
    assert estimate.df == 3
    assert unpaired([one, [-0.5] * 6], 0.01, scale=0.75).error == pytest.approx(stats.sem(one))
    alike = [0.3 - 0.2, 0.4 - 0.3]  # no spread: not tested
    assert paired(alike, 0.01, scale=0.4) is None
    assert unpaired([alike, alike], 0.01, scale=0.4) is None


def test_holms_steps_by_hand():
    """Of four at 5%: 0.0125, 0.0167, 0.025, 0.05."""
    steps = holm({"a": 0.03, "b": 0.01, "c": 0.9, "d": 0.016}, 0.05)
    rejected = {key: step.rejected for key, step in steps.items()}
    assert rejected == {"b": True, "d": True, "a": False, "c": False}
    assert [step.level for step in steps.values()] == pytest.approx([0.05 / 4, 0.05 / 3, 0.025, 0.025])
    assert [step.adjusted for step in steps.values()] == pytest.approx([0.04, 0.048, 0.06, 0.9])
    # An adjusted p value is never less than that of the step before.
    assert [step.adjusted for step in holm({"a": 0.02, "b": 0.021}, 0.05).values()] == [0.04, 0.04]
    alone = holm({"b": 0.01}, 0.05, others=4)["b"]  # 0.05 / 5: just enough
    assert (alone.rejected, alone.level, alone.adjusted) == (True, 0.01, 0.05)


def estimate(t: float, difference: float = 0.1, smallest: float | None = None) -> Estimate:
    return Estimate(difference, abs(difference) / t, 5, smallest)


def test_each_error_has_a_run_of_its_own():
    """A run that closes a comparison hands its share on in that run alone."""
    same = estimate(0.1, 0.0005, smallest=0.1)  # t of the tests against the smallest effect: 19.9
    close = estimate(stats.t.isf(0.04 / 4, 5), 0.01)  # p = 0.02, just above or below 0.04 / 2
    found = decide([(0.04 - 1e-9, {"same": same, "close": close})])
    assert (found["same"].verdict, found["close"].verdict) == (SAME, OPEN)
    # The run of differences: p = 0.02 against 0.04 / 2; had *same* handed on its share, against 0.04.
    assert found["close"].different.level == found["same"].same.level == pytest.approx(0.02)
    assert decide([(0.04 + 1e-9, {"same": same, "close": close})])["close"].verdict == BETTER
    both = decide([(0.04, {"a": Estimate(0.01, 0.0001, 5, smallest=0.05)})])["a"]
    assert (both.verdict, both.different.rejected, both.same.rejected) == (BETTER, True, True)


def test_what_an_analysis_decides_stays_and_each_run_drops_what_it_rejected():
    clear, same = estimate(50.0, -0.2), estimate(0.1, 0.0005, smallest=0.1)
    first = {"worse": clear, "same": same, "open": estimate(1.0, smallest=0.0), "lost": None}
    later = {"worse": estimate(50.0, 0.2), "same": clear, "open": estimate(2.0), "lost": estimate(50.0)}
    found = decide([(0.03, first), (0.01, later)])
    assert {key: (one.verdict, one.analysis) for key, one in found.items()} == {
        "worse": (WORSE, 0),
        "same": (SAME, 0),
        "open": (OPEN, 1),
        "lost": (BETTER, 1),
    }
    # Differences: of four, *worse* is dropped, *same* stays in as one that cannot be rejected.
    assert found["lost"].different.level == pytest.approx(0.01 / 3)
    assert found["open"].different.level == pytest.approx(0.01 / 2)
    assert found["open"].same.level == pytest.approx(0.01 / 3)  # of its own run, *same* is dropped alone
    assert found["open"].comparisons == 4
