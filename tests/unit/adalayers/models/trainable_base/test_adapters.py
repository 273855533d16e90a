"""Adapters: their arithmetic, their start, their places, and the counts of table 1 of Houlsby et al. 2019."""

import functools

import pytest
import torch
from torch import nn
from torch.nn.functional import gelu

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.families import FAMILIES, Family, LayerParts, layer_parts
from adalayers.config import AdapterConfig, trial_config
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.fusion.variability import VariabilityConfig
from adalayers.models.trainable_base.adapters import START, Adapter, Adapters
from adalayers.models.trainable_base.model import TrainableBaseModel
from adalayers.states import Stream
from tests.helpers.made_tokens import shape_of
from tests.helpers.refusing import refused
from tests.helpers.states import made_shape


def test_an_adapter_is_a_bottleneck_with_a_skip_connection_near_the_identity_at_the_start():
    torch.manual_seed(0)
    adapter, x = Adapter(256, 64), torch.randn(10, 256)
    for linear in (adapter.down, adapter.up):
        assert not linear.bias.any()
        assert linear.weight.abs().max() <= 2 * START
        assert float(linear.weight.detach().std()) == pytest.approx(0.88 * START, rel=0.02)  # cut off at two
    with torch.no_grad():
        torch.testing.assert_close(adapter(x), x, atol=5e-4, rtol=0)
        for parameter in adapter.parameters():
            parameter.normal_(std=0.1)
        inner = gelu(x @ adapter.down.weight.T + adapter.down.bias)
        expected = x + inner @ adapter.up.weight.T + adapter.up.bias
        torch.testing.assert_close(adapter(x), expected, atol=1e-4, rtol=1e-4)


def layer():
    """A layer whose two places give what they are given."""
    return nn.ModuleDict({"one": nn.Identity(), "two": nn.Identity()})


PLACES = LayerParts("one", "two")


THREES = {2: "01-03", 3: "01-03", 4: "04-06", 5: "04-06", 6: "04-06", 7: "07-09"}


@pytest.mark.parametrize(("sharing", "adapters"), [("none", 12), ("layer", 6), ("three", 3)])
def test_places_share_adapters(sharing, adapters):
    layers = {number: layer() for number in range(2, 8)}
    config = AdapterConfig(adapter_width=2, adapter_sharing=sharing)
    made, x = Adapters(config, inner=4, seed=0), torch.randn(3, 4)
    made.put_into(layers, PLACES)
    assert made.layers == tuple(range(2, 8))
    assert len(made.by_place) == adapters
    assert made.acting == 12 * (2 * 4 * 2 + 4 + 2)
    for number, own in layers.items():
        for place, module in (("attention", own["one"]), ("feedforward", own["two"])):
            names = {"none": f"{number:02d}_{place}", "layer": f"{number:02d}", "three": THREES[number]}
            assert torch.equal(module(x), made.by_place[names[sharing]](x))
    # A start depends on the place and the seed alone.
    one, other = (Adapters(config, inner=4, seed=seed) for seed in (0, 1))
    for each in (one, other):
        each.put_into({7: layer()}, PLACES)
    starts = [[*each.by_place.values()][-1].down.weight for each in (made, one, other)]
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])
    assert adapters == len({tuple(each.down.weight.flatten().tolist()) for each in made.by_place.values()})


@functools.cache
def bert_base():
    """Return BERT-base's shape with no weights."""
    from transformers import AutoConfig, AutoModel

    with torch.device("meta"):
        model = AutoModel.from_config(AutoConfig.for_model("bert"))
    return Backbone(model, streams=[Stream("encoder", 12)], width=768, family=Family("encoder"))


LAST_CLASSIFIER = 768 * 2 + 2


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"adapter_sharing": "layer"}, 1_189_632),
        ({"adapter_sharing": "three"}, 396_544),
        ({"adapter_sharing": "three", "adapter_norms": True}, 433_408),
        ({"adapter_sharing": "none"}, 2_379_264),
        ({"adapter_sharing": "none", "adapter_norms": True, "classifier_layers": 2}, 3_006_720),
    ],
    ids=str,
)
def test_counts_of_bert_base(changes, count):
    """Seed 002, table 1, the last classifier left out: shared in a layer, by three layers, and not shared."""
    backbone = bert_base()
    config = VariabilityConfig(own_width=True, base_model="adapters", read_out="first-token", **changes)
    model = TrainableBaseModel(config, shape_of(backbone, "bert"), backbone)
    model.prepare_training()
    assert model.n_parameters() == count + LAST_CLASSIFIER
    grouped = [p for group in model.parameter_groups() for p in group.parameters]
    assert sum(p.numel() for p in grouped) == count + LAST_CLASSIFIER


@pytest.mark.parametrize("family", [name for name in FAMILIES if getattr(FAMILIES[name], "parts", None)])
def test_every_family_has_its_parts(family):
    from transformers import AutoConfig, AutoModel

    with torch.device("meta"):
        model = AutoModel.from_config(AutoConfig.for_model(family, num_hidden_layers=2, vocab_size=99))
    model = model.get_encoder() if model.config.is_encoder_decoder or family in ("mt5", "umt5") else model
    layer = next(m for m in model.modules() if isinstance(m, nn.ModuleList))[0]
    parts = layer_parts(family)
    width = model.config.hidden_size
    for name in (parts.attention, parts.feedforward):
        assert layer.get_submodule(name).out_features == width
    norms = [module for module in layer.modules() if "norm" in type(module).__name__.lower()]
    assert [tuple(norm.weight.shape) for norm in norms] == [(width,)] * 2


def test_other_families_are_refused_with_those_known_before_anything_runs():
    shape = made_shape(family="funnel")
    said = r"adapters in the layers of a 'funnel' model.*bart, bert, camembert"
    refused(said, LayerMixConfig(base_model="adapters").check, shape)
    refused("adapters in the layers", trial_config(fusion="late-fusion", base_model="adapters").check, shape)
    tuned = LayerMixConfig(base_model="fine-tuned")
    tuned.check(shape)
    refused(
        "wanted base_model to be frozen where all layers are one", tuned.check, made_shape(family="albert")
    )
