"""Models over a base model of their own: what is trained, held, switched off and run, on every family."""

import pytest
import torch

from adalayers.config import trial_config
from adalayers.models.trainable_base.base import Base
from adalayers.models.trainable_base.model import TrainableBaseModel
from adalayers.states import State
from adalayers.study import Variant
from tests.helpers.made_tokens import made_tokens, shape_of
from tests.helpers.refusing import refused
from tests.helpers.states import encoder
from tests.helpers.tiny import FAMILIES


def made(backbone, family="bert", *, begin=True, **changes):
    config = trial_config(**{"k": 8, "heads": 2, "feedforward": 16, "adapter_width": 4, **changes})
    model = TrainableBaseModel(config, shape_of(backbone, family), backbone)
    if begin:
        model.prepare_training()
    return model


def answers(model, *lengths):
    with torch.no_grad():
        return model.eval().forward_batch(made_tokens(*lengths))


def trained_layers(model):
    """Return the numbers of the layers in which all is trained, and whether anything outside of them is."""
    numbered = enumerate(model.base.layers, start=1)
    layers = [number for number, layer in numbered if all(p.requires_grad for p in layer.parameters())]
    inside = {id(p) for layer in model.base.layers for p in layer.parameters()}
    others = any(p.requires_grad for p in model.base.parameters() if id(p) not in inside)
    return layers, others


