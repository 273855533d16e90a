"""Attention over layers against NumPy, how it starts, and its counts."""

import numpy as np
import pytest
import torch

from adalayers.fusion.layer_attention import LayerAttentionConfig
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from tests.helpers import formulas
from tests.helpers.formulas import array
from tests.helpers.mixing import SHAPE, STATES, TOKENS, WIDTH, K, L, assert_agrees, inputs, read_at
from tests.helpers.states import made_shape

KEYS = pytest.mark.parametrize("keys", ["tokens", "texts", "static"])
LENGTHS = torch.tensor([4, TOKENS - 4])


def attention(k=None, **options):
    torch.manual_seed(1)
    made = LayerAttentionConfig(**read_at(k), **options).build(SHAPE)
    torch.nn.init.normal_(made.w)
    return made


def numpy_mix(made, read, places):
    """F of the formula, in float64, over `places`."""
    keys = np.stack([read[place] for place in places])
    if made.keys == "static":
        keys = np.repeat(array(made.static)[places][:, None], TOKENS, axis=1)
    elif made.keys == "texts":
        means = [keys[:, :4].mean(1, keepdims=True), keys[:, 4:].mean(1, keepdims=True)]
        keys = np.concatenate([means[0].repeat(4, 1), means[1].repeat(TOKENS - 4, 1)], axis=1)
    normal = keys / np.sqrt((keys**2).mean(-1, keepdims=True))
    weights = formulas.softmax((normal @ array(made.w)).T).T
    return (weights[..., None] * np.stack([read[place] for place in places])).sum(0), weights


@KEYS
@pytest.mark.parametrize("k", [None, K], ids=["own width", "matched"])
def test_agrees_with_numpy_with_all_states_and_without_some(k, keys):
    made, states = attention(k, keys=keys), inputs()
    read = formulas.read(made.projected, [states[state] for state in STATES])
    _, weights = numpy_mix(made, read, list(range(L)))
    alike_in = {"tokens": 1, "texts": 4, "static": TOKENS}[keys]
    apart = [len(np.unique(weights[0, :n].round(12))) for n in (alike_in, TOKENS)]
    assert apart == [1, {"tokens": TOKENS, "texts": 2, "static": 1}[keys]]
    for gone in ((), (1, 2)):
        assert_agrees(made, lambda places: numpy_mix(made, read, places)[0], *gone, lengths=LENGTHS)


@KEYS
def test_it_starts_as_the_uniform_mix_does_and_has_the_width_more(keys):
    """Same seed, same projections: what differs is w alone, k numbers, whatever the weights depend on."""
    torch.manual_seed(3)
    uniform = LayerMixConfig(k=K, mix="uniform").build(SHAPE)
    torch.manual_seed(3)
    made = LayerAttentionConfig(k=K, keys=keys).build(SHAPE)
    torch.testing.assert_close(made(inputs(), LENGTHS), uniform(inputs(), LENGTHS), atol=1e-6, rtol=1e-5)
    of_both = [sum(p.numel() for p in fusion.parameters()) for fusion in (made, uniform)]
    assert of_both == [L * K * WIDTH + K, L * K * WIDTH]


def test_w_has_its_own_rate_and_no_weight_decay_and_static_keys_are_kept(tmp_path):
    model = FusionModel(LayerAttentionConfig(heads=2, mix_lr=0.5, keys="static"), made_shape())
    (free,) = [group for group in model.parameter_groups() if group.weight_decay == 0.0]
    assert ([id(p) for p in free.parameters], free.lr) == ([id(model.fusion.w)], 0.5)
    assert "static" in model.fusion.state_dict()
    noted = model.fusion.diagnostics()
    assert noted.pop("layer_attention/norm") == 0
    assert list(noted.values()) == pytest.approx([1 / 4] * 4)
