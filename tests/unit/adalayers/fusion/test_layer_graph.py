"""Layers as a set and as a graph against NumPy, the Cayley graphs, and counts."""

import functools

import numpy as np
import pytest
import torch

from adalayers.fusion.layer_graph import LayerGraphConfig, cayley_graph
from adalayers.fusion.layer_set import LayerSetConfig
from adalayers.models.model import FusionModel
from tests.helpers import formulas
from tests.helpers.formulas import array
from tests.helpers.mixing import TOKENS, WIDTH, K, L, assert_agrees, inputs
from tests.helpers.states import encoder, made_shape

SHAPE = made_shape(layers=L, width=WIDTH)
LENGTHS = torch.tensor([4, TOKENS - 4])
POOLINGS = {
    "mean": lambda x: np.stack([x[:4].mean(0), x[4:].mean(0)]),
    "first-token": lambda x: x[[0, 4]],
    "last-token": lambda x: x[[3, TOKENS - 1]],
}
CHOICES = [
    {},
    {"token_pooling": "first-token", "layer_pooling": "sum"},
    {"token_pooling": "last-token", "activation": "none"},
]


def built(config):
    torch.manual_seed(1)
    made = config.build(SHAPE)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    return made


def linear(layer, x, config):
    given = x @ array(layer.weight).T + array(layer.bias)
    return np.maximum(given, 0) if config.activation == "relu" else given


def vectors(made, config, states, places):
    """h_i of `places` [batch, places, k]."""
    read = [POOLINGS[config.token_pooling](array(states[state])) for state in encoder(*range(1, L + 1))]
    return linear(made.layers.project, np.stack([read[place] for place in places], axis=1), config)


def numpy_set(made, config, states, places):
    h = vectors(made, config, states, places)
    return linear(made.after, h.sum(1) if config.layer_pooling == "sum" else h.mean(1), config)


def numpy_graph(made, config, states, places):
    """Nodes one by one, neighbours from their matrices."""
    h = linear(made.layers.project, np.zeros((2, len(made.graph), WIDTH)), config)
    h[:, places] = vectors(made, config, states, places)
    for eps, layer, norm in zip(made.eps.tolist(), made.rounds, made.norms, strict=True):
        gathered = (1 + eps) * h
        for i, j in np.argwhere(array(made.graph)):
            gathered[:, i] += h[:, j]
        h = formulas.normalised(linear(layer, gathered, config), norm)
    h = h[:, places]
    return h.sum(1) if config.layer_pooling == "sum" else h.mean(1)


@pytest.mark.parametrize("choices", CHOICES, ids=str)
@pytest.mark.parametrize("kind", ["set", "cayley", "full"])
def test_agrees_with_numpy_with_all_layers_and_without_some(kind, choices):
    config = LayerSetConfig(k=K, **choices) if kind == "set" else LayerGraphConfig(k=K, graph=kind, **choices)
    made, states = built(config), inputs()
    formula = functools.partial(numpy_set if kind == "set" else numpy_graph, made, config, states)
    for gone in ((), (1, 2)):
        assert_agrees(made, formula, *gone, lengths=LENGTHS, atol=1e-4)


@pytest.mark.parametrize(("n", "places", "degree"), [(2, 6, 2), (3, 24, 4), (4, 48, 4)])
def test_a_cayley_graph_is_regular_connected_and_has_the_groups_order(n, places, degree):
    """|SL(2, Z_n)| is the number of 2 x 2 matrices modulo n of determinant 1."""
    entries = np.stack(np.meshgrid(*[np.arange(n)] * 4), axis=-1).reshape(-1, 4)
    assert places == ((entries[:, 0] * entries[:, 3] - entries[:, 1] * entries[:, 2]) % n == 1 % n).sum()
    graph = cayley_graph(n)
    assert graph.shape == (places, places)
    assert (graph == graph.T).all()
    assert (graph.sum(1) == degree).all()
    assert (np.linalg.matrix_power(graph + np.eye(places), places) > 0).all()


@pytest.mark.parametrize(("layers", "places"), [(6, 6), (7, 24), (12, 24), (24, 24), (25, 48)])
def test_a_graph_has_a_place_for_every_layer(layers, places):
    shape = made_shape(layers=layers)
    assert len(LayerGraphConfig().build(shape).graph) == places
    assert len(LayerGraphConfig(graph="full").build(shape).graph) == layers


def test_one_vector_is_read_by_one_linear_layer():
    """No choice of the head but its dropout and layers changes anything."""
    config = LayerSetConfig(k=K)
    model = FusionModel(config, SHAPE)
    assert sum(p.numel() for p in model.head.parameters()) == 3 * (K + 1)
    assert LayerSetConfig(k=K, read_out="first-token").identity(SHAPE) == config.identity(SHAPE)
    assert not {"positions", "heads"} & set(config.used(SHAPE))
