"""Heinsen routing against NumPy, both iterations; what padding, layers taken away and hidden vectors do to it."""

import numpy as np
import pytest
import torch

from adalayers.config import trial_config
from adalayers.fusion.routing import RoutingConfig
from tests.helpers.formulas import array, normalised, read, softmax
from tests.helpers.mixing import read_at
from tests.helpers.states import encoder, made_shape, made_states, moved

L, WIDTH, K, LABELS = 3, 6, 4, 3
STATES = encoder(*range(1, L + 1))
LENGTHS = torch.tensor([1, 3, 9, 2])


def made(k=None, *, hidden=0, per_token=False):
    """Routing with every parameter moved from its start."""
    torch.manual_seed(1)
    config = RoutingConfig(**read_at(k), hidden_vectors=hidden, heads=2)
    fusion = config.build(made_shape("token" if per_token else "sequence", LABELS, layers=L, width=WIDTH))
    return moved(fusion)


def inputs(lengths=LENGTHS, seed=0):
    return made_states(STATES, int(lengths.sum()), WIDTH, seed)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_routing(routing, x):
    """y [m, h] and phi [n, m] of x [n, d] from the equations, votes and all."""
    p = {name: array(value) for name, value in routing.named_parameters()}
    n, m = len(x), len(p["vote_scale"])
    beta = x @ p["betas.weight"].T + p["betas.bias"] if "betas.weight" in p else p["beta"]
    scaled = x / np.sqrt(n)
    active = sigmoid((scaled * p["score"]).sum(axis=1) + p["score_bias"])[:, None]
    votes = np.einsum("id,jd,dh->ijh", scaled, p["vote_scale"], p["vote"]) + p["vote_bias"]
    share = 1 / m
    for _ in range(2):
        use = active * share
        phi = beta[:, :m] * use - beta[:, m:] * (active - use)
        y = np.einsum("ij,ijh->jh", phi, votes)
        y = y if y.shape[1] == 1 else normalised(y)
        predicted = (y @ p["predict"]) * p["predict_scale"] + p["predict_bias"]
        share = softmax(np.log(sigmoid(p["similarity"] * (x @ predicted.T) + p["similarity_bias"])))
    return y, phi


def numpy_inputs(fusion, states):
    """x [tokens, l, d] in float64."""
    rows = read(fusion.read, [states[state] for state in STATES])
    rows = [normalised(x) if fusion.read.project is None else x for x in rows]
    return np.stack(rows, axis=1) * array(fusion.scale) + array(fusion.shift)


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
