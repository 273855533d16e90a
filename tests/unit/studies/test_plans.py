"""Every study plans what it planned: arms with all that tells them from the defaults, searches, comparisons, notes."""

import pytest

from tests.helpers.plans import PLANS, plan_file, plans


@pytest.mark.parametrize("name", sorted(path.stem for path in PLANS.glob("*.txt")))
def test_a_study_plans_what_it_planned(name):
    """Where that is meant to change: `python -m tests.helpers.plans`, and read the difference."""
    assert plans(name).splitlines() == plan_file(name).read_text(encoding="utf-8").splitlines()
