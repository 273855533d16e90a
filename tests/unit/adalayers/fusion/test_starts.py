"""How methods start, which of their parameters are trained in their own way, and what identifies no trial."""

import numpy as np
import pytest
import torch

from adalayers.fusion.depth_convolution import depths
from adalayers.fusion.dwatt import NEGLIGIBLE
from adalayers.fusion.extra_layers import own_heads
from adalayers.fusion.layer_graph import cayley_graph
from adalayers.models.model import FusionModel
from adalayers.tensors.dropout import draw_from
from tests.helpers.mixing import LENGTHS, SHAPE, STATES, WIDTH, K, L, inputs, of
from tests.helpers.states import encoder, made_shape


def built(config):
    torch.manual_seed(3)
    return config.build(SHAPE)


@pytest.mark.parametrize(
    ("config", "other"),
    [
        (of("scalar-mix", k=K), of("layer-mix", k=K)),
        *((of("layer-attention", k=K, keys=keys), of("layer-mix", k=K)) for keys in ("tokens", "static")),
        (of("tokens-first", aggregate="gate"), of("tokens-first", aggregate="mean")),
    ],
)
def test_methods_of_one_seed_start_as_one_another(config, other):
    """Same seed, same projections: what differs is how weights are learned."""
    mine, theirs = (built(each)(inputs(), LENGTHS) for each in (config, other))
    torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-5)


def test_concat_starts_as_one_linear_layer_over_all_states():
    """Uniform within 1/sqrt(l K), PyTorch's start of a layer of that many inputs."""
    maps = of("concat", k=64).build(made_shape(layers=L, width=100)).maps
    starts = torch.cat([layer.weight.detach().flatten() for layer in maps])
    bound = (L * 100) ** -0.5
    assert starts.abs().max() <= bound
    assert float(starts.std()) == pytest.approx(bound / 3**0.5, rel=0.01)


def test_average_and_base_have_no_parameters_of_their_own():
    """Seed 003's baselines: the mean of the hidden states, and the last, as they are."""
    states = inputs()
    average, base = (built(of("scalar-mix", own_width=True, mix=mix)) for mix in ("uniform", "last"))
    assert [*average.parameters(), *base.parameters()] == []
    torch.testing.assert_close(average(states, LENGTHS), torch.stack(list(states.values())).mean(dim=0))
    assert base.live() == [STATES[-1]]
    assert torch.equal(base({STATES[-1]: states[STATES[-1]]}, LENGTHS), states[STATES[-1]])


@pytest.mark.parametrize(
    ("config", "names", "lr"),
    [
        (of("scalar-mix", heads=2), ["w", "gamma"], None),
        (of("layer-attention", heads=2, mix_lr=0.5), ["w"], 0.5),
        (of("late-fusion"), ["biases", "w"], None),
    ],
)
def test_what_has_its_own_rate_and_no_weight_decay(config, names, lr):
    model = FusionModel(config, made_shape())
    (free,) = [group for group in model.parameter_groups() if group.weight_decay == 0.0]
    assert [id(p) for p in free.parameters] == [id(getattr(model.fusion, name)) for name in names]
    assert free.lr == lr


def test_weights_are_noted_by_state():
    static = built(of("layer-attention", k=K, keys="static"))
    assert static.diagnostics().pop("layer_attention/norm") == 0
    made = {"scalar_mix": of("scalar-mix", k=K), "late_fusion": of("late-fusion")}
    for name, fusion in {"layer_attention": static, **{name: built(made[name]) for name in made}}.items():
        weights = [fusion.diagnostics()[f"{name}/weight_{number:02d}"] for number in range(1, L + 1)]
        assert weights == pytest.approx([1 / L] * L)
        with fusion.without(encoder(2)):
            assert name not in made or fusion.diagnostics()[f"{name}/weight_02"] == 0


def test_shares_that_float32_cannot_tell_from_none_are_none():
    """Next to the rest: the token's shares differ by less than rounding, and no product of theirs is denormal."""
    made = built(of("dwatt", own_width=True))
    query = 40 * torch.rand(200, WIDTH, generator=torch.Generator().manual_seed(2))
    exact = torch.softmax((query @ made.keys(made.embeddings).T).double(), -1)
    shares = made.attention(query)
    assert 0 < exact.min() < 1e-30
    assert shares[shares > 0].min() > 0.1 * np.exp(-NEGLIGIBLE)
    torch.testing.assert_close(shares.double(), exact, atol=1e-12, rtol=1e-3)


