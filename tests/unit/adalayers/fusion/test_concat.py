"""Concat against NumPy and against one linear layer over all states end to end, and its counts."""

import numpy as np
import pytest
import torch

from adalayers.fusion.concat import ConcatConfig
from tests.helpers import formulas
from tests.helpers.mixing import SHAPE, STATES, WIDTH, K, L, assert_agrees, inputs
from tests.helpers.states import made_shape


def concat(width):
    torch.manual_seed(1)
    return ConcatConfig(k=width).build(SHAPE)


@pytest.mark.parametrize("width", [WIDTH, K], ids=["own width", "matched"])
def test_agrees_with_numpy_with_all_states_and_without_some(width):
    made, states = concat(width), inputs()
    matrices = [formulas.array(layer.weight) for layer in made.maps]
    read = [formulas.array(states[state]) for state in STATES]

    def formula(places):
        return sum(read[place] @ matrices[place].T for place in places)

    assert_agrees(made, formula)
    for renormalise in (True, False):
        assert_agrees(made, formula, 1, 2, renormalise=renormalise)
    joined = np.concatenate(read, axis=1)
    np.testing.assert_allclose(joined @ np.concatenate(matrices, axis=1).T, formula(range(L)), atol=1e-12)


def test_it_starts_as_one_linear_layer_over_all_states():
    """Uniform within 1/sqrt(l K), PyTorch's start of a layer of that many inputs."""
    maps = ConcatConfig(k=64).build(made_shape(layers=L, width=100)).maps
    starts = torch.cat([layer.weight.detach().flatten() for layer in maps])
    bound = (L * 100) ** -0.5
    assert starts.abs().max() <= bound
    assert float(starts.std()) == pytest.approx(bound / 3**0.5, rel=0.01)
