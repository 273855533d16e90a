"""Adapters: their arithmetic, their start, their places, and the counts of table 1 of Houlsby et al. 2019."""

import functools

import pytest
import torch
from torch import nn
from torch.nn.functional import gelu

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.families import FAMILIES, Family, LayerParts, layer_parts
from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.trainable_base.adapters import START, Adapter, Adapters
from adalayers.models.trainable_base.model import TrainableBaseModel
from adalayers.states import Stream
from tests.helpers.made_tokens import TopConfig, shape_of
from tests.helpers.states import made_shape


def test_an_adapter_is_a_bottleneck_with_a_skip_connection():
    adapter = Adapter(5, 3)
    with torch.no_grad():
        for parameter in adapter.parameters():
            parameter.copy_(torch.randn_like(parameter))
        x = torch.randn(4, 2, 5)
        inner = gelu(x @ adapter.down.weight.T + adapter.down.bias)
        expected = x + inner @ adapter.up.weight.T + adapter.up.bias
        torch.testing.assert_close(adapter(x), expected)


def test_an_adapter_starts_near_the_identity():
    torch.manual_seed(0)
    adapter = Adapter(256, 64)
    for linear in (adapter.down, adapter.up):
        assert not linear.bias.any()
        assert linear.weight.abs().max() <= 2 * START
        assert float(linear.weight.detach().std()) == pytest.approx(0.88 * START, rel=0.02)  # cut off at two
    x = torch.randn(10, 256)
    torch.testing.assert_close(adapter(x), x, atol=5e-4, rtol=0)


class Layer(nn.Module):
    """A layer whose two places give what they are given, doubled."""

    def __init__(self):
        super().__init__()
        self.one, self.two = (nn.Linear(4, 4, bias=False) for _ in range(2))
        for linear in (self.one, self.two):
            nn.init.eye_(linear.weight)


PLACES = LayerParts("one", "two", ())


@pytest.mark.parametrize(
    ("sharing", "names"),
    [
        ("none", [f"{n:02d}_{place}" for n in range(2, 8) for place in ("attention", "feedforward")]),
        ("layer", ["02", "03", "04", "05", "06", "07"]),
        ("three", ["01-03", "04-06", "07-09"]),
    ],
)
def test_places_share_adapters(sharing, names):
    layers = {number: Layer() for number in range(2, 8)}
    adapters = Adapters(layers, PLACES, inner=4, width=2, sharing=sharing, seed=0)
    assert list(adapters.by_place) == names
    assert adapters.layers == tuple(range(2, 8))
    x, used = torch.randn(3, 4), {}
    for name, adapter in adapters.by_place.items():
        adapter.register_forward_hook(lambda *_, name=name: used.setdefault(name, []).append(at))
    for number, layer in layers.items():
        for at in ((number, "attention"), (number, "feedforward")):
            (layer.one if at[1] == "attention" else layer.two)(x)
    every = [(number, place) for number in layers for place in ("attention", "feedforward")]
    assert [place for places in used.values() for place in places] == every
    assert {name: len(places) for name, places in used.items()} == {
        "none": dict.fromkeys(names, 1),
        "layer": dict.fromkeys(names, 2),
        "three": {"01-03": 4, "04-06": 6, "07-09": 2},
    }[sharing]


def test_a_start_depends_on_the_place_alone():
    def start(*numbers, seed=0):
        layers = {n: Layer() for n in numbers}
        made = Adapters(layers, PLACES, inner=4, width=2, sharing="layer", seed=seed)
        return {name: adapter.down.weight for name, adapter in made.by_place.items()}

    torch.manual_seed(1)
    all_layers, some = start(1, 2, 3), start(3)
    assert torch.equal(all_layers["03"], some["03"])
    assert not torch.equal(all_layers["02"], all_layers["03"])
    assert not torch.equal(some["03"], start(3, seed=1)["03"])


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
        ({"adapter_sharing": "layer", "adapter_norms": True}, 1_226_496),
        ({"adapter_sharing": "three", "adapter_norms": True}, 433_408),
        ({"adapter_sharing": "none"}, 2_379_264),
        ({"adapter_sharing": "none", "adapter_norms": True}, 2_379_264 + 36_864),
        ({"adapter_sharing": "none", "classifier_layers": 2}, 2_379_264 + 590_592),
        ({"adapter_sharing": "none", "adapter_norms": True, "classifier_layers": 2}, 3_006_720),
    ],
    ids=str,
)
def test_counts_of_bert_base(changes, count):
    """Seed 002, table 1, the last classifier left out: shared in a layer, by three layers, and not shared."""
    backbone = bert_base()
    config = TopConfig(base_model="adapters", read_out="first-token", **changes)
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
    for name in parts.norms:
        assert layer.get_submodule(name).weight.shape == (width,)
    norms = [name for name, module in layer.named_modules() if "norm" in type(module).__name__.lower()]
    assert sorted(norms) == sorted(parts.norms)


def test_other_families_are_refused_with_those_known_before_anything_runs():
    shape = made_shape(family="funnel")
    with pytest.raises(BadInput, match=r"adapters in the layers of a 'funnel' model.*bart, bert, camembert"):
        LayerMixConfig(base_model="adapters").check(shape)
    LayerMixConfig(base_model="fine-tuned").check(shape)
