"""LayerMix against an independent computation in NumPy, and its promises about cut layers and variants."""

import math

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from adalayers.fusion.layer_mix import NORM_EPS, LayerMixConfig, log_mix
from adalayers.tensors.dropout import draw_from, dropout_mask
from adalayers.tensors.mix import ACTIVATIONS, mix_of_members
from tests.helpers import formulas
from tests.helpers.mixing import LENGTHS, SHAPE, STATES, TOKENS, WIDTH, K, L, inputs
from tests.helpers.states import encoder, made_shape


def numpy_mix(mix, states, *, alpha=1.0, cutoff=0.0, factors=None):
    """Weights and F of thesis section 5, in float64, with the options of `mix`; factors: of f_i, by layer."""
    weights = formulas.softmax(alpha * formulas.array(mix.p))
    weights = np.where(weights <= cutoff, 0.0, weights)
    weights = weights / weights.sum()
    total = 0.0
    for place, (weight, state, layer) in enumerate(zip(weights, STATES, mix.projections, strict=True)):
        f = formulas.gelu(formulas.array(states[state])) @ formulas.array(layer.weight).T
        f = f if mix.eps is None else formulas.normalised(f)
        total = total + weight * f * (1 if factors is None else formulas.array(factors[place]))
    return weights, formulas.gelu(total) if mix.gelu_after else total


UNEQUAL = (0.9, 1.2, 1.05, 0.7, 1.0)


def mix_of(p, **options):
    """Return a mix with this p, before its softmax."""
    mix = LayerMixConfig(k=K, **options).build(SHAPE)
    with torch.no_grad():
        mix.p.copy_(torch.tensor(p))
    return mix


@pytest.mark.parametrize(("alpha", "cutoff"), [(1.0, 0.0), (8.0, 0.0), (64.0, 0.0), (8.0, 0.1), (3.0, 0.15)])
def test_agrees_with_numpy(alpha, cutoff):
    torch.manual_seed(1)
    mix, states = mix_of(UNEQUAL, alpha=alpha, cutoff=cutoff), inputs()
    weights, expected = numpy_mix(mix, states, alpha=alpha, cutoff=cutoff)
    np.testing.assert_allclose(formulas.array(mix.weights()), weights, atol=1e-6)
    np.testing.assert_allclose(formulas.array(mix(states, LENGTHS)), expected, atol=1e-5)
    entropy = -sum(w * math.log(w) for w in weights if w > 0)
    assert float(mix.entropy().detach()) == pytest.approx(entropy, abs=1e-6)


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
    for n in (3, 7, 24, 49):
        below = float(np.nextafter(1 / n, 0))
        with pytest.raises(ValueError, match=f"below 1/{n}"):
            LayerMixConfig(cutoff=below).check(made_shape(layers=n))
        mix = LayerMixConfig(cutoff=0.999 / n).build(made_shape(layers=n))
        assert mix.live() == encoder(*range(1, n + 1))


@pytest.mark.parametrize(
    ("variant", "layer", "weights"),
    [("uniform", None, [0.2] * 5), ("last", None, [0, 0, 0, 0, 1]), ("single", 3, [0, 0, 1, 0, 0])],
)
def test_fixed_weights(variant, layer, weights):
    def trainable(mix):
        return {name: tuple(p.shape) for name, p in mix.named_parameters() if p.requires_grad}

    configs = LayerMixConfig(k=K), LayerMixConfig(k=K, mix=variant, layer=layer)
    learned, mix = (config.build(SHAPE) for config in configs)
    assert trainable(learned) == {**trainable(mix), "p": (L,)}
    assert mix.weights().tolist() == pytest.approx(weights)
    assert mix.live() == [state for state, weight in zip(STATES, weights, strict=True) if weight]


def test_projections_of_fixed_mixes_are_trained_unless_as_released():
    for train_projections in (True, False):
        mix = LayerMixConfig(k=K, mix="last", train_projections=train_projections).build(SHAPE)
        out = mix({STATES[4]: inputs()[STATES[4]]}, LENGTHS).square() * torch.arange(K)
        assert out.requires_grad == train_projections
        if train_projections:
            out.sum().backward()
            assert mix.projections[4].weight.grad.abs().max() > 0


def fused_inputs(seed=3, width=6):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    weights = torch.softmax(draw(3), dim=0).requires_grad_()
    return weights, [draw(5, width) for _ in range(3)], [draw(4, width).requires_grad_() for _ in range(3)]


