"""The study of methods: how each is trained and tuned, on shapes without a backbone."""

import pytest

from adalayers.errors import BadInput
from studies.methods import STUDY
from tests.helpers import planning
from tests.helpers.planning import setting_of
from tests.helpers.states import made_shape


def planned(head="sequence", layers=6, **own):
    setting = setting_of(STUDY, made_shape(head, 9, layers, 384), epochs=5, own=own)
    return planning.planned(STUDY, setting)


def configs(head="sequence"):
    return {arm.name: arm.config for arm in planned(head).arms}


def test_all_methods_have_one_optimiser_and_schedule_but_those_as_published():
    for name, config in configs().items():
        how = (config.optimiser, config.schedule, config.warmup)
        if not name.endswith(" as published"):
            assert how == ("adamw", "linear", 0.1), name
    published = {
        name: (c.optimiser, c.schedule, c.warmup) for name, c in configs().items() if "published" in name
    }
    assert published["DWAtt as published"] == ("adamw", "linear", 0.0)
    assert published["adapters as published"] == ("adam", "linear", 0.1)
    assert published["layer mix as published"][:2] == ("adam", "plateau")


@pytest.mark.parametrize(("head", "read_out"), [("sequence", "mean"), ("token", "linear")])
def test_a_linear_read_out_is_of_the_mean_of_a_text(head, read_out):
    linear = [c for name, c in configs(head).items() if name.startswith(("concat as", "scalar mix at"))]
    assert {config.read_out for config in linear} == {read_out}


def test_houlsbys_adapters_are_two_a_layer_with_their_norms_and_one_classifier():
    houlsby = configs()["adapters as published"]
    assert (houlsby.adapter_sharing, houlsby.adapter_norms, houlsby.classifier_layers) == ("none", True, 1)
    assert configs()["adapters, two classifiers"].classifier_layers == 2
    assert "adapters, two classifiers" not in configs("token")


def test_ranges_hold_what_methods_need():
    domains = {search.name: search.space.domains for search in planned().searches}
    for name in ("last layer as published", "concat as published", "scalar mix at own width"):
        assert domains[name]["lr"].upper == 0.3, name
    for name, search in domains.items():
        if name.startswith(("adapters", "fine-tuning")):
            assert (search["lr"].lower, search["lr"].upper) == (1e-4, 1e-1), name
            assert search["base_lr"].upper == (3e-3 if name.startswith("adapters") else 1e-3), name


def test_the_search_for_a_single_layer_tries_every_layer():
    (search,) = (search for search in planned(layers=12).searches if search.name == "single layer matched")
    assert search.min_trials == 12
    assert {point["layer"] for point in search.first} == set(range(1, 13))
    assert {other.min_trials for other in planned().searches if other.name != search.name} == {0}


def test_methods_are_chosen_by_name_or_by_how_a_name_begins():
    made = planned(methods="layer-graph tokens-first-gate-at-own-width layer")
    named = [arm.name for arm in made.arms]
    assert [search.name for search in made.searches] == named
    assert named == [
        *("layer mix", "layer mix as published", "layer attention matched", "layer attention at own width"),
        *("layer set at own width", "layer graph, full at own width", "layer graph, Cayley at own width"),
        "tokens first, gate at own width",
    ]
    alone = [arm.name for arm in planned(methods="concat-as-published").arms]
    assert alone == ["layer mix", "concat as published"]
    with pytest.raises(BadInput, match=r"unknown method 'concat-matchd'; .*'concat-matched'"):
        planned(methods="concat-matchd")


def test_methods_for_texts_only_are_left_out_of_words():
    names, left_out = configs("token"), dict(planned("token").dropped)
    graphs = ("layer graph, full", "layer graph, Cayley")
    for name in ("layer set", *graphs, "tokens first, gate", "tokens first, attention"):
        assert f"{name} at own width" not in names
        assert "no answer per word" in left_out[f"{name} at own width"]
    assert {"layer attention matched", "late fusion at own width"} <= names.keys()