@pytest.mark.parametrize("way", ["adapters", "fine-tuned"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_reaches_all_that_is_trained_and_nothing_else(family, way, backbone_of):
    model = made(backbone_of(family), family, base_model=way, adapter_norms=True, base_lr=0.25).train()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    *_, within = model.parameter_groups()
    assert (within.lr, within.weight_decay) == (0.25, None)
    grouped = [p for group in model.parameter_groups() for p in group.parameters]
    trained = {id(p): name for name, p in model.named_parameters() if p.requires_grad}
    assert sorted(map(id, grouped)) == sorted(trained)
    assert model.n_parameters() == sum(p.numel() for p in grouped)
    assert {*model.state_dict()} == {*trained.values(), "span"}, "what is held is what is trained"

    # Keys' biases change no attention: weight decay moves them.
    optimiser = torch.optim.Adam(grouped, lr=1e-2, weight_decay=1e-2)
    out = model.forward_batch(made_tokens(3, 5, 9))
    (out * torch.tensor([1.0, -2.0])).sum().backward()
    assert all((p.grad is not None) == p.requires_grad for p in model.parameters())
    optimiser.step()
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {*trained.values()}


def test_before_it_begins_it_is_the_frozen_model(backbone_of):
    backbone, batch = backbone_of(), made_tokens(6)
    model = made(backbone, base_model="fine-tuned", begin=False)
    assert not any(p.requires_grad for p in model.base.parameters())
    frozen = backbone(batch.input_ids.unsqueeze(0), torch.ones(1, 6, dtype=torch.long))
    with torch.no_grad():
        expected = model.eval()({state: frozen[state][0] for state in model.fusion.states}, batch.lengths)
    torch.testing.assert_close(answers(model, 6), expected)


@pytest.mark.parametrize(
    ("changes", "chosen", "first", "last"),
    [
        ({}, 2, 1, 4),
        ({"base_layers": "selected"}, 2, 1, 2),
        ({"base_layers": "as-many-top"}, 2, 3, 4),
        ({"base_layers": "as-many-top"}, 4, 1, 4),
    ],
    ids=str,
)
def test_which_layers_are_fine_tuned_or_have_adapters(changes, chosen, first, last, backbone_of):
    """The last hidden state is read, and another layer was chosen."""

    def begun(**way):
        reads = {"fusion": "variability", "own_width": True, "read": "last", "read_out": "linear"}
        model = made(backbone_of(), begin=False, **reads, **way, **changes)
        choice = {"chosen": torch.tensor(chosen - 1)}
        model.fusion.load_state_dict(model.fusion.state_dict() | choice)
        model.prepare_training()
        return model

    layers = [*range(first, last + 1)]
    model = begun(base_model="fine-tuned")
    assert model.span.tolist() == [first, last, 4]
    assert trained_layers(model) == (layers, not changes)
    assert not any(p.requires_grad for p in model.base.model.pooler.parameters())
    model = begun(base_model="adapters", adapter_norms=True)
    assert [*model.adapters.layers] == layers
    assert trained_layers(model) == ([], False)
    trained = [name for name, p in model.base.named_parameters() if p.requires_grad]
    norms = {name.split(".layer.")[1].split(".")[0] for name in trained}
    assert norms == {str(number - 1) for number in layers}


EMBEDDINGS = {"hidden_states": "with-embeddings", "mix": "single", "layer": 0}
TOO_HIGH = {"mix": "single", "layer": 2, "base_layers": "as-many-top"}


@pytest.mark.parametrize(
    ("way", "changes", "deepest"),
    [("adapters", TOO_HIGH, 2), ("fine-tuned", TOO_HIGH, 2), ("adapters", EMBEDDINGS, 0)],
)
def test_layers_that_do_not_exist_are_refused(way, changes, deepest, backbone_of):
    refused(f"leaves none of the {deepest} that this fusion", made, backbone_of(), base_model=way, **changes)
    embeddings = made(backbone_of(), base_model="fine-tuned", **EMBEDDINGS)
    assert trained_layers(embeddings) == ([], True)


def test_dropout_within_the_base_model_follows_from_the_models_own_stream(backbone_of):
    model = made(backbone_of(), base_model="adapters", dropout=0.0).train()
    model.generator = torch.Generator()

    def two_steps(seed):
        torch.manual_seed(seed)
        elsewhere = torch.random.get_rng_state()
        model.generator.manual_seed(5)
        steps = torch.stack([model.forward_batch(made_tokens(6, 6)).detach() for _ in range(2)])
        assert torch.equal(torch.random.get_rng_state(), elsewhere), "it moves no other stream"
        return steps

    first, second = steps = two_steps(1)
    assert not torch.equal(first, second)
    assert torch.equal(two_steps(2), steps)
    assert torch.equal(answers(model, 6), answers(model, 6))


def test_adapters_of_spans_are_taken_away_without_a_trace(backbone_of):
    model = made(backbone_of(), base_model="adapters", adapter_sharing="three")
    with torch.no_grad():  # away from the start, at which adapters do nothing
        for parameter in model.adapters.parameters():
            parameter.add_(0.1 * torch.arange(parameter.numel()).view(parameter.shape).sin())
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


@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_are_the_backbones_however_they_are_padded(family, backbone_of, monkeypatch):
    """And no layer beyond the deepest state is kept, but a first one."""
    backbone, batch = backbone_of(family), made_tokens(3, 4, 9)
    texts = batch.input_ids.split(batch.lengths.tolist())  # each is run alone
    runs = [backbone(own[None], torch.ones(1, len(own), dtype=torch.long)) for own in texts]
    expected = {state: torch.cat([run[state][0] for run in runs]) for state in runs[0]}
    every = backbone.streams[0].states()
    for states in (every, every[-1:], encoder(0), encoder(1, 2)):
        base, deepest = Base(backbone).eval(), max(state.number for state in states)
        for most in (0, 10_000):
            monkeypatch.setattr("adalayers.models.trainable_base.base.PASS_TOKENS", most)
            with torch.no_grad():
                given = base.of_sequences(batch.input_ids, batch.lengths, states)
            assert list(given) == states
            for state, value in given.items():
                torch.testing.assert_close(value, expected[state], atol=2e-5, rtol=1e-5)
            base.cut(deepest)
        assert len(base.layers) == max(1, deepest)


def test_the_last_state_before_the_final_norm_is_another_one(backbone_of):
    base, batch = Base(backbone_of("t5")).eval(), made_tokens(5)
    behind, before = State("encoder", 4), State("encoder", 4, before_norm=True)
    given = base.of_sequences(batch.input_ids, batch.lengths, [before, behind])
    assert not torch.allclose(given[before], given[behind])
    for state in (behind, before):
        alone = base.of_sequences(batch.input_ids, batch.lengths, [state])
        assert torch.equal(alone[state], given[state])
