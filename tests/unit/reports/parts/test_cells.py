"""What comparisons are called, and what they are averaged over, from their weights."""

import pytest

from reports.parts.cells import averaged_over, compared
from reports.reading.load import load
from tests.helpers.studying import ROOT

RESULTS = ROOT / "docs" / "results"


@pytest.mark.parametrize(
    ("study", "expected"),
    [
        (
            "cutoff/minilm-conll2003",
            {"cutoff": {"alpha"}, "alpha": {"cutoff", "cutoff_when"}, "cutoff_when": {"alpha", "cutoff"}},
        ),
        (
            "small_data/minilm-conll2003",
            {name: {"train_examples"} for name in ("alpha", "entropy_weight", "cutoff", "mix")},
        ),
        (
            "capacity/minilm-conll2003",
            {"k": {"dropout", "train_examples"}, "dropout": {"k", "train_examples"}},
        ),
        ("single_layer/minilm-cola", {"train_projections": {"layer"}}),
    ],
)
def test_a_level_is_averaged_over_what_the_weights_say(study, expected):
    plan = load(RESULTS / study).plan
    found = {}
    for pair in plan.comparisons:
        if pair.kind == "factor":
            over = {factor.name for factor in averaged_over(pair, plan)}
            assert found.setdefault(pair.changes[0].factor, over) == over
    assert found == expected


def test_levels_are_named_by_their_factors_symbols():
    plan = load(RESULTS / "single_layer" / "minilm-cola").plan
    effects = [pair for pair in plan.comparisons if pair.changes]
    assert compared(effects[0], plan) == "projections trained = no instead of yes"
    assert compared(effects[1], plan) == "projections trained = no instead of yes, at layer = 1"
