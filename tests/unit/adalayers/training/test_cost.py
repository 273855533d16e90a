"""What a trained model is computed to cost, against counts by hand."""

import dataclasses

import pytest
import torch

from adalayers.config import trial_config
from adalayers.models.model import BaseUse, FusionModel
from adalayers.states import Stream
from adalayers.training.cost import cost, operations
from adalayers.training.together import finished
from adalayers.training.trainer import Trainer
from tests.helpers.made_data import made_data
from tests.helpers.states import made_shape

LAYERS, WIDTH, K = 4, 12, 8
PER_LAYER = 1000


def model_of(kind=FusionModel, **config):
    return kind(trial_config(**{"k": K, "heads": 2, **config}), made_shape("sequence", 3, LAYERS, WIDTH))


@pytest.fixture
def data():
    return dataclasses.replace(made_data(), layer_parameters=PER_LAYER)


def tokens(data):
    """Tokens of train and of validation."""
    return [int(data.splits[name].features.lengths.sum()) for name in ("train", "validation")]


def test_products_are_counted_as_by_hand_and_leave_no_trace(data):
    model = model_of().train()
    length = round(float(data.splits["train"].features.lengths.mean()))
    project = LAYERS * K * WIDTH
    attention = 4 * K * K + 2 * length * K  # query, key, value, output; scores, what they weigh
    mix = LAYERS * K
    classify = 3 * K / length  # once per text
    found = operations(model, data)
    assert found.forward == pytest.approx(2 * (project + mix + attention + classify))
    # Nothing is passed back into frozen hidden states: their projections take one product backwards, the rest two.
    assert found.training == pytest.approx(2 * (2 * project + 3 * (mix + attention + classify)), rel=0.02)
    assert all(parameter.grad is None for parameter in model.parameters())
    attended = operations(model_of(fusion="layer-attention", own_width=True, read_out="linear"), data).forward
    # Twice the sum's products: keys by w, and what they weigh.
    assert attended == pytest.approx(2 * (2 * LAYERS * WIDTH + 3 * WIDTH / length))
    routing = model_of(fusion="routing").train()
    operations(routing, data)
    assert routing.fusion.diagnostics() == {}


def test_a_frozen_base_model_is_passed_once_and_its_task_adds_its_own_operations(data):
    model, (train, validation) = model_of(), tokens(data)
    head = sum(p.numel() for p in model.head.parameters())
    of = operations(model, data)
    epoch = of.of_epoch(data, evaluated=True)
    assert epoch == pytest.approx(of.training * train + of.forward * validation)
    found = cost(model, data, epochs=3 * epoch, read_to=LAYERS)
    assert found == {
        "cost/weights": LAYERS * (K * WIDTH + 1) + head,
        "cost/kept": K,
        "cost/layers": LAYERS,
        "cost/training": pytest.approx(2 * LAYERS * PER_LAYER * (train + validation) + 3 * epoch),
        "cost/use": pytest.approx(1e-6 * of.forward),
    }
    # Layers above the last one read cost nothing; where the size of a layer is not known, operations are left out.
    low = cost(model_of(mix="single", layer=2), made_data(), epochs=0.0, read_to=2)
    assert low == {"cost/weights": K * WIDTH + 1 + head, "cost/kept": K, "cost/layers": 2}


class Changed(FusionModel):
    """A model that says of its base model what a test wants."""

    def base_use(self):
        trained = 2 * PER_LAYER
        return BaseUse(4, own_pass=True, through=2, trained=trained, adapters=10, changed=trained + 10)


def test_a_base_model_that_is_trained_is_passed_in_every_epoch(data):
    model, (train, validation) = model_of(kind=Changed), tokens(data)
    forwards = 2 * (4 * PER_LAYER + 10)
    backwards = 2 * (2 * PER_LAYER + 2 * PER_LAYER + 2 * 10)
    frozen, changed = (operations(each, data) for each in (model_of(), model))
    assert changed.forward == frozen.forward + forwards
    epoch = changed.of_epoch(data, evaluated=True)
    assert epoch == pytest.approx(changed.training * train + changed.forward * validation)
    found = cost(model, data, epochs=2 * epoch, read_to=3)
    assert found["cost/training"] == 2 * epoch + 2 * 3 * PER_LAYER * train  # looked at before it was trained
    assert found["cost/weights"] == model.weights_at_use() + 2 * PER_LAYER + 10
    assert found["cost/use"] == pytest.approx(1e-6 * changed.forward)
    # Gradients pass through the projections and the mix too.
    more = changed.training - frozen.training - forwards - backwards
    assert more == pytest.approx(2 * LAYERS * K * WIDTH, rel=0.2)


def trained(data, **config):
    config = trial_config(**{"epochs": 2, "batch_size": 4, **config})
    trainer = Trainer(config, data, seed=0, device=torch.device("cpu"))
    return trainer, finished(trainer.steps(lambda evaluation: None)).row


def test_states_that_are_looked_at_before_or_in_a_first_round_are_paid_for(data):
    layers = data.shape.streams[0].layers
    chosen, row = trained(data, fusion="variability", k=K)
    once = 2 * layers * PER_LAYER * sum(tokens(data))
    assert row["cost/training"] == pytest.approx(once + chosen.progress.operations)
    twice, _ = trained(data, fusion="head2toe", fraction=0.01)
    assert chosen.progress.read_to == twice.progress.read_to == layers
    last = operations(twice.model, data).of_epoch(data, evaluated=True)
    assert twice.progress.operations > twice.progress.epoch * last  # the first round read more


def test_states_of_a_decoder_are_paid_for_with_its_encoder_and_validation_where_it_is_scored(data):
    """Of three epochs with two evaluations, after the second and the third."""
    layers = data.shape.streams[0].layers
    streams = (Stream("encoder", layers), Stream("decoder", layers))
    both = dataclasses.replace(data, shape=dataclasses.replace(data.shape, streams=streams))
    trainer, _ = trained(both, stream="decoder", epochs=3, evaluate_every=2, k=K, heads=2)
    assert trainer.progress.read_to == 2 * layers
    of, (train, validation) = operations(trainer.model, both), tokens(both)
    wanted = 3 * of.training * train + 2 * of.forward * validation
    assert trainer.progress.operations == pytest.approx(wanted)
