"""What is said of speed where it cannot be compared."""

import re

import pytest

from reports.tables.convergence import Pace


@pytest.mark.parametrize(
    ("pace", "said"),
    [
        (Pace(6, 6, 0, once=6), "every trial was evaluated once, .*; it would take more epochs"),
        (
            Pace(6, 6, 0),
            "6 of 6 trials have the score that both sides reach at their first evaluation, .*; it would take a lower "
            "learning rate, or fewer training examples",
        ),
    ],
)
def test_why_speed_cannot_be_compared_and_what_it_would_take(pace, said):
    assert pace.saturated
    assert re.fullmatch(said + r"\.", pace.sentence())
