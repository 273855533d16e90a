"""When analyses are made and the error that each has: by hand, and that the sum never exceeds the plan."""

import itertools
import random

import pytest

from adalayers.results.interim_analyses import CROSSED, EXTENSIONS, PLANNED, next_analysis, planned_analyses


def made(*asked):
    """Return (seeds, level, whether beyond the plan) of the analyses of commands: seeds, and whether until decided."""
    analyses = []
    for seeds, until_decided in asked:
        for _ in range(3):
            one = next_analysis(analyses, seeds, until_decided=until_decided, error=PLANNED)
            analyses += [one] if not analyses or one.after > analyses[-1].after else []
    return [(one.after, pytest.approx(one.level), one.extension) for one in analyses]


def test_until_decided_looks_at_six_the_middle_and_the_end():
    for ends in ((6,), (6, 7), (6, 9), (6, 9, 12), (6, 9, 15), (6, 12, 20), (6, 18, 30)):
        assert planned_analyses(ends[-1], until_decided=True) == ends
        assert planned_analyses(ends[-1], until_decided=False) == ends[-1:]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([(20, True)], [(6, 0.04 / 3, False), (12, 0.04 / 3, False), (20, 0.04 / 3, False)]),
        # Each raised number of seeds is an extension, which has half of what is left of 1%.
        ([(6, False), (12, False), (20, False)], [(6, 0.04, False), (12, 0.005, True), (20, 0.0025, True)]),
        # A plan cut short, and one that is left: the last has what is left.
        ([(9, True), (20, False)], [(6, 0.02, False), (9, 0.02, False), (20, 0.005, True)]),
    ],
)
def test_levels_by_hand(asked, expected):
    assert made(*asked) == expected
    assert next_analysis([], 5, until_decided=False, error=PLANNED) is None  # fewer than six cost nothing


def test_a_plan_that_is_left_gives_its_last_analysis_what_remains():
    first = next_analysis([], 20, until_decided=True, error=CROSSED)
    assert (first.after, first.level, first.planned) == (6, CROSSED / 3, (6, 12, 20))
    last = next_analysis([first], 20, until_decided=False, error=CROSSED)
    assert (last.after, last.level, last.extension) == (20, pytest.approx(2 * CROSSED / 3), False)
    short = next_analysis([first], 9, until_decided=True, error=CROSSED)  # fewer seeds than were planned
    assert (short.after, short.level) == (9, pytest.approx(CROSSED / 3))
    again = next_analysis([first, last], 20, until_decided=False, error=CROSSED)  # a failed trial has run
    assert (again.after, again.level, again.extension) == (20, EXTENSIONS / 2, True)


def test_whatever_is_asked_for_levels_never_exceed_the_plan():
    for seed in range(20):
        draw, analyses = random.Random(seed), []
        for _ in range(30):
            asked = {"until_decided": draw.random() < 0.5, "error": PLANNED}
            one = next_analysis(analyses, draw.randint(3, 40), **asked)
            analyses += [one] if one else []
        assert sum(one.level for one in analyses if not one.extension) <= PLANNED + 1e-12
        assert sum(one.level for one in analyses) <= PLANNED + EXTENSIONS
        assert all(one.level > 0 for one in analyses)
        assert all(a.after <= b.after for a, b in itertools.pairwise(analyses))
