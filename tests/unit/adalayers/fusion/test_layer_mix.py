"""LayerMix against an independent computation in NumPy, and its promises about cut layers and variants."""

import math

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from adalayers.fusion.layer_mix import LayerMixConfig, log_mix
from adalayers.tensors.dropout import draw_from, dropout_mask
from adalayers.tensors.mix import ACTIVATIONS
from tests.helpers import formulas
from tests.helpers.mixing import LENGTHS, SHAPE, STATES, TOKENS, WIDTH, K, L, inputs
from tests.helpers.states import encoder, made_shape

UNEQUAL = (0.9, 1.2, 1.05, 0.7, 1.0)


def mix_of(p, **options):
    """Return a mix with this p, before its softmax."""
    mix = LayerMixConfig(k=K, **options).build(SHAPE)
    with torch.no_grad():
        mix.p.copy_(torch.tensor(p))
    return mix


def numpy_mix(mix, states, *, factors=None, gone=(), renormalise=True):
    """Weights and F of thesis section 5, in float64, with the options of `mix`; factors: of f_i, by layer."""
    weights = formulas.softmax(mix.alpha * formulas.array(mix.p))
    weights = np.where(weights <= mix.cutoff, 0.0, weights)
    weights = weights / weights.sum()
    weights[[*gone]] = 0
    if renormalise:
        weights = weights / weights.sum()
    total = 0.0
    for place, (weight, state, layer) in enumerate(zip(weights, STATES, mix.projections, strict=True)):
        f = formulas.gelu(formulas.array(states[state])) @ formulas.array(layer.weight).T
        f = f if mix.eps is None else formulas.normalised(f)
        total = total + weight * f * (1 if factors is None else formulas.array(factors[place]))
    return weights, formulas.gelu(total) if mix.gelu_after else total


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize(("gone", "renormalise"), [((), True), ((1, 2), True), ((1, 2), False)])
@pytest.mark.parametrize(
    "options",
    [{"alpha": 8.0}, {"alpha": 3.0, "cutoff": 0.15}, {"gelu_after_mix": True}, {"normalise": False}],
    ids=str,
)
def test_agrees_with_numpy_with_all_states_and_without_some(options, gone, renormalise, frozen):
    torch.manual_seed(1)
    mix = mix_of(UNEQUAL, **options)
    states = {state: values.requires_grad_(not frozen) for state, values in inputs().items()}
    weights, expected = numpy_mix(mix, states, gone=gone, renormalise=renormalise)
    with mix.without([STATES[place] for place in gone], renormalise=renormalise):
        assert mix.live() == [state for state, weight in zip(STATES, weights, strict=True) if weight > 0]
        np.testing.assert_allclose(formulas.array(mix.weights()), weights, atol=1e-6)
        given = mix({state: states[state] for state in mix.live()}, LENGTHS)
    np.testing.assert_allclose(formulas.array(given), expected, atol=1e-5, rtol=1e-5)
    whole, _ = numpy_mix(mix, states)
    entropy = -sum(w * math.log(w) for w in whole if w > 0)
    assert float(mix.entropy().detach()) == pytest.approx(entropy, abs=1e-6)


def test_projections_drop_out_in_training_alone():
    mix, states = mix_of(UNEQUAL, projection_dropout=0.3, gelu_after_mix=True), inputs()
    draw_from(mix, torch.Generator().manual_seed(11))
    factors = dropout_mask(torch.empty(L, TOKENS, K), 0.3, torch.Generator().manual_seed(11))
    for given in (factors, None):
        _, expected = numpy_mix(mix, states, factors=given)
        np.testing.assert_allclose(formulas.array(mix(states, LENGTHS)), expected, atol=1e-5, rtol=1e-5)
        mix.eval()


@pytest.mark.parametrize(
    ("settings", "p"),
    [({"cutoff": 0.1}, [1.5, 1.0, -3.0, -3.0, -3.0]), ({"alpha": 512.0}, [1.5, 1.5, 0.0, 0.0, 0.0])],
    ids=["cut", "underflowing"],
)
def test_entropy_of_weights_of_none_is_finite_and_differentiable(settings, p):
    mix = mix_of(p, **settings)
    mix.entropy().backward()
    assert 0 < float(mix.entropy().detach()) <= math.log(2) + 1e-6
    assert torch.isfinite(mix.p.grad).all()


