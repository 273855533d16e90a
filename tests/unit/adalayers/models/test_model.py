"""Heads and the whole trained part: parameter counts, padding, gradients, starts."""

import math

import numpy as np
import pytest
import torch

from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.heads import sinusoidal_positions
from adalayers.models.model import FusionModel
from tests.helpers.states import encoder, made_shape, made_states

SMALL = {"k": 8, "heads": 2, "feedforward": 16}


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_a_linear_read_out_is_a_linear_layer(kind):
    """A sequence: gelu, mean over its tokens, linear; a token: linear."""
    model = FusionModel(LayerMixConfig(read_out="linear", k=8, heads=3), made_shape(kind)).eval()
    lengths = [3, 7, 5]
    given = made_states(model.fusion.states, sum(lengths), model.shape.width)
    with torch.no_grad():
        fused = model.fusion(given, torch.tensor(lengths))
        read = fused
        if kind == "sequence":
            parts = torch.nn.functional.gelu(fused).split(lengths)
            read = torch.stack([part.mean(dim=0) for part in parts])
        expected = read @ model.head.classify.weight.T + model.head.classify.bias
        torch.testing.assert_close(model(given, torch.tensor(lengths)), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"entropy_weight": 0.5}, 0.5 * math.log(4)),
        ({"entropy_weight": 0.5, "entropy_scale": "as-released"}, 0.5 * math.log(4) / 4),
        ({}, None),
        ({"entropy_weight": 0.5, "mix": "uniform"}, None),
    ],
    ids=str,
)
def test_the_penalty_is_lambda_times_the_entropy_in_nats(changes, expected):
    penalty = FusionModel(LayerMixConfig(**changes, **SMALL), made_shape()).fusion.penalty()
    assert penalty is None if expected is None else float(penalty.detach()) == pytest.approx(expected)


def test_positions_are_sines_and_cosines():
    angles = np.arange(6)[:, None] / 10000 ** (np.arange(4) / 4)
    expected = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(6, 8)
    np.testing.assert_allclose(sinusoidal_positions(6, 8).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_groups_of_like_lengths_change_nothing_but_the_padding(kind, monkeypatch):
    model = FusionModel(LayerMixConfig(positions=True, **SMALL), made_shape(kind)).eval()
    lengths = torch.tensor([2, 3, 9, 9, 30, 31])
    given = made_states(model.fusion.states, int(lengths.sum()), model.shape.width)
    passes = []
    model.head.register_forward_hook(lambda head, inputs, outputs: passes.append(tuple(inputs[0].shape[:2])))
    with torch.no_grad():
        monkeypatch.setattr(model.head, "pass_tokens", 10_000)
        together = model(given, lengths)
        monkeypatch.setattr(model.head, "pass_tokens", 4)
        grouped = model(given, lengths)
    assert passes == [(6, 31), (2, 3), (2, 9), (2, 31)]
    torch.testing.assert_close(grouped, together, atol=1e-5, rtol=1e-5)


OTHERS = [{"hidden_states": "with-embeddings"}, {"mix": "uniform"}, {"hidden_states": "layers:1,3"}]


@pytest.mark.parametrize("changes", OTHERS)
def test_arms_of_one_seed_start_alike_whatever_their_fusion_draws(changes):
    state = torch.random.get_rng_state()
    one, other = (FusionModel(LayerMixConfig(**SMALL, **c), made_shape(), seed=5) for c in ({}, changes))
    assert torch.equal(torch.random.get_rng_state(), state), "a start moves no other stream"
    torch.testing.assert_close([*one.head.parameters()], [*other.head.parameters()], rtol=0, atol=0)
    shared = set(one.fusion.states) & set(other.fusion.states)
    for state in [*shared, encoder(1)[0]]:
        left, right = (m.fusion.projections[m.fusion.states.index(state)].weight for m in (one, other))
        assert torch.equal(left, right)
    again = FusionModel(LayerMixConfig(**SMALL), made_shape(), seed=6)
    assert not torch.equal(again.head.classify.weight, one.head.classify.weight)
