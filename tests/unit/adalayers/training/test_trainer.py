"""Training: it learns, it is deterministic, interrupted or not, and it follows the thesis's recipe."""

import dataclasses
import itertools
import math
import re
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from adalayers.config import trial_config
from adalayers.errors import Unreachable
from adalayers.features.features import Subset
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.storage.folder import Folder
from adalayers.study import Variant
from adalayers.tasks.kinds import KINDS
from adalayers.tensors import ragged
from adalayers.tensors.ragged import token_batches
from adalayers.training import members
from adalayers.training.optimisers import Stack, Trained
from adalayers.training.together import finished
from adalayers.training.trainer import CHECKPOINT, Trainer, train
from tests.helpers.interrupting import assert_same, interrupted
from tests.helpers.made_data import made_data

SMALL = {"k": 8, "heads": 2, "feedforward": 16, "batch_size": 16, "epochs": 4, "lr": 3e-3}
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: its paths are not tested here")
KINDS_OF_TASK = pytest.mark.parametrize("kind", ["sequence", "token"])


def config(**changes):
    return LayerMixConfig(**{**SMALL, **changes})


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
@KINDS_OF_TASK
def test_it_learns_and_finds_the_informative_layer(kind, device):
    settings = config(epochs=12, patience=12, alpha=8.0)
    outcome = train(settings, made_data(kind), seed=0, test=True, device=device)
    metric = {"sequence": "accuracy", "token": "f1"}[kind]
    assert outcome.row[f"val/{metric}"] > 0.7
    assert outcome.row[f"test/{metric}"] > 0.6
    assert int(outcome.model.fusion.weights().argmax()) == 1  # position of layer 2 among layers 1, 2, 3


@KINDS_OF_TASK
def test_a_seed_gives_one_run(kind):
    data = made_data(kind)
    assert_same(train(config(), data, seed=3, test=True), train(config(), data, seed=3, test=True))
    assert train(config(), data, seed=4).history != train(config(), data, seed=3).history


def test_every_epoch_drops_out_otherwise():
    own, seeds = Trainer(config(), made_data(), seed=0, device=torch.device("cpu")), set()
    finished(own.steps(lambda evaluation: seeds.add(own.generator.initial_seed())))
    assert len(seeds) == 4


def needing_memory(monkeypatch, kind, most, error, what="loss"):
    """Let a step of training, or an evaluation, of more than `most` labels fail as one that memory does not hold."""
    do = getattr(KINDS[kind], what)

    def limited(_, outputs, *labels):
        if len(outputs) > most:
            raise error
        return do(outputs, *labels)

    monkeypatch.setattr(type(KINDS[kind]), what, limited)


@pytest.mark.parametrize(
    ("kind", "most", "what", "settings"),
    [
        ("sequence", 5, "loss", {"k": 8, "entropy_weight": 1e-3}),
        ("sequence", 5, "decode", {"k": 8, "batch_size": 1}),
        ("token", 24, "loss", {"k": 8, "class_weights": "balanced"}),
        ("token", 24, "loss", {"fusion": "dwatt", "class_weights": "balanced"}),
    ],
)
def test_a_batch_beyond_memory_is_passed_in_parts(kind, most, what, settings, monkeypatch, capsys):
    own, data = trial_config(**{**SMALL, "k": 64, "dropout": 0.0, **settings}), made_data(kind)
    wanted = train(own, data, seed=3)
    needing_memory(monkeypatch, kind, most, torch.OutOfMemoryError("CUDA out of memory."), what)
    got = train(own, data, seed=3)
    assert f"it is passed {3 if what == 'decode' else 4} at a time from now on" in capsys.readouterr().err
    left, right = pd.DataFrame(wanted.history), pd.DataFrame(got.history)
    pd.testing.assert_frame_equal(left, right, rtol=1e-3, atol=1e-5)


def test_a_part_is_as_small_as_one_example_and_then_the_trial_fails(monkeypatch):
    for said, passes in (("[enforce fail] DefaultCPUAllocator: can't allocate memory", 16), ("sizes", 1)):
        alone = Trainer(config(), made_data(), seed=3, device=torch.device("cpu"))
        with monkeypatch.context() as patched:
            needing_memory(patched, "sequence", 0, RuntimeError(said))
            with pytest.raises(RuntimeError, match=re.escape(said)):
                finished(alone.steps(lambda evaluation: None))
        assert alone.passes == passes, "another error is no reason to pass less at a time"


PLATEAU = config(dropout=0.3, projection_dropout=0.2, alpha=8.0, entropy_weight=1e-3, lr_patience=1)
LINEAR = config(schedule="linear", optimiser="adamw")


@pytest.mark.parametrize(("settings", "epoch"), [(PLATEAU, 1), (PLATEAU, 3), (LINEAR, 2)])
def test_an_interrupted_run_continues_to_the_same_numbers(settings, epoch, tmp_path):
    data = made_data()
    continued = interrupted(settings, data, Folder(tmp_path), epoch=epoch, seed=1)
    assert_same(continued, train(settings, data, seed=1))


