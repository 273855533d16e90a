"""Concat against NumPy and against one linear layer over all states end to end, and its counts."""

import numpy as np
import pytest
import torch

from adalayers.fusion.concat import ConcatConfig
from tests.helpers import formulas
from tests.helpers.mixing import LENGTHS, SHAPE, STATES, WIDTH, K, L, inputs
from tests.helpers.states import encoder, made_shape


def concat(width):
    torch.manual_seed(1)
    return ConcatConfig(k=width).build(SHAPE)


@pytest.mark.parametrize("width", [WIDTH, K], ids=["own width", "matched"])
def test_agrees_with_numpy(width):
    made, states = concat(width), inputs()
    matrices = [formulas.array(layer.weight) for layer in made.maps]
    expected = sum(formulas.array(states[state]) @ w.T for state, w in zip(STATES, matrices, strict=True))
    np.testing.assert_allclose(formulas.array(made(states, LENGTHS)), expected, atol=1e-5)
    joined = np.concatenate([formulas.array(states[state]) for state in STATES], axis=1)
    np.testing.assert_allclose(joined @ np.concatenate(matrices, axis=1).T, expected, atol=1e-12)


def test_it_starts_as_one_linear_layer_over_all_states():
    """Uniform within 1/sqrt(l K), PyTorch's start of a layer of that many inputs."""
    maps = ConcatConfig(k=64).build(made_shape(layers=L, width=100)).maps
    starts = torch.cat([layer.weight.detach().flatten() for layer in maps])
    bound = (L * 100) ** -0.5
    assert starts.abs().max() <= bound
    assert float(starts.std()) == pytest.approx(bound / 3**0.5, rel=0.01)


def test_states_taken_away_leave_their_term_out():
    made, states = concat(K), inputs()
    whole = made(states, LENGTHS)
    gone = sum(made.maps[place](states[STATES[place]]) for place in (1, 2))
    rest = {state: states[state] for state in STATES if state not in encoder(2, 3)}
    for renormalise in (True, False):
        with made.without(encoder(2, 3), renormalise=renormalise):
            assert made.live() == list(rest)
            torch.testing.assert_close(made(rest, LENGTHS), whole - gone, atol=1e-5, rtol=1e-5)
