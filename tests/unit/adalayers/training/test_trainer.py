"""Training: it learns, it is deterministic, interrupted or not, and it follows the thesis's recipe."""

import dataclasses
import itertools
import math
from typing import ClassVar
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from ray import tune

from adalayers.config import trial_config
from adalayers.data.trial_data import SplitData
from adalayers.features.features import Subset
from adalayers.fusion.layer_mix import LayerMix, LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.models.several import FusionModels
from adalayers.request import Resources
from adalayers.results.record import PROGRESS
from adalayers.storage.folder import Folder
from adalayers.study import Variant
from adalayers.tensors import ragged
from adalayers.training import members, trainer
from adalayers.training.evaluation import evaluate
from adalayers.training.optimisers import Stack, Trained
from adalayers.training.together import finished
from adalayers.training.trainer import CHECKPOINT, Diverged, Trainer, train
from adalayers.tuning.job import TrialJob
from adalayers.tuning.trainable import run_in_study
from tests.helpers.interrupting import assert_same, interrupted
from tests.helpers.made_data import made_data

SMALL = {"k": 8, "heads": 2, "feedforward": 16, "batch_size": 16, "epochs": 4, "lr": 3e-3}


def config(**changes):
    return LayerMixConfig(**{**SMALL, **changes})


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_it_learns_and_finds_the_informative_layer(kind):
    data = made_data(kind)
    outcome = train(config(epochs=12, patience=12, alpha=8.0), data, seed=0, test=True)
    metric = {"sequence": "accuracy", "token": "f1"}[kind]
    assert outcome.row[f"val/{metric}"] > 0.7
    assert outcome.row[f"test/{metric}"] > 0.6
    weights = outcome.model.fusion.weights().tolist()
    assert int(np.argmax(weights)) == 1  # position of layer 2 among layers 1, 2, 3
    uninformed = train(config(epochs=12, patience=12, mix="last"), data, seed=0)
    assert uninformed.row[f"val/{metric}"] < 0.6


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_a_seed_gives_one_run(kind):
    data = made_data(kind)
    assert_same(train(config(), data, seed=3, test=True), train(config(), data, seed=3, test=True))
    assert train(config(), data, seed=4).history != train(config(), data, seed=3).history


def test_a_trial_is_the_same_alone_and_after_others_in_one_process(tmp_path):
    """Workers are reused: whatever a trial draws, sets or breaks, the next one does not see it."""
    data = made_data()

    def run(name, **changes):
        work = Folder(tmp_path / name)
        if name == "diverges":
            work.write_bytes(PROGRESS, b"null")  # damage, which is replaced
        settings = config(**changes)
        job = TrialJob(trial_id=name, stage="confirm", arm="", seed=3, config=settings, work=work.uri)
        run_in_study([job], data, Resources(), lambda: None)
        note = work.read_sealed(PROGRESS)
        note["row"].pop("seconds", None)
        return note

    reports, threads = tune.report, torch.get_num_threads()
    try:
        tune.report = lambda metrics: None
        alone = run("alone", dropout=0.3)
        assert run("diverges", lr=1e30)["status"] == "diverged"
        with mock.patch.object(trainer, "build_model", side_effect=MemoryError("no memory holds it")):
            assert run("fails")["error"] == "MemoryError: no memory holds it"
        torch.set_num_threads(2)
        torch.rand(1000)
        run("other", dropout=0.5, alpha=64.0, heads=1)
        assert run("again", dropout=0.3) == alone
    finally:
        tune.report = reports
        torch.set_num_threads(threads)


def needing_memory(monkeypatch, most, error):
    """Let a forward pass of training over more than `most` examples fail as one that memory does not hold."""
    whole, several = members.outputs, FusionModels.forward

    def outputs(model, batch):
        if model.training and len(batch.lengths) > most:
            raise error
        return whole(model, batch)

    def forward(model, values, batches):
        if batches.training and sum(n for n, _ in batches.groups) > most:
            raise error
        return several(model, values, batches)

    monkeypatch.setattr(members, "outputs", outputs)
    monkeypatch.setattr(FusionModels, "forward", forward)


