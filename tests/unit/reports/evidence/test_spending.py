"""Error that analyses may spend: by the plan, beyond it, and between the comparisons of a family."""

from collections.abc import Iterable

import pytest

from reports.evidence.spending import HALF, next_budget, shares

BLOCKS = (6, 9, 12, 15, 18, 20)


def spent(analyses: Iterable[tuple[int, int]], pairs: int | None = None) -> list[float]:
    """Return what analyses (seeds, planned) in turn may have spent on comparisons with all their seeds, or so many."""
    found, budget = [], None
    for seeds, planned in analyses:
        budget = next_budget(budget, seeds=seeds, planned=planned)
        found.append(budget.spent(pairs or budget.seeds))
    return found


def beyond(blocks: float) -> float:
    return 0.04 + 0.01 * blocks / (blocks + HALF)


def test_a_plan_spends_four_percent_in_proportion_from_six_pairs_on():
    assert spent((n, 20) for n in BLOCKS) == pytest.approx([0.04 * n / 20 for n in BLOCKS])
    assert spent([(6, 6)]) == [0.04]
    assert spent([(3, 20), (5, 5), (6, 6)]) == [0, 0, pytest.approx(0.04 * 6 / 20)]


def test_a_plan_of_fewer_than_six_seeds_is_one_of_six():
    assert spent([(3, 3), (6, 6), (9, 9)]) == pytest.approx([0, 0.04, beyond(1)])


def test_extensions_spend_by_blocks_whatever_they_ask_for():
    """How many seeds are asked for may follow from what was seen."""
    at_once, by_step = [(6, 6), (9, 15), (12, 15), (15, 15)], [(6, 6), (9, 9), (12, 12), (15, 15)]
    assert spent(at_once) == spent(by_step) == pytest.approx([0.04, beyond(1), beyond(2), beyond(3)])
    assert spent([(6, 6), (10**6, 10**6)])[-1] < 0.05
    assert spent([(6, 20), (12, 40), (21, 40)]) == pytest.approx(
        [0.04 * 6 / 20, 0.04 * 12 / 20, beyond(1 / 3)]
    )


def test_an_analysis_of_no_further_seeds_counts_as_a_block():
    """Arms joined, or failed trials were run again, after the plan was complete."""
    assert spent([(20, 20), (20, 20), (20, 20)]) == pytest.approx([0.04, beyond(1), beyond(2)])
    assert spent([(9, 20), (9, 20)]) == pytest.approx([0.04 * 9 / 20] * 2)


def test_pairs_that_failed_do_not_keep_error_back_for_ever():
    assert spent([(6, 9), (9, 9)], pairs=6) == pytest.approx([0.04 * 6 / 9, 0.04])
    assert spent([(6, 6)], pairs=5) == [0]


def test_primary_comparisons_divide_four_fifths():
    assert shares((True, False, True, False, False)) == pytest.approx([0.4, 0.2 / 3, 0.4, 0.2 / 3, 0.2 / 3])
    assert shares((True,) * 4) == shares((False,) * 4) == [0.25] * 4