def test_a_weight_that_equals_the_cutoff_is_cut():
    logits = torch.tensor([1.0, 0.5, 0.0])
    cutoff = float(torch.softmax(logits, dim=-1)[1])
    assert log_mix(logits, cutoff).exp().tolist() == [1.0, 0.0, 0.0]


def test_a_cutoff_within_rounding_of_the_start_is_refused():
    """1/49 in float32 is above the float64 product's 1: the check passed, and every layer was cut at the first step."""
    with pytest.raises(ValueError, match="below 1/49"):
        LayerMixConfig(cutoff=float(np.nextafter(1 / 49, 0))).check(made_shape(layers=49))
    mix = LayerMixConfig(cutoff=0.999 / 49).build(made_shape(layers=49))
    assert mix.live() == encoder(*range(1, 50))


@pytest.mark.parametrize(
    ("variant", "layer", "weights"),
    [("uniform", None, [0.2] * 5), ("last", None, [0, 0, 0, 0, 1]), ("single", 3, [0, 0, 1, 0, 0])],
)
def test_fixed_weights(variant, layer, weights):
    def trainable(**options):
        mix = LayerMixConfig(k=K, **options).build(SHAPE)
        return mix, {name: tuple(p.shape) for name, p in mix.named_parameters() if p.requires_grad}

    mix, trained = trainable(mix=variant, layer=layer)
    assert trainable()[1] == {**trained, "p": (L,)}
    assert trainable(mix=variant, layer=layer, train_projections=False)[1] == {}
    assert mix.weights().tolist() == pytest.approx(weights)
    assert mix.live() == [state for state, weight in zip(STATES, weights, strict=True) if weight]
    embeddings = LayerMixConfig(mix="single", layer=0, hidden_states="with-embeddings").build(SHAPE)
    assert embeddings.live() == encoder(0)


@pytest.mark.parametrize("options", [{}, {"gelu_after_mix": True, "projection_dropout": 0.3}], ids=str)
def test_a_cut_layer_is_not_read_gets_no_gradient_and_returns(options):
    mix, states = mix_of([1.0, 1.0, -3.0, 1.0, 1.0], cutoff=0.1, **options), inputs()
    del states[STATES[2]]
    assert mix.live() == encoder(1, 2, 4, 5)
    (mix(states, LENGTHS).square() * torch.arange(K)).sum().backward()
    assert float(mix.weights().detach()[2]) == float(mix.p.grad[2]) == 0.0
    assert mix.projections[2].weight.grad is None
    assert mix.projections[4].weight.grad.abs().max() > 0
    assert [float(grad) != 0.0 for grad in mix.p.grad] == [True, True, False, True, True]
    with torch.no_grad():
        mix.p.copy_(torch.tensor([-3.0, -3.0, -3.0, -2.0, -2.0]))
    assert STATES[2] in mix.live(), "it returns where others lose weight"


def test_a_forward_pass_leaves_alone_what_an_earlier_one_needs_for_its_backward_pass():
    mix = mix_of(UNEQUAL)

    def given(seed):
        return mix(inputs(seed), LENGTHS).pow(3).sum()

    alone = torch.autograd.grad(given(0), [*mix.parameters()])
    first, second = given(0), given(5)
    torch.testing.assert_close(torch.autograd.grad(first, [*mix.parameters()]), alone, rtol=0, atol=0)
    second.backward()


def test_states_on_a_gpu_are_activated_there():
    with FakeTensorMode(), torch.no_grad():  # says where numbers would lie, and needs no GPU
        states = [torch.empty(7, WIDTH, dtype=torch.float16, device="cuda") for _ in range(3)]
        made = ACTIVATIONS.activated(3, iter(states), torch.float32)
        assert (made.device.type, tuple(made.shape), made.dtype) == ("cuda", (3, 7, WIDTH), torch.float32)
