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
from tests.helpers.interrupting import assert_same, interrupted
from tests.helpers.made_data import made_data
from tests.helpers.states import encoder, made_shape, made_states

L, WIDTH, LABELS = 4, 6, 3
STATES = encoder(*range(1, L + 1))
LENGTHS = torch.tensor([3, 1, 4])
SMALL = {"fusion": "head2toe", "batch_size": 16, "epochs": 4, "lr": 0.05, "weight_decay": 0.0}


def inputs(seed=0):
    return made_states(STATES, int(LENGTHS.sum()), WIDTH, seed)


def made(**settings):
    torch.manual_seed(1)
    return Head2ToeConfig(**settings).build(made_shape(n_outputs=LABELS, layers=L, width=WIDTH))


def numpy_probe(fusion, states):
    """The scores in float64, from the definition: means of a layer's kept features, to unit norm, side by side."""
    kept = fusion.kept.numpy()
    weight = fusion.probe.weight.detach().double().numpy().T.reshape(L, WIDTH, LABELS)
    ends = LENGTHS.numpy().cumsum()
    scores = []
    for first, last in zip(ends - LENGTHS.numpy(), ends, strict=True):
        total = fusion.probe.bias.detach().double().numpy()
        for place, state in enumerate(STATES):
            mean = states[state].double().numpy()[first:last].mean(axis=0)[kept[place]]
            norm = np.sqrt((mean**2).sum())
            total = total + (mean / norm if norm > 0 else mean) @ weight[place][kept[place]]
        scores.append(total)
    return np.array(scores)


@pytest.mark.parametrize("second", [False, True], ids=["first round", "second round"])
def test_agrees_with_numpy(second):
    fusion, states = made(fraction=0.3), inputs()
    if second:
        fusion.refit()
    with torch.no_grad():
        fusion.probe.bias.copy_(torch.tensor([0.1, -0.2, 0.3]))
    given = {state: states[state] for state in fusion.live()}
    found = fusion(given, LENGTHS).detach().numpy()
    np.testing.assert_allclose(found, numpy_probe(fusion, states), atol=1e-6)
    assert found.dtype == np.float32


def test_the_lasso_is_that_of_rows_and_of_the_first_round():
    fusion = made(lasso=0.01)
    rows = fusion.probe.weight.detach().T.double().numpy()
    assert float(fusion.penalty().detach()) == pytest.approx(0.01 * np.sqrt((rows**2).sum(axis=1)).sum())
    fusion.penalty().backward()
    with torch.no_grad():
        fusion.probe.weight[:, 0] = 0
    fusion.probe.weight.grad = None
    fusion.penalty().backward()
    assert torch.isfinite(fusion.probe.weight.grad).all()  # a row of zeros has no direction
    assert made(lasso=0.0).penalty() is None
    assert fusion.refit()
    assert fusion.penalty() is None


def test_the_best_features_are_kept_and_start_afresh():
    fusion = made(fraction=0.3)
    before = fusion.probe.weight.detach().clone()
    norms = before.norm(dim=0)
    assert fusion.refit()
    n = math.floor(0.3 * L * WIDTH)
    kept = fusion.kept.flatten()
    assert int(kept.sum()) == n == 7
    assert norms[kept].min() > norms[~kept].max()
    after = fusion.probe.weight.detach()
    assert after[:, ~kept].abs().max() == 0
    assert not torch.isclose(after[:, kept], before[:, kept]).any()
    bound = math.sqrt(6 / (n + LABELS))  # Glorot's, of the features that are left
    assert 0.7 * bound < after.abs().max() < bound
    again = made(fraction=0.3)
    again.refit()
    assert torch.equal(again.probe.weight, fusion.probe.weight)
    assert not fusion.refit()
    assert torch.equal(fusion.probe.weight, after)


def test_a_fraction_is_whole_features_and_at_least_one():
    importance = torch.rand(10, 10)
    assert int(most_important(importance, 0.29).sum()) == 29, (
        "though 0.29 * 100 is below it in floating point"
    )
    assert int(most_important(importance, 1e-6).sum()) == 1
    assert most_important(importance, 1.0).all()
    assert most_important(torch.ones(2, 2), 0.5).flatten().tolist() == [True, True, False, False]


def test_parameters_are_counted_exactly():
    fusion = made(fraction=0.25)
    trainable = sum(p.numel() for p in fusion.parameters() if p.requires_grad)
    assert trainable - fusion.unused_parameters() == L * WIDTH * LABELS + LABELS == 75
    assert fusion.weights_at_use() == 75
    fusion.refit()
    assert trainable - fusion.unused_parameters() == 6 * LABELS + LABELS == 21
    assert fusion.weights_at_use() == 21
    model = FusionModel(trial_config(fusion="head2toe"), made_shape(n_outputs=2, layers=12, width=768))
    assert model.n_parameters() == 12 * 768 * 2 + 2


def test_a_layer_that_keeps_nothing_is_not_read():
    fusion, states = made(fraction=0.25), inputs()
    with torch.no_grad():
        fusion.probe.weight.unflatten(1, (L, WIDTH))[:, [0, 3]] *= 1e-3
    fusion.refit()
    assert fusion.live() == encoder(2, 3)
    assert fusion.depth() == 3
    assert fusion.summary() == {"head2toe/kept_features": 6, "head2toe/live_layers": 2}
    noted = fusion.diagnostics()
    assert noted["head2toe/share_01"] == noted["head2toe/share_04"] == 0
    assert sum(noted.values()) == pytest.approx(1.0)
    some = {state: states[state] for state in fusion.live()}
    assert torch.equal(fusion(some, LENGTHS), fusion({**states, **some}, LENGTHS))
    with fusion.without(encoder(2)):
        assert fusion.live() == encoder(3)
        expected = numpy_probe(fusion, {**states, STATES[1]: torch.zeros_like(states[STATES[1]])})
        found = fusion({STATES[2]: states[STATES[2]]}, LENGTHS).detach().numpy()
        np.testing.assert_allclose(found, expected, atol=1e-6)
    with fusion.without(STATES):
        assert torch.equal(fusion({}, LENGTHS), fusion.probe.bias.expand(3, -1))


def test_two_rounds_find_the_informative_layer():
    outcome = train(trial_config(**SMALL, fraction=0.2), made_data(), seed=0, test=True)
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


@pytest.mark.parametrize("epoch", [2, 4, 6], ids=["first round", "between", "second round"])
def test_interrupted_or_not_it_is_the_same(tmp_path, epoch):
    settings, data = trial_config(**SMALL, fraction=0.2), made_data()
    assert_same(interrupted(settings, data, Folder(tmp_path), epoch=epoch), train(settings, data, seed=0))


def test_saved_parts_know_what_they_kept(tmp_path):
    model = FusionModel(trial_config(fusion="head2toe", fraction=0.05), made_shape(layers=L, width=WIDTH))
    model.fusion.refit()
    save(model.eval(), Folder(tmp_path), about={})
    again = load(tmp_path)
    assert again.fusion.live() == model.fusion.live()
    assert again.n_parameters() == model.n_parameters() == 1 * 3 + 3
    assert not again.fusion.refit()
