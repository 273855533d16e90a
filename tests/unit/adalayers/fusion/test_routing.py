"""Heinsen routing against NumPy, both iterations; what padding, layers taken away and hidden vectors do to it."""

import numpy as np
import pytest
import torch

from adalayers.config import trial_config
from adalayers.fusion.routing import RoutingConfig
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


def numpy_texts(fusion, x):
    """Scores and credit of each text of x [tokens, l, d]."""
    found = []
    for part in np.split(x, LENGTHS.cumsum(0)[:-1]):
        y, credit = numpy_routing(fusion.first, part.reshape(-1, part.shape[2]))
        for routing in fusion.rest:
            y, phi = numpy_routing(routing, y)
            credit = credit @ phi
        found.append((y[:, 0], credit))
    return zip(*found, strict=True)


@pytest.mark.parametrize("hidden", [0, 5], ids=["straight", "through hidden vectors"])
@pytest.mark.parametrize("k", [None, K], ids=["own width", "projected"])
def test_a_text_is_one_routing_of_all_its_vectors(k, hidden):
    fusion, states = made(k, hidden=hidden), inputs()
    for places in ([0, 1, 2], [0, 2]):
        with fusion.without([state for place, state in enumerate(STATES) if place not in places]):
            assert fusion.live() == [STATES[place] for place in places]
            found = fusion({state: states[state] for state in fusion.live()}, LENGTHS)
        wanted, _ = numpy_texts(fusion, numpy_inputs(fusion, states)[:, places])
        np.testing.assert_allclose(found.detach().numpy(), wanted, atol=2e-5)
        assert found.dtype == torch.float32
    with fusion.without(encoder(2), renormalise=False):
        other = fusion({state: states[state] for state in fusion.live()}, LENGTHS)
    assert not torch.allclose(other, found)  # inputs are scaled by the number of all


@pytest.mark.parametrize("k", [None, K], ids=["own width", "projected"])
def test_each_token_of_a_token_task_is_a_routing_of_its_layers(k):
    fusion, states = made(k, per_token=True), inputs()
    wanted = [numpy_routing(fusion.first, x)[0][:, 0] for x in numpy_inputs(fusion, states)]
    np.testing.assert_allclose(fusion(states, LENGTHS).detach().numpy(), wanted, atol=2e-5)


def counted(d, m, h, n=None):
    """The parameters of one routing, part by part."""
    rows = n or 1
    beta = 2 * n * m if n else 2 * (d * m + m)
    return rows * (d + 1) + m * d + d * h + m * h + h * d + 2 * m * d + 2 * rows * m + beta


def test_parameters_are_counted_exactly_and_all_layers_are_held_at_use():
    def of(shape, **settings):
        model = FusionModel(trial_config(fusion="routing", **settings), shape)
        return model.n_parameters(), model.kept_at_use()

    words = made_shape("token", 9, layers=6, width=384)
    assert of(words, own_width=True) == (2 * 6 * 384 + counted(384, 9, 1), 6 * 384)
    assert of(words, k=64) == (6 * 384 * 64 + 2 * 6 * 64 + counted(64, 9, 1), 6 * 64)
    # CoLA on MiniLM: layer scales and shifts 4608, the routing 385 + 768 + 384 + 2 + 384 + 768 + 768 + 4 + 1540
    assert of(made_shape(n_outputs=2, layers=6, width=384), own_width=True)[0] == 4608 + 5003
    # The published classifier, of RoBERTa-large's 25 hidden states: three routings through 64 vectors of 1024.
    large = made_shape(n_outputs=2, layers=24, width=1024)
    published, _ = of(large, own_width=True, hidden_vectors=64, hidden_states="with-embeddings")
    parts = [counted(1024, 64, 1024), counted(1024, 64, 1024, 64), counted(1024, 2, 1, 64)]
    assert published == 2 * 25 * 1024 + sum(parts)


@pytest.mark.parametrize("hidden", [0, 5], ids=["straight", "through hidden vectors"])
def test_credit_is_that_of_the_last_evaluation(hidden):
    fusion, states = made(hidden=hidden), inputs()
    fusion.train()(inputs(seed=5), LENGTHS)
    assert fusion.diagnostics() == fusion.eval().diagnostics() == {}  # that was training
    fusion(states, LENGTHS)
    _, credits = numpy_texts(fusion, numpy_inputs(fusion, states))
    wanted = sum(np.abs(credit).reshape(-1, L, LABELS).sum(axis=(0, 2)) for credit in credits)
    noted = fusion.diagnostics()
    assert list(noted) == [f"routing/credit_0{n}" for n in (1, 2, 3)]
    np.testing.assert_allclose(list(noted.values()), wanted / wanted.sum(), rtol=1e-4)
    fusion(inputs(seed=9), LENGTHS)  # another batch of the same evaluation
    assert fusion.diagnostics() != noted
    fusion.train()(states, LENGTHS)
    fusion.eval()(states, LENGTHS)
    assert fusion.diagnostics() == noted  # a new one


def test_hidden_vectors_identify_no_trial_of_words():
    config, words = trial_config(fusion="routing", hidden_vectors=64), made_shape("token")
    assert "hidden_vectors" in config.used(made_shape())
    assert config.identity(words) == trial_config(fusion="routing", heads=5).identity(words)
