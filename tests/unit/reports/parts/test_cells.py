"""What comparisons are called, and what they are averaged over, from their weights."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from adalayers.comparisons import At, Change, Comparison
from adalayers.results.study_file import Factor
from reports.evidence.claims import Claim
from reports.evidence.holm import BETTER, WORSE
from reports.parts import answer
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


def test_only_the_factors_of_a_proven_interaction_are_said_to_depend_on_each_other():
    pairs = [
        (Change("alpha", 8.0, 1.0), Change("k", 16, 64)),
        (Change("mix", "last", "learned"), Change("k", 16, 64)),
    ]
    known = {"metric": "f1", "split": "test", "comparisons": 9, "analyses": 1}
    found = [Claim(**vars(Comparison(changes=changes)), **known) for changes in pairs]
    simple = Comparison(changes=(Change("alpha", 8.0, 1.0),), at=At("k", 16))
    claims = [
        found[0],
        replace(found[1], verdict=WORSE),
        Claim(**vars(simple), **known, verdict=BETTER, difference=0.1),
    ]
    of = SimpleNamespace(factors=[Factor(name, name) for name in ("alpha", "mix", "k")])
    assert answer._depends(SimpleNamespace(claims=claims, plan=of, wholes=())) == [
        "The effects of mix and k **depend** on each other: no level by itself is decided.",
        "Whether the effects of alpha and k depend on each other is open: none of these interactions is decided.",
    ]