@pytest.mark.parametrize("class_weights", ["none", "balanced"])
@pytest.mark.parametrize(
    ("kind", "fusion"), [("sequence", "layer-mix"), ("token", "layer-mix"), ("token", "dwatt")]
)
def test_a_batch_beyond_memory_is_passed_in_parts_to_the_same_numbers(
    kind, fusion, class_weights, monkeypatch, capsys
):
    data = made_data(kind)
    own = {"entropy_weight": 1e-3, "k": 8} if fusion == "layer-mix" else {"heads": 2}
    shared = {**{name: value for name, value in SMALL.items() if name != "k"}, "dropout": 0.0}
    settings = trial_config(fusion=fusion, **{**shared, **own}, class_weights=class_weights)
    wanted = train(settings, data, seed=3)
    needing_memory(monkeypatch, 5, torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    got = train(settings, data, seed=3)
    assert "it is passed 4 at a time from now on" in capsys.readouterr().err
    left, right = pd.DataFrame(wanted.history), pd.DataFrame(got.history)
    pd.testing.assert_frame_equal(left, right, rtol=1e-3, atol=1e-5)


def test_a_part_is_as_small_as_one_example_and_then_the_trial_fails(monkeypatch, tmp_path):
    error = RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
    needing_memory(monkeypatch, 0, error)
    with pytest.raises(RuntimeError, match="can't allocate"):
        train(config(), made_data(), seed=3)
    needing_memory(monkeypatch, 0, RuntimeError("sizes do not match"))
    alone = Trainer(config(), made_data(), seed=3, device=torch.device("cpu"))
    with pytest.raises(RuntimeError, match="sizes"):
        finished(alone.steps(lambda evaluation: None))
    assert alone.passes == 1, "another error is no reason to pass less at a time"


PLATEAU = config(dropout=0.3, projection_dropout=0.2, alpha=8.0, entropy_weight=1e-3, lr_patience=1)
LINEAR = config(schedule="linear", optimiser="adamw")


@pytest.mark.parametrize(("settings", "epoch"), [(PLATEAU, 1), (PLATEAU, 2), (PLATEAU, 3), (LINEAR, 2)])
def test_an_interrupted_run_continues_to_the_same_numbers(settings, epoch, tmp_path):
    data = made_data()
    continued = interrupted(settings, data, Folder(tmp_path), epoch=epoch, seed=1)
    assert_same(continued, train(settings, data, seed=1))


def flipped(data):
    """Return a checkpoint with one bit of its numbers flipped, which torch reads as if nothing were."""
    at = len(data) // 3
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"\0" * 99, flipped]
)
def test_a_damaged_checkpoint_is_trained_again_to_the_same_numbers(tmp_path, capsys, damage):
    data, work = made_data(), Folder(tmp_path)
    whole = train(config(dropout=0.3), data, seed=1, checkpoint=work)
    work.write_bytes(CHECKPOINT, damage(work.read_bytes(CHECKPOINT)))
    again = []
    assert_same(train(config(dropout=0.3), data, seed=1, on_evaluation=again.append, checkpoint=work), whole)
    assert again[0].metrics["epoch"] == 1
    assert f"{CHECKPOINT} in {tmp_path} could not be read" in capsys.readouterr().err


def test_a_checkpoint_of_something_else_is_trained_again(tmp_path):
    """Half of it fits: what of it was taken over before the rest did not is gone too."""
    data, work = made_data(), Folder(tmp_path)
    train(config(k=4), data, seed=2, checkpoint=work)
    assert_same(train(config(), data, seed=1, checkpoint=work), train(config(), data, seed=1))


def test_the_best_epoch_is_kept_and_the_rest_counted():
    outcome = train(config(epochs=30, patience=2, lr=3e-2), made_data(), seed=0)
    scores = {row["epoch"]: row["val/accuracy"] for row in outcome.history if "val/accuracy" in row}
    best = max(scores, key=lambda epoch: (scores[epoch], -epoch))
    assert outcome.row["best_epoch"] == best
    assert outcome.row["val/accuracy"] == scores[best]
    assert outcome.row["epochs"] == max(scores) == best + 2 < 30


def test_the_learning_rate_is_halved_on_a_plateau():
    outcome = train(config(epochs=30, patience=4, lr_patience=1, lr=3e-2), made_data(), seed=0)
    rates = sorted({row["lr"] for row in outcome.history}, reverse=True)
    assert len(rates) > 1
    assert all(b == pytest.approx(a / 2) for a, b in itertools.pairwise(rates))


