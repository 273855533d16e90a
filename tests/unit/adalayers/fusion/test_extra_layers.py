"""Extra layers: their dropout, their number and their heads."""

import torch

from adalayers.fusion.extra_layers import ExtraLayersConfig, own_heads
from adalayers.fusion.wide_layer import WideLayerConfig
from adalayers.tensors.dropout import draw_from
from tests.helpers.mixing import LENGTHS, SHAPE, STATES, L, inputs
from tests.helpers.states import encoder, made_shape


def test_dropout_is_drawn_from_the_stream_it_is_given():
    made = ExtraLayersConfig(k=8, heads=2, dropout=0.3).build(SHAPE)
    hidden = {STATES[-1]: inputs()[STATES[-1]]}

    def drawn(seed):
        draw_from(made, torch.Generator().manual_seed(seed))
        return made(hidden, LENGTHS)

    once = drawn(5)
    torch.rand(10)
    assert torch.equal(drawn(5), once)
    assert not torch.equal(drawn(6), once)
    assert not torch.equal(made.eval()(hidden, LENGTHS), once)


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
    linear = ExtraLayersConfig(k=8, heads=2, read_out="linear")
    assert linear.used(SHAPE)["heads"] == 2
    assert linear.build(SHAPE).layers[0].attention.num_heads == 2
    own = ExtraLayersConfig(own_width=True, heads=7, read_out="linear")
    own.check(SHAPE)
    assert "heads" not in own.used(SHAPE)
    assert own.build(made_shape(width=200)).layers[0].attention.num_heads == own_heads(200) == 2


def test_a_wide_layer_reads_a_chosen_layer_or_the_last_one_as_often_as_there_are_layers():
    assert WideLayerConfig(layer=2).build(SHAPE).live() == encoder(2)
    resolved = WideLayerConfig().resolved(SHAPE)
    assert (resolved["layer"], resolved["projections"]) == (STATES[-1].number, L)