def mixed(weights, states, matrices):
    """The mix of one member."""
    activated = ACTIVATIONS.activated(len(states), iter(states), weights.dtype)
    one = (each.unsqueeze(1) for each in (weights, torch.stack(matrices), activated))
    return mix_of_members(*one, [1], NORM_EPS).squeeze(1)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"gelu_after_mix": True},
        {"normalise": False},
        {"projection_dropout": 0.3},
        {"gelu_after_mix": True, "projection_dropout": 0.3},
    ],
    ids=str,
)
def test_options_are_what_their_names_say(options, frozen):
    mix = mix_of(UNEQUAL, **options)
    draw_from(mix, torch.Generator().manual_seed(11))
    factors = None
    if options.get("projection_dropout"):
        factors = dropout_mask(torch.empty(L, TOKENS, K), 0.3, torch.Generator().manual_seed(11))
        assert 0 < float((factors == 0).float().mean()) < 1
    states = {state: values.requires_grad_(not frozen) for state, values in inputs().items()}
    for given in (factors, None):
        _, expected = numpy_mix(mix, states, factors=given)
        np.testing.assert_allclose(formulas.array(mix(states, LENGTHS)), expected, atol=1e-5, rtol=1e-5)
        mix.eval()  # without dropout
    plain = LayerMixConfig(k=K).build(SHAPE)
    plain.load_state_dict(mix.state_dict())
    same = torch.allclose(mix(states, LENGTHS), plain(states, LENGTHS))
    assert same == (options == {"projection_dropout": 0.3})  # which acts while training alone


@pytest.mark.parametrize(
    "options", [{}, {"gelu_after_mix": True}, {"normalise": False}, {"projection_dropout": 0.3}], ids=str
)
def test_a_cut_layer_is_not_read_and_gets_no_gradient(options):
    mix, states = mix_of([1.0, 1.0, -3.0, 1.0, 1.0], cutoff=0.1, **options), inputs()
    del states[STATES[2]]
    assert mix.live() == encoder(1, 2, 4, 5)
    (mix(states, LENGTHS).square() * torch.arange(K)).sum().backward()
    assert float(mix.weights().detach()[2]) == float(mix.p.grad[2]) == 0.0
    assert mix.projections[2].weight.grad is None
    assert all(float(mix.p.grad[i]) != 0.0 for i in (0, 1, 3, 4))
    with mix.without([STATES[0]]):
        del states[STATES[0]]
        assert mix(states, LENGTHS).abs().max() > 0
    with mix.without(STATES):
        assert mix({}, LENGTHS).abs().max() == 0
    with torch.no_grad():  # it returns where others lose weight
        mix.p[:2] = -3.0
    assert STATES[2] not in mix.live()
    with torch.no_grad():
        mix.p[3:] = -2.0
    assert STATES[2] in mix.live()


def test_a_forward_pass_leaves_alone_what_an_earlier_one_needs_for_its_backward_pass():
    weights, states, matrices = fused_inputs()
    alone = torch.autograd.grad(
        mixed(weights, states, matrices).square().sum(),
        [weights, *matrices],
    )
    first = mixed(weights, states, matrices).square().sum()
    others = fused_inputs(seed=5)
    second = mixed(*others).square().sum()
    torch.testing.assert_close(torch.autograd.grad(first, [weights, *matrices]), alone, rtol=0, atol=0)
    second.backward()
    assert others[0].grad is not None


def test_states_on_a_gpu_are_activated_there():
    with FakeTensorMode(), torch.no_grad():  # says where numbers would lie, and needs no GPU
        states = [torch.empty(7, WIDTH, dtype=torch.float16, device="cuda") for _ in range(3)]
        made = ACTIVATIONS.activated(3, iter(states), torch.float32)
        assert (made.device.type, tuple(made.shape), made.dtype) == ("cuda", (3, 7, WIDTH), torch.float32)


def test_states_taken_away_are_not_read_and_the_rest_is_renormalised_or_not():
    mix, states = mix_of(UNEQUAL), inputs()
    whole = mix.weights().detach()
    parts = {state: LayerMixConfig(k=K, mix="single", layer=state.number).build(SHAPE) for state in STATES}
    for single in parts.values():
        single.projections.load_state_dict(mix.projections.state_dict())
    kept = [0, 3, 4]
    rest = {STATES[place]: states[STATES[place]] for place in kept}
    sums = sum(
        whole[place] * parts[STATES[place]]({STATES[place]: states[STATES[place]]}, LENGTHS) for place in kept
    )
    with mix.without(encoder(2, 3), renormalise=False):
        assert mix.live() == list(rest)
        torch.testing.assert_close(mix(rest, LENGTHS), sums)
    with mix.without(encoder(2, 3)):
        torch.testing.assert_close(mix(rest, LENGTHS), sums / whole[kept].sum())
        assert float(mix.weights().sum().detach()) == pytest.approx(1.0)
    assert mix.live() == STATES