def test_no_weight_decay_on_p_and_its_own_learning_rate():
    settings = config(mix_lr=0.5, weight_decay=0.1)
    model = FusionModel(settings, made_data().shape)
    trained = Trained(settings, model)
    assert {(lr, decay) for _, lr, decay in trained.groups[:-1]} == {(3e-3, 0.1)}
    assert trained.groups[-1] == (1, 0.5, 0.0)
    assert trained.parameters[-1] is model.fusion.p
    assert len(trained.parameters) == sum(n for n, *_ in trained.groups) == len(list(model.parameters()))


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("optimiser", ["adam", "adamw"])
def test_a_step_is_that_of_torchs_optimiser(optimiser, gpu, monkeypatch):
    """Of three trials at their own rates; one leaves a parameter out of two steps, as torch does without a gradient."""
    monkeypatch.setattr(ragged, "on_gpu", mock.Mock(return_value=gpu))
    torch.manual_seed(0)
    shape, rates, trials, theirs = made_data().shape, (1e-2, 3e-3, 1e-3), [], []
    for lr in rates:
        settings = config(lr=lr, weight_decay=0.1, mix_lr=5 * lr, optimiser=optimiser)
        trials.append(Trained(settings, FusionModel(settings, shape)))
        copies = [parameter.detach().clone() for parameter in trials[-1].parameters]
        groups, rest = [], iter(copies)
        for n, rate, decay in trials[-1].groups:
            groups.append({"params": list(itertools.islice(rest, n)), "lr": rate, "weight_decay": decay})
        theirs.append((copies, {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimiser](groups)))
    stack, (of_head, *_) = Stack(trials), [n for n, *_ in trials[0].groups]
    sizes = [parameter.numel() for parameter in trials[0].parameters[:of_head]]
    for step in range(5):
        head, projections, p = gradients = [torch.randn_like(values) for values in stack.values]
        factors, used = [1.0, 0.5, 1.0], torch.ones(projections.shape[:2])
        if step in (2, 3):
            used[1, 0] = projections[1, 0] = 0
        for m, (copies, torchs) in enumerate(theirs):
            own = [*head[m, 0].split(sizes), *projections[m], p[m]]
            for parameter, gradient in zip(copies, own, strict=True):
                parameter.grad = gradient.view(parameter.shape).clone()
            if not used[m, 0]:
                copies[of_head].grad = None
            for group, (_, rate, _) in zip(torchs.param_groups, trials[m].groups, strict=True):
                group["lr"] = rate * factors[m]
            torchs.step()
        with torch.no_grad():
            stack.step(gradients, factors, None if step == 0 else used)
    for trial, (copies, _) in zip(trials, theirs, strict=True):
        for ours, parameter in zip(trial.parameters, copies, strict=True):
            torch.testing.assert_close(ours.detach(), parameter, rtol=1e-5, atol=1e-6)


def test_a_linear_schedule_warms_up_and_ends_at_zero():
    settings = config(schedule="linear", warmup=0.25, optimiser="adamw", batch_size=12, epochs=4)
    outcome = train(settings, made_data(), seed=0)
    rates = {row["step"]: row["lr"] / 3e-3 for row in outcome.history}  # the rate of the step that comes next
    assert rates[0] == pytest.approx(1 / 8)  # 32 steps, of which 8 rise
    assert max(rates.values()) == rates[7] == pytest.approx(1)
    assert rates[8] == pytest.approx(24 / 25)
    assert rates[32] == 0


def test_patience_never_ends_a_linear_decay():
    decaying = config(schedule="linear", epochs=6, patience=1, lr=1e-9)
    outcome = train(decaying, made_data(), seed=0)
    assert outcome.row["epochs"] == 6
    assert "patience" in decaying.unused(made_data().shape)


def test_an_evaluation_may_follow_several_epochs():
    """Patience counts evaluations, and the last epochs are evaluated however few they are."""
    outcome = train(config(epochs=7, evaluate_every=3), made_data(), seed=0)
    assert [row["epoch"] for row in outcome.history if "val/accuracy" in row] == [3.0, 6.0, 7.0]
    stopped = train(config(epochs=30, evaluate_every=3, patience=1, lr=1e-9), made_data(), seed=0)
    assert stopped.row["epochs"] == 6


def test_variants_are_scored_on_validation_and_not_on_test():
    variants = [Variant(without=(2,)), Variant(without=(1, 3))]
    settings = config(epochs=8, patience=8, alpha=8.0)
    outcome = train(settings, made_data(), seed=0, test=True, variants=variants)
    assert set(outcome.evaluations["split"]) == {"val"}
    without, alone = outcome.evaluations["value"]
    assert without < 0.7 < alone, "what is learned lies in layer 2"


def test_a_trial_trains_on_its_own_draw_of_the_pool():
    data = made_data()
    small = train(config(train_examples=24), data, seed=0)
    assert small.history == train(config(train_examples=24, draw=0), data, seed=0).history
    assert small.history != train(config(train_examples=24, draw=1), data, seed=0).history
    assert small.history[-1]["step"] == 4 * 2  # 24 examples in batches of 16