def test_depth_grows_with_the_logarithm_of_the_layers():
    wanted = {1: [1], 2: [1], 3: [1], 6: [2], 9: [3, 1], 12: [4, 2], 24: [8, 3], 27: [9, 3, 1]}
    assert {layers: depths(layers) for layers in wanted} == wanted


@pytest.mark.parametrize(("n", "places", "degree"), [(2, 6, 2), (3, 24, 4), (4, 48, 4)])
def test_a_cayley_graph_is_regular_connected_and_has_the_groups_order(n, places, degree):
    """|SL(2, Z_n)| is the number of 2 x 2 matrices modulo n of determinant 1."""
    graph = cayley_graph(n)
    assert graph.shape == (places, places)
    assert (graph == graph.T).all()
    assert (graph.sum(1) == degree).all()
    assert (np.linalg.matrix_power(graph + np.eye(places), places) > 0).all()


def test_a_graph_has_a_place_for_every_layer():
    wanted = {6: 6, 7: 24, 24: 24, 25: 48}
    shapes = {layers: made_shape(layers=layers) for layers in wanted}
    assert {layers: len(of("layer-graph").build(shape).graph) for layers, shape in shapes.items()} == wanted
    assert len(of("layer-graph", graph="full").build(shapes[7]).graph) == 7


@pytest.mark.parametrize(
    ("one", "same", "another"),
    [
        (of("scalar-mix", own_width=True), of("scalar-mix", own_width=True, k=8), of("scalar-mix")),
        (of("tokens-first", k=64), of("tokens-first", k=6), of("tokens-first", aggregate="attention")),
        (of("layer-set", k=8), of("layer-set", k=8, read_out="first-token", heads=4), of("layer-set", k=16)),
    ],
)
def test_what_changes_nothing_does_not_identify_a_trial(one, same, another):
    shape = made_shape()
    assert one.identity(shape) == same.identity(shape) != another.identity(shape)


def test_dropout_of_extra_layers_is_drawn_from_the_stream_it_is_given():
    made = of("extra-layers", k=8, heads=2, dropout=0.3).build(SHAPE)
    hidden = {STATES[-1]: inputs()[STATES[-1]]}

    def drawn(seed):
        draw_from(made, torch.Generator().manual_seed(seed))
        return made(hidden, LENGTHS)

    once = drawn(5)
    torch.rand(10)
    assert torch.equal(drawn(5), once)
    assert not torch.equal(drawn(6), once)
    assert not torch.equal(made.eval()(hidden, LENGTHS), once)


def test_as_many_extra_layers_as_published_unless_told_on_the_last_of_the_chosen_hidden_states():
    base, large = made_shape(layers=12), made_shape(layers=24)
    config, one = of("extra-layers", k=8, heads=2), of("extra-layers", k=8, heads=2, added_layers=1)
    assert [len(config.build(shape).layers) for shape in (base, large)] == [1, 2]
    assert config.resolved(large)["added_layers"] == 2
    assert config.identity(base) == one.identity(base)
    assert config.identity(large) != one.identity(large)
    assert config.build(base).live() == encoder(12)
    assert of("extra-layers", k=8, hidden_states="layers:1,3").build(base).live() == encoder(3)


def test_projected_extra_layers_have_the_heads_of_the_configuration_whatever_reads_them_out():
    linear = of("extra-layers", k=8, heads=2, read_out="linear")
    assert linear.used(SHAPE)["heads"] == 2
    assert linear.build(SHAPE).layers[0].attention.num_heads == 2
    own = of("extra-layers", own_width=True, heads=7, read_out="linear")
    own.check(SHAPE)
    assert "heads" not in own.used(SHAPE)
    assert own.build(made_shape(width=200)).layers[0].attention.num_heads == own_heads(200) == 2


def test_a_wide_layer_reads_a_chosen_layer_or_the_last_one_as_often_as_there_are_layers():
    assert of("wide-layer", layer=2).build(SHAPE).live() == encoder(2)
    resolved = of("wide-layer").resolved(SHAPE)
    assert (resolved["layer"], resolved["projections"]) == (STATES[-1].number, L)
