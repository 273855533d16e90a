"""Every study plans what it planned: arms with all that tells them from the defaults, searches, comparisons, notes."""

import pytest

from adalayers.command.flags import parse
from adalayers.comparisons import PlannedArm
from adalayers.errors import BadInput
from studies import few_shot, methods, single_layer
from tests.helpers.planning import planned, setting_of
from tests.helpers.plans import STUDIES, TEXTS, WORDS, plan_file, plans


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_plans_what_it_planned(name):
    """Where that is meant to change: `python -m tests.helpers.plans`, and read the difference."""
    assert plans(name).splitlines() == plan_file(name).read_text(encoding="utf-8").splitlines()


def test_what_a_study_cannot_set_is_named():
    for layer in (-1, 9):
        with pytest.raises(BadInput, match="wanted --set layer to be one of"):
            planned(single_layer.STUDY, setting_of(single_layer.STUDY, TEXTS, layer=layer))
    with pytest.raises(BadInput, match=r"--protocol: invalid choice: .all."):
        parse(few_shot.STUDY, ["--protocol", "all"])
    with pytest.raises(BadInput, match=r"unknown method 'concat-matchd'; .*'concat-matched'"):
        planned(methods.STUDY, setting_of(methods.STUDY, TEXTS, own={"methods": "concat-matchd"}))


def test_methods_compare_what_the_last_searches_found():
    """The best of an earlier search keeps the plain name, and stands behind the others."""
    top, selected = "fine-tuning, of as many top layers", "fine-tuning, up to the selected layer"
    now = [("layer mix", "layer mix"), (top, top), (f"{selected}-12", selected)]
    arms = [PlannedArm(name, "tuned", tunes=(method,)) for name, method in [*now, (selected, selected)]]
    pairs = [planned.names[:2] for planned in methods.comparisons(arms, (), "layer mix")]
    assert pairs == [(top, "layer mix"), (f"{selected}-12", "layer mix"), (f"{selected}-12", top)]


def test_the_protocol_of_few_shots_reaches_the_arms():
    flags = parse(few_shot.STUDY, ["--protocol", "whole"])
    how = {"epochs": flags.study.epochs, "own": flags.own_identity, "pool": 14_000}
    assert len(planned(few_shot.STUDY, setting_of(few_shot.STUDY, WORDS, "cola", **how)).arms) == 90