class Refitting(LayerMix):
    """Looks at the data before training, and trains once more with its last state taken away."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("refitted", torch.zeros(()))

    def fit(self, batches):
        for batch in batches:
            assert set(batch.states) == set(self.states)
            self.seen += len(batch.labels)

    def refit(self):
        self.refitted += 1
        return self.refitted == 1


@dataclasses.dataclass(frozen=True)
class RefittingConfig(LayerMixConfig):
    fusion: ClassVar[str] = "test-refitting"

    def build(self, shape):
        return Refitting(self, shape)


def test_a_fusion_may_look_at_the_data_and_train_again_interrupted_or_not(tmp_path):
    data = made_data()
    settings = RefittingConfig(**SMALL)
    whole = train(settings, data, seed=0, test=True)
    assert float(whole.model.fusion.seen) == len(data.splits["train"])
    assert [row["epoch"] for row in whole.history if "train/loss" in row] == list(range(1, 9))
    assert whole.row["best_epoch"] > 4
    assert "test/accuracy" in whole.row
    assert_same(interrupted(settings, data, Folder(tmp_path), epoch=7, test=True), whole)


def test_frozen_projections_stay_at_their_start():
    data = made_data()
    frozen = train(config(mix="uniform", train_projections=False), data, seed=0)
    start = FusionModel(config(mix="uniform"), data.shape, seed=0)
    for a, b in zip(frozen.model.fusion.projections, start.fusion.projections, strict=True):
        assert torch.equal(a.weight, b.weight)
    assert frozen.row["parameters"] == sum(p.numel() for p in start.head.parameters())


def test_entropy_regularisation_lowers_the_entropy():
    data = made_data()
    plain = train(config(alpha=8.0, epochs=6), data, seed=0).row["mix/entropy"]
    pushed = train(config(alpha=8.0, epochs=6, entropy_weight=1.0), data, seed=0).row["mix/entropy"]
    assert pushed < plain < math.log(3)


def test_a_cutoff_after_training_scores_the_cut_model():
    data = made_data()
    settings = config(alpha=64.0, epochs=6, cutoff=0.3, cutoff_when="after-training")
    outcome = train(settings, data, seed=0)
    assert outcome.row["mix/live_layers"] < 3
    uncut = train(config(alpha=64.0, epochs=6), data, seed=0)
    assert [row["epoch"] for row in outcome.history] == [row["epoch"] for row in uncut.history]
    assert outcome.history == uncut.history  # training itself saw no cutoff


def test_class_weights_are_those_of_what_is_trained_on():
    data = made_data("token")
    balanced = Trainer(config(class_weights="balanced"), data, seed=0, device=torch.device("cpu"))
    counts = np.bincount(data.splits["train"].labels)
    np.testing.assert_allclose(balanced.class_weights * counts, counts.sum() / 3, rtol=1e-5)


def test_divergence_is_said_not_scored():
    data = made_data()
    data.splits["train"].features._states[1][:] = np.nan
    with pytest.raises(Diverged, match="epoch 1"):
        train(config(), data, seed=0)


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_batches_of_an_evaluation_are_bounded_by_tokens_and_change_no_prediction(kind, monkeypatch):
    data, sizes, items = made_data(kind), [], SplitData.items
    model = train(config(epochs=1), data, seed=0).model

    def noted(self, examples):
        sizes.append(len(examples) * int(self.features.lengths[examples].max()))
        return items(self, examples)

    alone = Trainer(config(), data, seed=0, device=torch.device("cpu"))
    alone.model.load_state_dict(model.state_dict())

    def evaluated():
        return finished(evaluate(alone, "validation", 1, with_rows=True))

    scores, predictions = evaluated()
    monkeypatch.setattr(SplitData, "items", noted)
    monkeypatch.setattr(members, "EVALUATION_TOKENS", 20)
    bounded, same_predictions = evaluated()
    assert len(sizes) > 1
    assert max(sizes) <= 20
    assert bounded == scores
    pd.testing.assert_frame_equal(same_predictions, predictions, rtol=1e-4)


@pytest.mark.parametrize("every", [1, 2])
def test_words_lost_to_truncation_count_as_o(every):
    data = made_data("token")
    split = data.splits["validation"]
    split.word_places[::every] = -1
    outcome = train(config(), data, seed=0, test=True)
    words = [*itertools.chain.from_iterable(outcome.predictions.query("split == 'val'")["prediction"])]
    assert len(words) == len(split.labels)
    assert set(words[::every]) == {"O"}


def test_sentences_without_labelled_words_do_not_take_part_in_training():
    """Eight of ten are empty, so that batches of them alone would be met; without them it is the same training."""
    data = made_data("token")
    split = data.splits["train"]
    empty = np.arange(len(split)) % 10 < 8
    split.word_places[np.repeat(empty, np.diff(split.word_offsets))] = -1
    outcome = train(config(batch_size=4), data, seed=0, test=True)
    assert all(math.isfinite(row["train/loss"]) for row in outcome.history if "train/loss" in row)
    assert split.trainable.tolist() == np.flatnonzero(~empty).tolist()
    kept = split.subset(split.trainable, Subset(split.features, split.trainable))
    without = dataclasses.replace(data, splits={**data.splits, "train": kept})
    assert_same(outcome, train(config(batch_size=4), without, seed=0, test=True))
