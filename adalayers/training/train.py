"""Training of one trial: a plain loop, the thesis's recipe (section 5.4.1), no Ray and no MLflow.

Adam without weight decay on p, both learning rates halved on a plateau of the validation score, early
stopping, and the checkpoint with the best validation score is what is kept and tested. Every random draw
follows from (seed, epoch), so a run that was interrupted and continued gives the numbers of one that was not.
"""

from __future__ import annotations

import copy
import io
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from adalayers.config import TrialConfig
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.model.model import FusionModel
from adalayers.ragged import token_batches
from adalayers.results.folder import Folder

CHECKPOINT = "checkpoint.pt"
CHECKPOINT_SHARE = 0.05
"""Most of the time that may go into writing checkpoints."""
WEIGHTS_PER_EPOCH = 10
"""Mix weights are noted about this often between two evaluations."""
EVALUATION_TOKENS = 2048
"""Tokens, padding included, of one batch of an evaluation: about as many as in a training step, so about its memory."""


class Diverged(Exception):
    """The training loss stopped being finite."""


@dataclass(frozen=True)
class Evaluation:
    """What is known after an evaluation on validation.

    metrics: of this evaluation: epoch, step, lr, train/loss, val/*, mix/entropy, mix/live_layers, and `best`,
             the highest validation score so far
    row:     the trial's columns of `trials.csv` so far, as of the best epoch
    history: all rows of `history.parquet` so far
    last:    whether training ends here by itself
    """

    metrics: dict[str, float]
    row: dict[str, Any]
    history: list[dict[str, float]]
    last: bool


@dataclass(frozen=True)
class Outcome:
    """A trial that ended by itself.

    row:         its columns of `trials.csv`, `val/*` and, if asked for, `test/*` of the best model
    history:     its rows of `history.parquet`
    predictions: its rows of `predictions.parquet` (empty unless the test was asked for)
    model:       the best model on validation
    """

    row: dict[str, Any]
    history: list[dict[str, float]]
    predictions: pd.DataFrame
    model: FusionModel


@dataclass
class _State:
    """What a checkpoint holds beside model, optimiser and scheduler."""

    epoch: int = 0
    step: int = 0
    stale: int = 0
    seconds: float = 0.0
    row: dict[str, Any] = field(default_factory=dict)
    best: float = -math.inf
    best_model: dict[str, Tensor] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    config: TrialConfig,
    data: TrialData,
    *,
    seed: int,
    test: bool = False,
    device: str | torch.device = "cpu",
    on_evaluation: Callable[[Evaluation], None] = lambda evaluation: None,
    checkpoint: Folder | None = None,
) -> Outcome:
    """Train one configuration and return its best model on validation with its scores.

    test:          also score the test split, once, with the best model, and return predictions
    on_evaluation: called after each epoch's evaluation; what it raises ends the training
    checkpoint:    folder to continue from, and to leave a checkpoint in

    Raises `Diverged` when the training loss stops being finite.
    """
    device = torch.device(device)
    torch.manual_seed(seed)  # the same start for all arms of a seed: only the mix differs between them
    model = FusionModel(config, data.shape).to(device)
    optimiser = _optimiser(config, model)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, mode="max", factor=0.5, patience=config.lr_patience, threshold=0.0
    )
    state = _restore(checkpoint, model, optimiser, plateau, device)
    class_weights = _class_weights(config, data, device)
    selection = f"val/{data.metric}"
    started, written = time.monotonic() - state.seconds, 0.0
    if state.epoch == 0:
        state.history.append(_point(model, optimiser, 0, 0.0))
    while state.epoch < config.epochs and state.stale < config.patience:
        state.epoch += 1
        loss = _train_epoch(
            model, optimiser, data.splits["train"], config, class_weights, seed, state, device
        )
        if not math.isfinite(loss):
            raise Diverged(f"the training loss is {loss} in epoch {state.epoch}")
        scores, _ = evaluate(model, data, "validation", device)
        point = _point(model, optimiser, state.step, state.epoch) | {"train/loss": loss} | scores
        state.history.append(point)
        state.stale += 1
        if scores[selection] > state.best:
            state.best, state.stale = scores[selection], 0
            state.best_model = copy.deepcopy(model.state_dict())
            state.row = {"best_epoch": state.epoch, **scores, **_mix_summary(model)}
        plateau.step(scores[selection])
        state.seconds = time.monotonic() - started
        last = state.epoch == config.epochs or state.stale >= config.patience
        row = {
            "epochs": state.epoch,
            **state.row,
            "parameters": model.n_parameters(),
            "seconds": state.seconds,
        }
        if checkpoint and not last and written <= CHECKPOINT_SHARE * state.seconds:
            begun = time.monotonic()
            _save(checkpoint, model, optimiser, plateau, state)
            written += time.monotonic() - begun
        metrics = {**point, **_mix_summary(model), "best": state.best}
        on_evaluation(Evaluation(metrics, row, state.history, last))
    model.load_state_dict(state.best_model)
    return _finish(model, data, state, started, test, device)


