"""Models over a base model of their own: what is trained, held, switched off and run, on every family."""

import pytest
import torch

from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.trainable_base.model import TrainableBaseModel
from adalayers.study import Variant
from tests.helpers.made_tokens import TopConfig, made_tokens, shape_of
from tests.helpers.tiny import FAMILIES

WAYS = ("adapters", "fine-tuned")
SMALL = {"k": 8, "heads": 2, "feedforward": 16, "adapter_width": 4}


def made(backbone, family="bert", *, head="sequence", config=LayerMixConfig, begin=True, seed=0, **changes):
    small = SMALL if config is LayerMixConfig else {"read_out": "linear", "adapter_width": 4}
    shape = shape_of(backbone, family, head)
    model = TrainableBaseModel(config(**{**small, **changes}), shape, backbone, seed=seed)
    if begin:
        model.prepare_training()
    return model


def answers(model, *lengths, seed=0):
    with torch.no_grad():
        return model.eval().forward_batch(made_tokens(*lengths, seed=seed))


def moved(model, seed=0):
    """Return `model` with all that is trained moved a little."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


def weights(module):
    return sum(parameter.numel() for parameter in module.parameters())


def trained_layers(model):
    """Return the numbers of the layers in which all is trained, and whether anything outside of them is."""
    layers = [
        number
        for number, layer in enumerate(model.base.layers, start=1)
        if all(parameter.requires_grad for parameter in layer.parameters())
    ]
    inside = {id(p) for layer in model.base.layers for p in layer.parameters()}
    others = any(p.requires_grad for p in model.base.parameters() if id(p) not in inside)
    return layers, others


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_reaches_all_that_is_trained_and_nothing_else(family, way, backbone_of):
    model = made(backbone_of(family), family, base_model=way, adapter_norms=True, lr=1e-2).train()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    groups = [list(group.parameters) for group in model.parameter_groups()]
    trained = {id(p): name for name, p in model.named_parameters() if p.requires_grad}
    assert sorted(id(p) for group in groups for p in group) == sorted(trained)
    assert model.n_parameters() == sum(p.numel() for p in model.parameters() if id(p) in trained)

    # Keys' biases change no attention: weight decay moves them.
    optimiser = torch.optim.Adam([p for group in groups for p in group], lr=1e-2, weight_decay=1e-2)
    out = model.forward_batch(made_tokens(3, 5, 9))
    (out * torch.tensor([1.0, -2.0])).sum().backward()
    assert all((p.grad is not None) == p.requires_grad for p in model.parameters())
    optimiser.step()
    still = {name for name, p in model.named_parameters() if torch.equal(p, before[name])}
    assert still == {name for name, p in model.named_parameters() if not p.requires_grad}


@pytest.mark.parametrize("way", WAYS)
def test_before_it_begins_it_is_the_frozen_model(way, backbone_of):
    backbone = backbone_of()
    model = made(backbone, base_model=way, begin=False)
    assert not any(p.requires_grad for p in model.base.parameters())
    batch = made_tokens(6)
    frozen = backbone(batch.input_ids.unsqueeze(0), torch.ones(1, 6, dtype=torch.long))
    with torch.no_grad():
        states = {state: frozen[state][0] for state in model.fusion.states}
        expected = model.eval()(states, batch.lengths)
    torch.testing.assert_close(answers(model, 6), expected)


@pytest.mark.parametrize(
    ("changes", "first", "last"),
    [
        ({}, 1, 4),
        ({"base_layers": "selected"}, 1, 2),
        ({"base_layers": "as-many-top"}, 3, 4),
        ({"base_layers": "as-many-top", "taken": 4}, 1, 4),
    ],
    ids=str,
)
def test_which_layers_are_fine_tuned_or_have_adapters(changes, first, last, backbone_of):
    layers = [*range(first, last + 1)]
    model = made(backbone_of(), config=TopConfig, base_model="fine-tuned", **changes)
    assert model.span.tolist() == [first, last, 4]
    assert trained_layers(model) == (layers, not changes)
    assert not any(p.requires_grad for p in model.base.model.pooler.parameters())
    model = made(backbone_of(), config=TopConfig, base_model="adapters", adapter_norms=True, **changes)
    assert [*model.adapters.layers] == layers
    assert trained_layers(model) == ([], False)
    trained = [name for name, p in model.base.named_parameters() if p.requires_grad]
    norms = {name.split(".layer.")[1].split(".")[0] for name in trained}
    assert norms == {str(number - 1) for number in layers}


@pytest.mark.parametrize("way", WAYS)
def test_layers_that_are_not_read_are_neither_run_nor_trained(way, backbone_of):
    model = made(backbone_of("t5"), "t5", mix="single", layer=2, base_model=way)
    assert model.span.tolist() == [1, 2, 2]
    assert len(model.base.layers) == 3
    assert not any(p.requires_grad for p in model.base.layers[2].parameters())
    assert not model.base.model.final_layer_norm.weight.requires_grad


@pytest.mark.parametrize("way", WAYS)
def test_layers_that_do_not_exist_are_refused(way, backbone_of):
    with pytest.raises(BadInput, match="base_layers=as-many-top leaves none of the 2 that this fusion reads"):
        made(backbone_of(), mix="single", layer=2, base_layers="as-many-top", base_model=way)


def test_embeddings_alone_may_be_fine_tuned_and_have_no_adapters(backbone_of):
    embeddings = {"hidden_states": "with-embeddings", "mix": "single", "layer": 0}
    model = made(backbone_of(), base_model="fine-tuned", **embeddings)
    assert trained_layers(model) == ([], True)
    with pytest.raises(BadInput, match="leaves none of the 0"):
        made(backbone_of(), base_model="adapters", **embeddings)


@pytest.mark.parametrize(
    ("changes", "within"),
    [
        ({"base_model": "adapters"}, lambda base: 4 * (2 * 16 * 4 + 16 + 4)),
        (
            {"base_model": "adapters", "adapter_norms": True},
            lambda base: 4 * (2 * 16 * 4 + 16 + 4) + 4 * 2 * 32,
        ),
        (
            {"base_model": "fine-tuned", "base_layers": "as-many-top", "taken": 1},
            lambda base: weights(base.encoder.layer[-1]),
        ),
        ({"base_model": "fine-tuned"}, lambda base: weights(base) - weights(base.pooler)),
    ],
    ids=["adapters", "adapters and norms", "last layer", "whole"],
)
def test_what_is_held_is_what_is_trained(changes, within, backbone_of):
    model, count = made(backbone_of(), config=TopConfig, **changes), within(backbone_of().model)
    state = model.state_dict()
    of_base = [value for name, value in state.items() if name.startswith(("base.", "adapters."))]
    assert sum(value.numel() for value in of_base) == count
    assert sum(value.numel() for value in state.values()) == count + weights(model.head) + model.span.numel()
    assert model.n_parameters() == count + weights(model.head)


def test_dropout_within_the_base_model_follows_from_the_models_own_stream(backbone_of):
    model = made(backbone_of(), base_model="adapters", dropout=0.0).train()
    model.generator = torch.Generator()

    def two_steps(*, elsewhere=0):
        model.generator.manual_seed(5)
        first = model.forward_batch(made_tokens(6, 6)).detach()
        torch.rand(elsewhere)
        return first, model.forward_batch(made_tokens(6, 6)).detach()

    torch.manual_seed(1)
    first, second = two_steps()
    assert not torch.equal(first, second)
    torch.manual_seed(2)
    again = two_steps(elsewhere=7)
    assert torch.equal(torch.stack(again), torch.stack((first, second)))
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    two_steps()
    assert torch.equal(torch.rand(4), expected)
    assert torch.equal(answers(model, 6), answers(model, 6))


def test_adapters_of_spans_are_taken_away_without_a_trace(backbone_of):
    model = moved(made(backbone_of(), base_model="adapters", adapter_sharing="three"))
    whole, spans = answers(model, 4, 6), {}
    for span in ((1,), (2, 3), (1, 2, 3, 4), (0, 4)):
        with model.as_variant(Variant(without=span)):
            spans[span] = answers(model, 4, 6)
            assert len(model.fusion.live()) == 4
    assert len({tuple(value.flatten().tolist()) for value in [whole, *spans.values()]}) == 5
    assert torch.equal(answers(model, 4, 6), whole)
    model.adapters.off = frozenset([4])
    assert torch.equal(answers(model, 4, 6), spans[0, 4])


def test_variants_of_a_fine_tuned_model_are_the_fusions(backbone_of):
    model = made(backbone_of(), base_model="fine-tuned")
    whole = answers(model, 4, 6)
    with model.as_variant(Variant(without=(4,), renormalise=False)):
        assert [state.number for state in model.fusion.live()] == [1, 2, 3]
        assert not torch.equal(answers(model, 4, 6), whole)
    assert model.as_variant(Variant(without=(9,))) is None
    single = made(backbone_of(), base_model="fine-tuned", mix="single", layer=2)
    with single.as_variant(Variant(without=(2,))):  # nothing is left to read, as over stored hidden states
        assert answers(single, 4, 6).shape == (2, 2)


def test_its_own_rate(backbone_of):
    for rate in (None, 0.25):
        groups = made(backbone_of(), base_model="fine-tuned", base_lr=rate).parameter_groups()
        assert [group.lr for group in groups] == [None, None, None, rate]
        assert groups[-1].weight_decay is None
