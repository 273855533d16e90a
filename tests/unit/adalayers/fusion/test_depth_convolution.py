"""Convolution along depth against NumPy, how its depth grows, and its counts."""

import numpy as np
import pytest
import torch

from adalayers.fusion.depth_convolution import DepthConvolutionConfig, depths
from tests.helpers import formulas
from tests.helpers.formulas import array
from tests.helpers.mixing import LENGTHS, SHAPE, WIDTH, K, inputs, read_at
from tests.helpers.states import encoder, made_shape


def numpy_convolutions(made, read):
    """F of the formula, place by place, in float64."""
    along = read
    for convolution in made.convolutions:
        weight, bias = array(convolution.weight), array(convolution.bias)
        along = [
            np.maximum(
                bias
                + sum(
                    along[3 * j + d] @ weight[:, :, d + 2].T
                    for d in range(-2, 3)
                    if 0 <= 3 * j + d < len(along)
                ),
                0,
            )
            for j in range(-(-len(along) // 3))
        ]
    return np.stack(along, axis=-1).reshape(len(read[0]), -1)[:, : made.width]


@pytest.mark.parametrize("k", [None, K], ids=["own width", "matched"])
@pytest.mark.parametrize("layers", [2, 5, 9])
def test_agrees_with_numpy_with_all_states_and_without_some(k, layers):
    """Of 2, 5 and 9 layers 1, 2 and 1 places are left, so that width 12 and k 8 are whole."""
    torch.manual_seed(1)
    made = DepthConvolutionConfig(**read_at(k)).build(made_shape(layers=layers, width=WIDTH))
    generator = torch.Generator().manual_seed(0)
    states = {state: torch.randn(7, WIDTH, generator=generator) for state in made.states}
    read = formulas.read(made.projected, list(states.values()))
    np.testing.assert_allclose(array(made(states, LENGTHS)), numpy_convolutions(made, read), atol=1e-5)
    with made.without(encoder(2)):
        rest = {state: states[state] for state in made.live()}
        read[1] = np.zeros_like(read[1])
        np.testing.assert_allclose(array(made(rest, LENGTHS)), numpy_convolutions(made, read), atol=1e-5)


def test_a_width_that_the_places_do_not_divide_is_kept():
    made = DepthConvolutionConfig(k=7).build(SHAPE)
    assert made.convolutions[-1].out_channels == 4  # of 2 places, 8 numbers, of which 7 are given
    assert made(inputs(), LENGTHS).shape == (7, 7)


def test_depth_grows_with_the_logarithm_of_the_layers():
    wanted = {1: [1], 2: [1], 3: [1], 6: [2], 9: [3, 1], 12: [4, 2], 24: [8, 3], 27: [9, 3, 1]}
    assert {layers: depths(layers) for layers in wanted} == wanted