@pytest.mark.parametrize("damage", ["cut off", "a bit flipped", "of something else"])
def test_a_damaged_checkpoint_is_trained_again_to_the_same_numbers(tmp_path, capsys, damage):
    """Half of another trial's fits: what of it was taken over before the rest did not is gone too."""
    data, work, settings = made_data(), Folder(tmp_path), config(dropout=0.3)
    whole = train(settings, data, seed=1, checkpoint=work)
    if damage == "of something else":
        work.delete(CHECKPOINT)
        train(config(k=4), data, seed=2, checkpoint=work)
    else:
        left = bytearray(work.read_bytes(CHECKPOINT))
        left[len(left) // 3] ^= 1  # of its numbers: torch reads them as if nothing were
        work.write_bytes(CHECKPOINT, bytes(left if damage == "a bit flipped" else left[: len(left) // 2]))
    again = []
    assert_same(train(settings, data, seed=1, on_evaluation=again.append, checkpoint=work), whole)
    assert again[0].metrics["epoch"] == 1
    assert f"{CHECKPOINT} in {tmp_path} could not be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [Unreachable("no answer within 15 s"), RuntimeError("can't allocate memory")]
)
def test_a_checkpoint_that_cannot_be_had_just_now_is_kept(tmp_path, monkeypatch, error):
    data, work, settings = made_data(), Folder(tmp_path), config()
    train(settings, data, seed=1, checkpoint=work)
    monkeypatch.setattr("adalayers.training.trainer.Trainer.restore", mock.Mock(side_effect=error))
    with pytest.raises(type(error)):
        train(settings, data, seed=1, checkpoint=work)
    assert work.exists(CHECKPOINT)


def test_the_best_epoch_is_kept_and_the_learning_rate_halved_on_a_plateau():
    outcome = train(config(epochs=30, patience=4, lr_patience=2, lr=3e-2), made_data(), seed=0)
    scores = {row["epoch"]: row["val/accuracy"] for row in outcome.history if "val/accuracy" in row}
    best = max(scores, key=lambda epoch: (scores[epoch], -epoch))
    assert outcome.row["best_epoch"] == best
    assert outcome.row["val/accuracy"] == scores[best]
    assert outcome.row["epochs"] == max(scores) == best + 4 < 30
    rates = [row["lr"] / 3e-2 for row in outcome.history if row["epoch"] > best and "val/accuracy" in row]
    assert rates == pytest.approx([1, 1, 0.5, 0.5])


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("optimiser", ["adam", "adamw"])
def test_a_step_is_that_of_torchs_optimiser(optimiser, gpu, monkeypatch):
    """Of three trials at their own rates, p without weight decay; one leaves a parameter out of two steps."""
    monkeypatch.setattr(ragged, "on_gpu", mock.Mock(return_value=gpu))
    torch.manual_seed(0)
    shape, trials, theirs = made_data().shape, [], []
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimiser]
    for lr in (1e-2, 3e-3, 1e-3):
        settings = config(lr=lr, weight_decay=0.1, mix_lr=5 * lr, optimiser=optimiser)
        trials.append(Trained(settings, FusionModel(settings, shape)))
        head, projections, p = FusionModel(settings, shape).parameter_groups()
        groups = [{"params": [*group.parameters], "lr": lr, "start": lr} for group in (head, projections)]
        groups.append({"params": p.parameters, "lr": 5 * lr, "start": 5 * lr, "weight_decay": 0})
        theirs.append(kind(groups, weight_decay=0.1))
    copies = [[p for group in torchs.param_groups for p in group["params"]] for torchs in theirs]
    stack, of_head = Stack(trials), trials[0].groups[0][0]
    sizes = [parameter.numel() for parameter in trials[0].parameters[:of_head]]
    for step in range(5):
        head, projections, p = gradients = [torch.randn_like(values) for values in stack.values]
        factors, used = [1.0, 0.5, 1.0], torch.ones(projections.shape[:2])
        if step in (2, 3):
            used[1, 0] = projections[1, 0] = 0
        for m, torchs in enumerate(theirs):
            own = [*head[m, 0].split(sizes), *projections[m], p[m]]
            for parameter, gradient in zip(copies[m], own, strict=True):
                parameter.grad = gradient.view(parameter.shape).clone()
            if not used[m, 0]:
                copies[m][of_head].grad = None
            for group in torchs.param_groups:
                group["lr"] = group["start"] * factors[m]
            torchs.step()
        with torch.no_grad():
            stack.step(gradients, factors, None if step == 0 else used)
    for trial, own in zip(trials, copies, strict=True):
        torch.testing.assert_close(trial.parameters, own, rtol=1e-5, atol=1e-6)


def test_a_linear_schedule_warms_up_and_ends_at_zero_whatever_the_patience():
    settings = config(schedule="linear", warmup=0.25, batch_size=12, epochs=4, lr=1e-9, patience=1)
    outcome = train(settings, made_data(), seed=0)
    rates = {row["step"]: row["lr"] / 1e-9 for row in outcome.history}  # the rate of the step that comes next
    assert rates[0] == pytest.approx(1 / 8)  # 32 steps, of which 8 rise
    assert max(rates.values()) == rates[7] == pytest.approx(1)
    assert rates[8] == pytest.approx(24 / 25)
    assert rates[32] == 0
    assert "patience" in settings.unused(made_data().shape)


def test_an_evaluation_may_follow_several_epochs():
    """Patience counts evaluations, and the last epochs are evaluated however few they are."""
    outcome = train(config(epochs=7, evaluate_every=3), made_data(), seed=0)
    assert [row["epoch"] for row in outcome.history if "val/accuracy" in row] == [3.0, 6.0, 7.0]
    stopped = train(config(epochs=30, evaluate_every=3, patience=1, lr=1e-9), made_data(), seed=0)
    assert stopped.row["epochs"] == 6


def test_variants_are_scored_on_validation_and_not_on_test():
    variants = [Variant(without=(2,)), Variant(without=(1, 3)), Variant(cutoff=1e-9)]
    settings = config(epochs=8, patience=8, alpha=8.0)
    outcome = train(settings, made_data(), seed=0, test=True, variants=variants)
    assert set(outcome.evaluations["split"]) == {"val"}
    without, alone, uncut = outcome.evaluations["value"]
    assert without < 0.7 < alone, "what is learned lies in layer 2"
    assert uncut == outcome.row["val/accuracy"], "no weight is as small: means are of all seeds, cut or not"


def test_a_trial_trains_on_its_own_draw_of_the_pool():
    data = made_data()
    small = train(config(train_examples=24), data, seed=0)
    assert small.history == train(config(train_examples=24, draw=0), data, seed=0).history
    assert small.history != train(config(train_examples=24, draw=1), data, seed=0).history
    assert small.history[-1]["step"] == 4 * 2  # 24 examples in batches of 16


def test_entropy_regularisation_lowers_the_entropy_and_a_cutoff_after_training_scores_the_cut_model():
    def trained(**changes):
        return train(config(epochs=6, **changes), made_data(), seed=0)

    plain, pushed = trained(alpha=8.0), trained(alpha=8.0, entropy_weight=1.0)
    assert pushed.row["mix/entropy"] < plain.row["mix/entropy"] < math.log(3)
    uncut, cut = trained(alpha=64.0), trained(alpha=64.0, cutoff=0.3, cutoff_when="after-training")
    assert cut.history == uncut.history  # training itself saw no cutoff
    assert cut.row["mix/live_layers"] < uncut.row["mix/live_layers"] == 3


def test_class_weights_are_those_of_what_is_trained_on():
    settings = config(class_weights="balanced", train_examples=24)
    balanced = Trainer(settings, made_data("token"), seed=0, device=torch.device("cpu"))
    train_split = balanced.data.splits["train"]
    counts = np.bincount(train_split.labels[train_split.items(train_split.trainable)[0]])
    np.testing.assert_allclose(balanced.class_weights * counts, counts.sum() / 3, rtol=1e-5)


@KINDS_OF_TASK
def test_batches_of_an_evaluation_are_bounded_by_tokens_and_change_no_prediction(kind, monkeypatch):
    data, batches = made_data(kind), mock.Mock(wraps=token_batches)
    whole = train(config(epochs=1), data, seed=0, test=True)
    monkeypatch.setattr(members, "EVALUATION_TOKENS", 20)
    monkeypatch.setattr(members, "token_batches", batches)
    bounded = train(config(epochs=1), data, seed=0, test=True)
    for call in batches.call_args_list:
        lengths, _ = call.args
        sizes = [len(batch) * lengths[batch].max() for batch in token_batches(*call.args)]
        assert len(sizes) > 1
        assert max(sizes) <= 20
    pd.testing.assert_frame_equal(bounded.predictions, whole.predictions, rtol=1e-4)
    assert bounded.history == whole.history


@pytest.mark.parametrize("every", [1, 2])
def test_words_lost_to_truncation_count_as_o(every):
    data = made_data("token")
    split = data.splits["validation"]
    split.word_places[::every] = -1
    data.splits["validation"] = dataclasses.replace(split, index=split.index * 2)  # of a part of the source
    outcome = train(config(), data, seed=0, test=True)
    assert outcome.predictions.query("split == 'val'")["index"].tolist() == [*range(0, 96, 2)]
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
    assert split.trainable.tolist() == np.flatnonzero(~empty).tolist()
    kept = split.subset(split.trainable, Subset(split.features, split.trainable))
    without = dataclasses.replace(data, splits={**data.splits, "train": kept})
    assert_same(outcome, train(config(batch_size=4), without, seed=0, test=True))
