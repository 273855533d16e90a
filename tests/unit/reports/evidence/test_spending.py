"""Error that analyses may spend: by the plan, by its extensions, and between the comparisons of a family."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from reports.evidence.spending import Budget, next_budget, shares, stage_error

BLOCKS = (3, 6, 9, 12, 15, 18, 20)


def budgets(analyses: Iterable[tuple[int, int]]) -> list[Budget]:
    """Return the budgets of analyses (seeds, planned) in turn."""
    found: list[Budget] = []
    for seeds, planned in analyses:
        found.append(next_budget(found[-1] if found else None, seeds=seeds, planned=planned))
    return found


def spent(analyses: Iterable[tuple[int, int]]) -> list[float]:
    """Return what each analysis may have spent on comparisons with all its seeds."""
    return [budget.spent(budget.seeds) for budget in budgets(analyses)]


def test_a_plan_spends_four_percent_by_its_power():
    assert spent((n, 20) for n in BLOCKS) == pytest.approx([0.04 * (n / 20) ** 1.5 for n in BLOCKS])
    assert spent([(5, 5)]) == [0.04]


def extended(pairs: int) -> float:
    """Return the share of an extension's error that is spent after so many pairs of its own."""
    return (pairs / 3) / (pairs / 3 + 1)


def test_extensions_add_half_of_what_is_kept_each():
    """The first has half of a percent, the second a quarter, which they near block by block."""
    found = spent([*((n, 20) for n in BLOCKS), (23, 40), (40, 40), (60, 60), (10**6, 10**6)])
    assert found[6:8] == pytest.approx([0.04, 0.0425])
    assert found[8] == pytest.approx(0.04 + 0.005 * extended(20))
    assert found[9] == pytest.approx(0.04 + 0.005 * extended(40) + 0.0025 * extended(20))
    assert found[10] == pytest.approx(0.04 + 0.005 + 0.0025 + 0.00125, abs=1e-6)


def test_what_an_extension_spends_does_not_hang_on_how_many_seeds_it_asks_for():
    """How many it asks for may follow from what was seen."""
    few, many = (Budget(((0, 20), (20, planned)), 26) for planned in (26, 90))
    assert few.spent(26) == many.spent(26) == pytest.approx(0.04 + 0.005 * 2 / 3)


def test_an_analysis_of_no_further_seeds_is_an_extension_of_its_own():
    """Arms joined, or failed trials were run again, after the plan was complete."""
    assert spent([(20, 20), (20, 20), (20, 20)]) == pytest.approx([0.04, 0.045, 0.0475])
    assert budgets([(20, 20), (20, 20)])[1].stages == ((0, 20), (20, 20))


def test_a_plan_that_is_not_complete_is_not_extended_by_its_next_analysis():
    assert spent([(3, 20), (6, 20)]) == pytest.approx([0.04 * (n / 20) ** 1.5 for n in (3, 6)])
    assert spent([(3, 20), (6, 10)]) == spent([(3, 20), (6, 20)])  # fewer seeds: the plan stands
    # More seeds, before the first plan was complete: its extension spends nothing before its own seeds.
    assert spent([(6, 20), (12, 40), (20, 40)]) == pytest.approx([0.04 * 0.3**1.5, 0.04 * 0.6**1.5, 0.04])


def test_pairs_that_failed_do_not_keep_error_back_for_ever():
    first, last = budgets([(3, 6), (6, 6)])
    assert first.spent(2) == pytest.approx(0.04 * (2 / 6) ** 1.5)
    assert last.spent(4) == 0.04


def test_no_number_of_extensions_spends_five_percent():
    found = spent((n, n) for n in range(3, 90, 3))
    assert found == sorted(found)
    assert 0.049 < found[-1] < 0.05
    assert sum(stage_error(number) for number in range(200)) == pytest.approx(0.05)


@pytest.mark.parametrize("primary", [(True,), (False,), (True, False), (True,) * 8 + (False,) * 23])
def test_shares_sum_to_one(primary):
    assert sum(shares(primary)) == pytest.approx(1)


def test_primary_comparisons_divide_four_fifths():
    assert shares((True, False, True, False, False)) == pytest.approx([0.4, 0.2 / 3, 0.4, 0.2 / 3, 0.2 / 3])
    assert shares((True,) * 4) == shares((False,) * 4) == [0.25] * 4
