"""Heinsen routing against NumPy, both iterations; what padding, layers taken away and hidden vectors do to it."""

import numpy as np
import pytest
import torch

from adalayers.config import trial_config
from adalayers.fusion.routing import Routing, RoutingConfig
from adalayers.models.model import FusionModel
from tests.helpers.mixing import read_at
from tests.helpers.states import encoder, made_shape, made_states

L, WIDTH, K, LABELS = 3, 6, 4, 3
STATES = encoder(*range(1, L + 1))
LENGTHS = torch.tensor([1, 3, 9, 2])


def noised(module, seed=2):
    """Move every parameter from its start: zeros and ones hide what is left out."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return module


def made(k=None, *, hidden=0, per_token=False):
    torch.manual_seed(1)
    config = RoutingConfig(**read_at(k), hidden_vectors=hidden, heads=2)
    shape = made_shape("token" if per_token else "sequence", LABELS, layers=L, width=WIDTH)
    return noised(config.build(shape))


def inputs(lengths=LENGTHS, seed=0):
    return made_states(STATES, int(lengths.sum()), WIDTH, seed)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_routing(routing, x):
    """y [m, h] and phi [n, m] of x [n, d], loop by loop from the equations, votes and all."""
    p = {name: value.detach().double().numpy() for name, value in routing.named_parameters()}
    n, m = len(x), len(p["vote_scale"])
    own = {name: p[name][[min(i, len(p[name]) - 1) for i in range(n)]] for name in ("score", "score_bias")}
    own |= {name: np.broadcast_to(p[name], (n, m)) for name in ("similarity", "similarity_bias")}
    beta = x @ p["betas.weight"].T + p["betas.bias"] if "betas.weight" in p else p["beta"]
    use_beta, ignore_beta = beta[:, :m], beta[:, m:]
    scaled = x / np.sqrt(n)
    a = np.array([scaled[i] @ own["score"][i] + own["score_bias"][i] for i in range(n)])
    votes = [[(x_i * p["vote_scale"][j]) @ p["vote"] + p["vote_bias"][j] for j in range(m)] for x_i in scaled]
    votes = np.array(votes)

    def normal(y):
        if y.shape[1] == 1:
            return y
        return (y - y.mean(axis=1, keepdims=True)) / np.sqrt(y.var(axis=1, keepdims=True) + 1e-5)

    share = np.full((n, m), 1 / m)
    y = phi = None
    for iteration in range(2):
        if iteration:
            s = np.empty((n, m))
            for j in range(m):
                predicted = (normal(y)[j] @ p["predict"]) * p["predict_scale"][j] + p["predict_bias"][j]
                for i in range(n):
                    alike = own["similarity"][i, j] * (x[i] @ predicted) + own["similarity_bias"][i, j]
                    s[i, j] = np.log(sigmoid(alike))
            share = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
        use = sigmoid(a)[:, None] * share
        ignore = sigmoid(a)[:, None] - use
        phi = use_beta * use - ignore_beta * ignore
        y = np.einsum("ij,ijh->jh", phi, votes)
    return normal(y), phi


def numpy_inputs(fusion, states):
    """x [tokens, l, d] in float64."""
    rows = []
    for place, state in enumerate(STATES):
        z = states[state].double()
        if fusion.read.project is not None:
            z = torch.nn.functional.gelu(z) @ fusion.read.project[place].weight.detach().double().T
        z = z.numpy()
        z = (z - z.mean(axis=1, keepdims=True)) / np.sqrt(z.var(axis=1, keepdims=True) + 1e-5)
        scale, shift = (part[place].detach().double().numpy() for part in (fusion.scale, fusion.shift))
        rows.append(z * scale + shift)
    return np.stack(rows, axis=1)


@pytest.mark.parametrize("n", [None, 5], ids=["inputs vary", "inputs are fixed"])
@pytest.mark.parametrize("h", [1, 4])
def test_one_routing_agrees_with_numpy(n, h):
    torch.manual_seed(0)
    routing, x = noised(Routing(6, 3, h, n)), torch.randn(2, 5, 6)
    y, phi = routing(x, torch.full((2,), 5.0))
    for place in range(2):
        wanted, credit = numpy_routing(routing, x[place].double().numpy())
        np.testing.assert_allclose(y[place].detach().numpy(), wanted, atol=1e-5)
        np.testing.assert_allclose(phi[place].detach().numpy(), credit, atol=1e-5)


@pytest.mark.parametrize("hidden", [0, 5], ids=["straight", "through hidden vectors"])
@pytest.mark.parametrize("k", [None, K], ids=["own width", "projected"])
def test_a_text_is_one_routing_of_all_its_vectors(k, hidden):
    fusion, states = made(k, hidden=hidden), inputs()
    found = fusion(states, LENGTHS).detach().numpy()
    x = numpy_inputs(fusion, states)
    for place, last in enumerate(LENGTHS.cumsum(0).tolist()):
        y, _ = numpy_routing(fusion.first, x[last - int(LENGTHS[place]) : last].reshape(-1, x.shape[2]))
        for routing in fusion.rest:
            y, _ = numpy_routing(routing, y)
        np.testing.assert_allclose(found[place], y[:, 0], atol=2e-5)
    assert found.dtype == np.float32


@pytest.mark.parametrize("k", [None, K], ids=["own width", "projected"])
def test_each_token_of_a_token_task_is_a_routing_of_its_layers(k):
    fusion, states = made(k, per_token=True), inputs()
    found, x = fusion(states, LENGTHS).detach().numpy(), numpy_inputs(fusion, states)
    assert found.shape == (15, LABELS)
    for place in range(15):
        y, _ = numpy_routing(fusion.first, x[place])
        np.testing.assert_allclose(found[place], y[:, 0], atol=2e-5)


def counted(d, m, h, n=None):
    """The parameters of one routing, part by part."""
    rows = n or 1
    beta = 2 * n * m if n else 2 * (d * m + m)
    return rows * (d + 1) + m * d + d * h + m * h + h * d + 2 * m * d + 2 * rows * m + beta


def test_parameters_are_counted_exactly():
    def of(shape, **settings):
        return FusionModel(trial_config(fusion="routing", **settings), shape).n_parameters()

    for shape in (made_shape(n_outputs=2, layers=6, width=384), made_shape("token", 9, layers=6, width=384)):
        m = shape.n_outputs
        assert of(shape, own_width=True) == 2 * 6 * 384 + counted(384, m, 1)
        assert of(shape, k=64) == 6 * 384 * 64 + 2 * 6 * 64 + counted(64, m, 1)
    # CoLA on MiniLM: layer scales and shifts 4608, the routing 385 + 768 + 384 + 2 + 384 + 768 + 768 + 4 + 1540
    assert of(made_shape(n_outputs=2, layers=6, width=384), own_width=True) == 4608 + 5003
    # The published classifier, of RoBERTa-large's 25 hidden states: three routings through 64 vectors of 1024.
    large = made_shape(n_outputs=2, layers=24, width=1024)
    published = of(large, own_width=True, hidden_vectors=64, hidden_states="with-embeddings")
    parts = [counted(1024, 64, 1024), counted(1024, 64, 1024, 64), counted(1024, 2, 1, 64)]
    assert published == 2 * 25 * 1024 + sum(parts)


def test_layers_taken_away_are_not_routed():
    fusion, states = made(), inputs()
    with fusion.without(encoder(2)):
        assert fusion.live() == encoder(1, 3)
        found = fusion({state: states[state] for state in fusion.live()}, LENGTHS).detach().numpy()
    x = numpy_inputs(fusion, states)[:, [0, 2]]
    y, _ = numpy_routing(fusion.first, x[:1].reshape(-1, WIDTH))
    np.testing.assert_allclose(found[0], y[:, 0], atol=2e-5)
    with fusion.without(encoder(2), renormalise=False):
        other = fusion({state: states[state] for state in fusion.live()}, LENGTHS)
    assert not np.allclose(other.detach().numpy(), found)  # inputs are scaled by the number of all


@pytest.mark.parametrize("hidden", [0, 5], ids=["straight", "through hidden vectors"])
def test_credit_is_that_of_the_last_evaluation(hidden):
    fusion, states = made(hidden=hidden), inputs()
    assert fusion.diagnostics() == fusion.eval().diagnostics() == {}
    fusion.train()(inputs(seed=5), LENGTHS)
    assert fusion.diagnostics() == fusion.eval().diagnostics() == {}  # that was training
    fusion(states, LENGTHS)
    x, wanted = numpy_inputs(fusion, states), np.zeros(L)
    for place, last in enumerate(LENGTHS.cumsum(0).tolist()):
        y, credit = numpy_routing(fusion.first, x[last - int(LENGTHS[place]) : last].reshape(-1, WIDTH))
        for routing in fusion.rest:
            y, phi = numpy_routing(routing, y)
            credit = credit @ phi
        wanted += np.abs(credit).reshape(-1, L, LABELS).sum(axis=(0, 2))
    noted = fusion.diagnostics()
    assert list(noted) == [f"routing/credit_0{n}" for n in (1, 2, 3)]
    np.testing.assert_allclose(list(noted.values()), wanted / wanted.sum(), rtol=1e-4)
    fusion(inputs(seed=9), LENGTHS)  # another batch of the same evaluation
    assert fusion.diagnostics() != noted
    fusion.train()(states, LENGTHS)
    fusion.eval()(states, LENGTHS)
    assert fusion.diagnostics() == noted  # a new one


def test_all_layers_are_held_at_use():
    assert made().kept_at_use(WIDTH) == L * WIDTH
    assert made(K).kept_at_use(WIDTH) == L * K


def test_hidden_vectors_identify_no_trial_of_words():
    config, words = trial_config(fusion="routing", hidden_vectors=64), made_shape("token")
    assert "hidden_vectors" in config.used(made_shape())
    assert config.identity(words) == trial_config(fusion="routing", heads=5).identity(words)
