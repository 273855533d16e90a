"""ScalarMix against NumPy, what its fixed variants are, and what it has in common with the layer mix."""

import numpy as np
import pytest
import torch

from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.fusion.scalar_mix import ScalarMixConfig
from adalayers.models.model import FusionModel
from tests.helpers import formulas
from tests.helpers.mixing import LENGTHS, SHAPE, STATES, WIDTH, K, L, inputs, read_at
from tests.helpers.states import encoder, made_shape


def mix(k=None, **options):
    """A mix with weights that differ."""
    torch.manual_seed(1)
    made = ScalarMixConfig(**read_at(k), **options).build(SHAPE)
    if made.mix == "learned":
        with torch.no_grad():
            made.w.copy_(torch.tensor([0.3, -1.0, 0.5, 2.0, 0.0]))
            made.gamma.fill_(1.7)
    return made


@pytest.mark.parametrize("k", [None, K], ids=["own width", "matched"])
def test_agrees_with_numpy(k):
    made, states = mix(k), inputs()
    weights = formulas.softmax(np.array([0.3, -1.0, 0.5, 2.0, 0.0]))
    read = formulas.read(made.projected, [states[state] for state in STATES])
    expected = 1.7 * sum(weight * x for weight, x in zip(weights, read, strict=True))
    assert made.width == expected.shape[1]
    np.testing.assert_allclose(formulas.array(made(states, LENGTHS)), expected, atol=1e-5)
    np.testing.assert_allclose(formulas.array(made.weights()), weights, atol=1e-6)


def test_matched_it_starts_as_the_layer_mix_does():
    """Same seed, same projections, and both start uniform: what differs is how weights are learned."""
    states = inputs()
    torch.manual_seed(3)
    layers = LayerMixConfig(k=K).build(SHAPE)
    torch.manual_seed(3)
    scalar = ScalarMixConfig(k=K).build(SHAPE)
    torch.testing.assert_close(scalar(states, LENGTHS), layers(states, LENGTHS), atol=1e-6, rtol=1e-5)


def test_average_and_base_have_no_parameters_of_their_own():
    """Seed 003's baselines: the mean of the hidden states, and the last, as they are."""
    states = inputs()
    average, base = mix(mix="uniform"), mix(mix="last")
    assert [*average.parameters(), *base.parameters()] == []
    torch.testing.assert_close(average(states, LENGTHS), torch.stack(list(states.values())).mean(dim=0))
    assert base.live() == [STATES[-1]]
    assert torch.equal(base({STATES[-1]: states[STATES[-1]]}, LENGTHS), states[STATES[-1]])
    assert set(average.diagnostics()) == {f"scalar_mix/weight_{i:02d}" for i in range(1, L + 1)}


def test_fixed_variants_differ_in_the_weights_alone():
    def trainable(made):
        return {name: tuple(p.shape) for name, p in made.named_parameters()}

    learned = trainable(mix(K))
    assert (learned.pop("w"), learned.pop("gamma")) == ((L,), ())
    for variant, layer, read in (
        ("uniform", None, STATES),
        ("last", None, STATES[4:]),
        ("single", 3, [STATES[2]]),
    ):
        made = mix(K, mix=variant, layer=layer)
        assert trainable(made) == learned
        assert made.live() == read
        assert made.unused_parameters() == (L - len(read)) * K * WIDTH


@pytest.mark.parametrize("k", [None, K], ids=["own width", "matched"])
def test_states_taken_away_are_not_read_and_the_rest_is_renormalised_or_not(k):
    made, states = mix(k), inputs()
    whole = made.weights().detach()
    kept = [0, 3, 4]
    rest = {STATES[place]: states[STATES[place]] for place in kept}
    sums = 1.7 * sum(whole[place] * made.projected(STATES[place], states[STATES[place]]) for place in kept)
    with made.without(encoder(2, 3), renormalise=False):
        assert made.live() == list(rest)
        torch.testing.assert_close(made(rest, LENGTHS), sums)
    with made.without(encoder(2, 3)):
        torch.testing.assert_close(made(rest, LENGTHS), sums / whole[kept].sum())
        assert made.diagnostics()["scalar_mix/weight_02"] == 0


def test_neither_w_nor_gamma_has_weight_decay():
    model = FusionModel(ScalarMixConfig(heads=2), made_shape())
    (free,) = [group for group in model.parameter_groups() if group.weight_decay == 0.0]
    assert [id(p) for p in free.parameters] == [id(model.fusion.w), id(model.fusion.gamma)]


def test_what_changes_nothing_does_not_identify_a_trial():
    shape = made_shape(layers=4)
    own = ScalarMixConfig(own_width=True)
    assert own.identity(shape) == ScalarMixConfig(own_width=True, k=8).identity(shape)
    assert own.identity(shape) != ScalarMixConfig().identity(shape) != ScalarMixConfig(k=8).identity(shape)
