"""Head2Toe against NumPy, its two rounds, and what they leave of features, layers and parameters."""

import math

import numpy as np
import pytest
import torch

from adalayers.config import trial_config
from adalayers.fusion.head2toe import Head2ToeConfig, most_important
from adalayers.models.model import FusionModel
from adalayers.models.saved import load, save
from adalayers.storage.folder import Folder
from adalayers.training.trainer import train
from tests.helpers.formulas import array
from tests.helpers.interrupting import assert_same, interrupted
from tests.helpers.made_data import made_data
from tests.helpers.states import encoder, made_shape, made_states

L, WIDTH, LABELS = 4, 6, 3
STATES = encoder(*range(1, L + 1))
LENGTHS = torch.tensor([3, 1, 4])
SMALL = {"fusion": "head2toe", "batch_size": 16, "epochs": 4, "lr": 0.05, "weight_decay": 0.0}


def made(**settings):
    torch.manual_seed(1)
    return Head2ToeConfig(**settings).build(made_shape(n_outputs=LABELS, layers=L, width=WIDTH))


def numpy_probe(fusion, states):
    """The scores in float64, from the definition: means of a layer's kept features, to unit norm, side by side."""
    weight = array(fusion.probe.weight).T.reshape(L, WIDTH, LABELS)
    scores = np.repeat(array(fusion.probe.bias)[None], len(LENGTHS), axis=0)
    for place, (state, kept) in enumerate(zip(STATES, fusion.kept.numpy(), strict=True)):
        parts = np.split(array(states[state]), LENGTHS.cumsum(0)[:-1])
        means = np.array([part.mean(axis=0) for part in parts])[:, kept]
        norms = np.sqrt((means**2).sum(axis=1, keepdims=True))
        scores += means / np.where(norms > 0, norms, 1) @ weight[place][kept]
    return scores


def test_agrees_with_numpy_in_both_rounds_and_without_layers_that_keep_nothing():
    fusion, states = made(fraction=0.25), made_states(STATES, int(LENGTHS.sum()), WIDTH)
    with torch.no_grad():
        fusion.probe.bias.copy_(torch.tensor([0.1, -0.2, 0.3]))
    assert fusion.live() == STATES
    found = fusion(states, LENGTHS)
    np.testing.assert_allclose(array(found), numpy_probe(fusion, states), atol=1e-6)
    assert found.dtype == torch.float32
    with torch.no_grad():
        fusion.probe.weight.unflatten(1, (L, WIDTH))[:, [0, 3]] *= 1e-3
    fusion.refit()
    with torch.no_grad():
        fusion.probe.bias.copy_(torch.tensor([0.1, -0.2, 0.3]))
    assert fusion.live() == encoder(2, 3)
    assert fusion.depth() == 3
    assert fusion.summary() == {"head2toe/kept_features": 6, "head2toe/live_layers": 2}
    noted = fusion.diagnostics()
    assert noted["head2toe/share_01"] == noted["head2toe/share_04"] == 0
    assert sum(noted.values()) == pytest.approx(1.0)
    given = fusion({state: states[state] for state in encoder(2, 3)}, LENGTHS)
    np.testing.assert_allclose(array(given), numpy_probe(fusion, states), atol=1e-6)
    with fusion.without(encoder(2)):
        expected = numpy_probe(fusion, {**states, STATES[1]: torch.zeros_like(states[STATES[1]])})
        given = fusion({STATES[2]: states[STATES[2]]}, LENGTHS)
        np.testing.assert_allclose(array(given), expected, atol=1e-6)
    with fusion.without(STATES):
        assert torch.equal(fusion({}, LENGTHS), fusion.probe.bias.expand(3, -1))


def test_the_lasso_is_that_of_rows_and_of_the_first_round():
    fusion = made(lasso=0.01)
    rows = array(fusion.probe.weight.T)
    assert float(fusion.penalty().detach()) == pytest.approx(0.01 * np.sqrt((rows**2).sum(axis=1)).sum())
    with torch.no_grad():
        fusion.probe.weight[:, 0] = 0
    fusion.penalty().backward()
    assert torch.isfinite(fusion.probe.weight.grad).all()  # a row of zeros has no direction
    assert made(lasso=0.0).penalty() is None
    assert fusion.refit()
    assert fusion.penalty() is None


def test_the_best_features_are_kept_and_start_afresh():
    fusion, again = made(fraction=0.3), made(fraction=0.3)
    before = fusion.probe.weight.detach().clone()
    assert fusion.refit()
    kept = fusion.kept.flatten()
    assert int(kept.sum()) == 7  # of 0.3 * 4 * 6
    assert before.norm(dim=0)[kept].min() > before.norm(dim=0)[~kept].max()
    after = fusion.probe.weight.detach()
    assert after[:, ~kept].abs().max() == 0
    assert not torch.isclose(after[:, kept], before[:, kept]).any()
    bound = math.sqrt(6 / (7 + LABELS))  # Glorot's, of the features that are left
    assert 0.7 * bound < after.abs().max() < bound
    assert again.refit()
    assert not fusion.refit()
    assert torch.equal(again.probe.weight, fusion.probe.weight)


def test_a_fraction_is_whole_features_and_at_least_one():
    importance = torch.rand(10, 10)
    kept = [int(most_important(importance, fraction).sum()) for fraction in (0.29, 1e-6, 1.0)]
    assert kept == [29, 1, 100], "though 0.29 * 100 is below 29 in floating point"
    assert most_important(torch.ones(2, 2), 0.5).flatten().tolist() == [True, True, False, False]


def test_parameters_are_counted_exactly_also_once_saved(tmp_path):
    model = FusionModel(trial_config(fusion="head2toe", fraction=0.25), made_shape(layers=L, width=WIDTH))
    assert model.n_parameters() == model.fusion.weights_at_use() == L * WIDTH * LABELS + LABELS
    model.fusion.refit()
    assert model.n_parameters() == model.fusion.weights_at_use() == 6 * LABELS + LABELS
    save(model.eval(), Folder(tmp_path), about={})
    again = load(tmp_path)
    assert again.fusion.live() == model.fusion.live()
    assert again.n_parameters() == model.n_parameters()
    assert not again.fusion.refit()


def test_rates_of_the_second_round_are_those_of_the_first():
    outcome = train(trial_config(**SMALL, schedule="linear"), made_data(), seed=0)
    rates = [row["lr"] for row in outcome.history if row["step"]]
    assert len(rates) == 2 * 24
    assert rates[:24] == rates[24:]


@pytest.mark.parametrize("epoch", [4, 6], ids=["between", "second round"])
def test_two_rounds_find_the_informative_layer_interrupted_or_not(tmp_path, epoch):
    settings, data = trial_config(**SMALL, fraction=0.2), made_data()
    outcome = train(settings, data, seed=0, test=True)
    fusion = outcome.model.fusion
    assert outcome.row["test/accuracy"] > 0.7
    assert outcome.row["parameters"] == 9 * 3 + 3  # floor(0.2 * 3 * 16) features
    assert outcome.row["head2toe/kept_features"] == 9
    kept = fusion.kept.sum(dim=1).tolist()
    assert kept[1] == max(kept) > 6  # layer 2 of 1, 2, 3
    assert fusion.probe.weight[:, ~fusion.kept.flatten()].abs().max() == 0
    epochs = [row["epoch"] for row in outcome.history if "train/loss" in row]
    assert epochs == list(range(1, 9))
    assert outcome.row["best_epoch"] > 4
    assert_same(interrupted(settings, data, Folder(tmp_path), epoch=epoch, test=True), outcome)
