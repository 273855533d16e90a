"""Extra layers against NumPy and PyTorch's own, their number and heads, and padding."""

import math

import numpy as np
import pytest
import torch

from adalayers.fusion.extra_layers import ExtraLayersConfig, own_heads
from adalayers.tensors.dropout import draw_from
from tests.helpers import formulas
from tests.helpers.formulas import array
from tests.helpers.mixing import read_at
from tests.helpers.states import encoder, made_shape

WIDTH, K, HEADS = 12, 8, 2
(LAST,) = encoder(4)
LENGTHS = torch.tensor([3, 5, 2, 40])


HIDDEN = {LAST: torch.randn(int(LENGTHS.sum()), WIDTH, generator=torch.Generator().manual_seed(0))}


def extra(k=None, dropout=0.0):
    """Two layers whose biases are not 0."""
    torch.manual_seed(1)
    config = ExtraLayersConfig(**read_at(k), added_layers=2, heads=HEADS, dropout=dropout)
    made = config.build(made_shape(width=WIDTH))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return made


def numpy_layer(layer, x):
    """A post-norm encoder layer over one sequence [time, width], in float64."""
    width = x.shape[1]
    joint = x @ array(layer.attention.in_proj_weight).T + array(layer.attention.in_proj_bias)
    heads = []
    for own in np.split(np.arange(width), layer.attention.num_heads):
        q, k, v = (joint[:, place * width + own] for place in range(3))
        heads.append(formulas.softmax(q @ k.T / math.sqrt(len(own))) @ v)
    out = layer.attention.out_proj
    x = formulas.normalised(x + np.concatenate(heads, 1) @ array(out.weight).T + array(out.bias), layer.norm1)
    inner = formulas.gelu(x @ array(layer.widen.weight).T + array(layer.widen.bias))
    return formulas.normalised(
        x + inner @ array(layer.narrow.weight).T + array(layer.narrow.bias), layer.norm2
    )


@pytest.mark.parametrize("k", [None, K], ids=["own width", "matched"])
def test_agrees_with_numpy_sequence_by_sequence(k):
    """Lengths from 2 to 40 in one batch: padding changes nothing, nor do the other sequences."""
    made = extra(k)
    (read,) = formulas.read(made.projected, [*HIDDEN.values()])
    expected = []
    for sequence in np.split(read, np.cumsum(LENGTHS.numpy())[:-1]):
        for layer in made.layers:
            sequence = numpy_layer(layer, sequence)
        expected.append(sequence)
    given = made(HIDDEN, LENGTHS)
    assert given.shape[1] == made.width == (k or WIDTH)
    np.testing.assert_allclose(array(given), np.concatenate(expected), atol=1e-5)


def test_dropout_is_drawn_from_the_stream_it_is_given():
    made = extra(dropout=0.3)

    def drawn(seed):
        draw_from(made, torch.Generator().manual_seed(seed))
        return made(HIDDEN, LENGTHS)

    once = drawn(5)
    torch.rand(10)
    assert torch.equal(drawn(5), once)
    assert not torch.equal(drawn(6), once)
    assert not torch.equal(made.eval()(HIDDEN, LENGTHS), once)


def test_own_heads_are_64_wide_or_the_next_wider_that_divides():
    wanted = {1024: 16, 384: 6, 200: 2, 100: 1, 64: 1, 12: 1}
    assert {width: own_heads(width) for width in wanted} == wanted


def test_as_many_layers_as_published_unless_told_on_the_last_of_the_chosen_hidden_states():
    base, large = made_shape(layers=12), made_shape(layers=24)
    config, one = ExtraLayersConfig(k=8, heads=2), ExtraLayersConfig(k=8, heads=2, added_layers=1)
    assert [len(config.build(shape).layers) for shape in (base, large)] == [1, 2]
    assert config.resolved(large)["added_layers"] == 2
    assert config.identity(base) == one.identity(base)
    assert config.identity(large) != one.identity(large)
    assert config.build(base).live() == encoder(12)
    assert ExtraLayersConfig(k=8, hidden_states="layers:1,3").build(base).live() == encoder(3)


def test_projected_the_layers_have_the_heads_of_the_configuration_whatever_reads_them_out():
    shape = made_shape()
    linear = ExtraLayersConfig(k=8, heads=2, read_out="linear")
    assert linear.used(shape)["heads"] == 2
    assert linear.build(shape).layers[0].attention.num_heads == 2
    own = ExtraLayersConfig(own_width=True, heads=7, read_out="linear")
    own.check(shape)
    assert "heads" not in own.used(shape)