def _finish(
    model: FusionModel, data: TrialData, state: _State, started: float, test: bool, device: torch.device
) -> Outcome:
    late_cutoff = model.config.cutoff > 0 and model.config.cutoff_when == "after-training"
    model.finish()
    frames = []
    if test or late_cutoff:  # otherwise the scores of the best epoch already are the best model's
        splits = ("validation", "test") if test and "test" in data.splits else ("validation",)
        for name in splits:
            scores, frame = evaluate(model, data, name, device)
            state.row |= scores
            frames.append(frame)
        state.row |= _mix_summary(model)
    row = {
        "epochs": state.epoch,
        **state.row,
        "parameters": model.n_parameters(),
        "seconds": time.monotonic() - started,
    }
    predictions = pd.concat(frames, ignore_index=True) if test else pd.DataFrame()
    return Outcome(row, state.history, predictions, model)


def _train_epoch(
    model: FusionModel,
    optimiser: torch.optim.Optimizer,
    split: SplitData,
    config: TrialConfig,
    class_weights: Tensor | None,
    seed: int,
    state: _State,
    device: torch.device,
) -> float:
    """Train one epoch; return the mean objective per example."""
    torch.manual_seed(_mixed(seed, state.epoch))  # dropout of this epoch, whether or not it follows a resume
    model.train()
    batches = split.shuffled(config.batch_size, seed, state.epoch)
    every = max(1, len(batches) // WEIGHTS_PER_EPOCH)
    total = torch.zeros((), device=device)
    for number, examples in enumerate(batches, start=1):
        batch = split.batch(examples, model.live_states(), device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(batch.states, batch.lengths)
            if batch.words is not None:
                logits = logits.flatten(0, 1)[batch.words]
        loss = functional.cross_entropy(logits.float(), batch.labels, weight=class_weights)
        if (penalty := model.penalty()) is not None:
            loss = loss + penalty
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        state.step += 1
        total += loss.detach() * len(examples)
        if number % every == 0 and number < len(batches):
            epoch = state.epoch - 1 + number / len(batches)
            state.history.append(_point(model, optimiser, state.step, epoch))
    return float(total) / len(split)


@torch.no_grad()
def evaluate(
    model: FusionModel, data: TrialData, name: str, device: torch.device
) -> tuple[dict[str, float], pd.DataFrame]:
    """Return the scores of a split, `val/*` or `test/*`, and a row of `predictions.parquet` per example.

    A row's label and prediction are label names (for tokens: one per word, joined by spaces); its score is the
    probability of the prediction (for tokens: the mean over words). Words lost to truncation count as predicted
    O, with probability 1.
    """
    split = data.splits[name]
    model.eval()
    predicted = np.full(len(split.labels), data.outside if data.shape.kind == "token" else 0)
    probability = np.ones(len(split.labels))
    for examples in token_batches(split.features.lengths, EVALUATION_TOKENS):
        batch = split.batch(examples, model.live_states(), device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(batch.states, batch.lengths)
            if batch.words is not None:
                logits = logits.flatten(0, 1)[batch.words]
        best = torch.softmax(logits.float(), dim=-1).max(dim=-1)
        predicted[batch.rows] = best.indices.cpu().numpy()
        probability[batch.rows] = best.values.cpu().numpy()
    prefix = {"validation": "val", "test": "test"}[name]
    scores = {f"{prefix}/{key}": value for key, value in data.scores(split, predicted).items()}
    if data.shape.kind == "sequence":
        names = np.array(data.label_names)
        label, prediction = names[split.labels].tolist(), names[predicted].tolist()
        score = probability.tolist()
    else:
        label = [" ".join(words) for words in data.named(split, split.labels)]
        prediction = [" ".join(words) for words in data.named(split, predicted)]
        score = [float(words.mean()) if len(words) else 1.0 for words in split.per_example(probability)]
    frame = pd.DataFrame(
        {"split": prefix, "index": split.index, "label": label, "prediction": prediction, "score": score}
    )
    return scores, frame


def _optimiser(config: TrialConfig, model: FusionModel) -> torch.optim.Optimizer:
    mix = [parameter for name, parameter in model.named_parameters() if name == "fusion.p"]
    rest = [p for name, p in model.named_parameters() if name != "fusion.p" and p.requires_grad]
    groups: list[dict[str, Any]] = [{"params": rest, "lr": config.lr, "weight_decay": config.weight_decay}]
    if mix:
        groups.append({"params": mix, "lr": config.mix_lr or config.lr, "weight_decay": 0.0})
    return torch.optim.Adam(groups, fused=True)


def _class_weights(config: TrialConfig, data: TrialData, device: torch.device) -> Tensor | None:
    """Return a weight per label, or None. `published`: the released CoNLL-2003 configuration (spec section 2)."""
    if config.class_weights == "none":
        return None
    if config.class_weights == "published":
        values = [0.0292 if name == "O" else 0.12 for name in data.label_names]
    else:
        count = np.bincount(data.splits["train"].labels, minlength=len(data.label_names))
        values = (count.sum() / (len(count) * np.maximum(count, 1))).tolist()
    return torch.tensor(values, device=device)


def _point(model: FusionModel, optimiser: torch.optim.Optimizer, step: int, epoch: float) -> dict[str, float]:
    """Return a row of history without scores: where training stands, and the mix weights p~."""
    weights = model.fusion.weights().detach().tolist()
    named = {f"mix/weight_{state:02d}": weight for state, weight in zip(model.states, weights, strict=True)}
    return {"epoch": float(epoch), "step": step, "lr": optimiser.param_groups[0]["lr"], **named}


@torch.no_grad()
def _mix_summary(model: FusionModel) -> dict[str, float]:
    return {
        "mix/entropy": float(model.fusion.entropy()),
        "mix/live_layers": int((model.fusion.weights() > 0).sum()),
    }


def _mixed(seed: int, epoch: int) -> int:
    """Return one seed of (seed, epoch); neighbouring pairs give unrelated streams."""
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])


def _save(
    folder: Folder,
    model: FusionModel,
    optimiser: torch.optim.Optimizer,
    plateau: torch.optim.lr_scheduler.ReduceLROnPlateau,
    state: _State,
) -> None:
    buffer = io.BytesIO()
    held = {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "plateau": plateau.state_dict(),
        "state": vars(state),
    }
    torch.save(held, buffer)
    folder.write_bytes(CHECKPOINT, buffer.getvalue())


def _restore(
    folder: Folder | None,
    model: FusionModel,
    optimiser: torch.optim.Optimizer,
    plateau: torch.optim.lr_scheduler.ReduceLROnPlateau,
    device: torch.device,
) -> _State:
    if folder is None or not folder.exists(CHECKPOINT):
        return _State()
    held = torch.load(io.BytesIO(folder.read_bytes(CHECKPOINT)), map_location=device, weights_only=True)
    model.load_state_dict(held["model"])
    optimiser.load_state_dict(held["optimiser"])
    plateau.load_state_dict(held["plateau"])
    return _State(**held["state"])
