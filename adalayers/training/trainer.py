"""Training of one trial: a plain loop, the thesis's recipe (section 5.4.1), no Ray and no MLflow.

Early stopping on the validation score; the checkpoint with the best one is what is kept and tested. Every random
draw follows from (seed, epoch), so a run that was interrupted and continued gives the numbers of one that was not.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
import xxhash
from torch import Tensor
from torch.utils._pytree import tree_map_only

from adalayers.config import TrialConfig
from adalayers.data.trial_data import Passes, TrialData
from adalayers.errors import Unreachable
from adalayers.fusion.fusion import Fusion
from adalayers.models.model import FusionModel
from adalayers.models.trainable_base.model import build_model
from adalayers.results.files import PREFIXES, prediction_hash
from adalayers.results.trial_row import Cell
from adalayers.states import State
from adalayers.storage.folder import SEAL, Folder
from adalayers.study import Variant
from adalayers.tasks.kind import TaskKind
from adalayers.tasks.metrics import RankMetric, metric
from adalayers.tensors.dropout import draw_from
from adalayers.tensors.seeds import stream
from adalayers.training.batches import TRAIN
from adalayers.training.cost import Operations, cost, operations
from adalayers.training.members import is_out_of_memory
from adalayers.training.optimisers import Trained
from adalayers.training.together import Pace, Request, Steps, finished

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.pt"
CHECKPOINT_SHARE = 0.05
"""Most of the time that may go into writing checkpoints."""


class Diverged(Exception):
    """The training loss stopped being finite."""


@dataclass(frozen=True)
class Evaluation:
    """What is known after an evaluation on validation.

    metrics: of this evaluation: epoch, step, lr, train/loss, val/*, the fusion's summary, and `best`, the highest
             validation score so far
    row:     the trial's columns of `trials.csv` so far, as of the best epoch
    history: all rows of `history.parquet` so far
    last:    whether training ends here by itself; Head2Toe has two rounds: true at the end of each
    """

    metrics: dict[str, float]
    row: dict[str, Cell]
    history: list[dict[str, float]]
    last: bool


@dataclass(frozen=True)
class Outcome:
    """A trial that ended by itself.

    row:         its columns of `trials.csv`, `val/*` and, if asked for, `test/*` of the best model
    history:     its rows of `history.parquet`
    predictions: its rows of `predictions.parquet` (empty unless the test was asked for)
    evaluations: its rows of `evaluations.parquet` (empty without variants)
    model:       the best model on validation; kind: of its task, fitted to what it was trained on
    """

    row: dict[str, Cell]
    history: list[dict[str, float]]
    predictions: pd.DataFrame
    evaluations: pd.DataFrame
    model: FusionModel
    kind: TaskKind


@dataclass(kw_only=True)
class Progress:
    """Where training stands: what a checkpoint holds next to the model and what its optimiser keeps.

    begun: the epoch after which the present round began; a fusion that refits starts another round
    stale: evaluations in a row without a better score; halved: how often the learning rates were for that
    row:   the trial's columns as of the best epoch; best_model: its parameters
    operations: of all epochs, computed; read_to: layers of the base model run so far
    """

    epoch: int = 0
    begun: int = 0
    step: int = 0
    stale: int = 0
    halved: int = 0
    seconds: float = 0.0
    operations: float = 0.0
    read_to: int = 0
    row: dict[str, Cell] = field(default_factory=dict)
    best: float = -math.inf
    best_model: dict[str, Tensor] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    config: TrialConfig,
    data: TrialData,
    *,
    seed: int,
    test: bool = False,
    variants: Sequence[Variant] = (),
    device: str | torch.device = "cpu",
    on_evaluation: Callable[[Evaluation], None] = lambda evaluation: None,
    checkpoint: Folder | None = None,
) -> Outcome:
    """Train one configuration and return its best model on validation with its scores.

    test:          also score the test split, once, with the best model, and return predictions
    variants:      other ways to score the best model, on validation: test is scored once
    on_evaluation: called after each epoch's evaluation; what it raises ends the training
    checkpoint:    folder to continue from, and to leave a checkpoint in; a damaged one is trained again from its start

    Raises `Diverged` when the training loss stops being finite.
    """
    trainer = restored(config, data, seed=seed, device=torch.device(device), checkpoint=checkpoint)
    return finished(trainer.steps(on_evaluation, checkpoint, test=test, variants=variants))


def restored(
    config: TrialConfig, data: TrialData, *, seed: int, device: torch.device, checkpoint: Folder | None
) -> Trainer:
    """Return the trainer of a trial, as its checkpoint left it; where there is none, or it is damaged, a new one."""
    trainer = Trainer(config, data, seed=seed, device=device)
    if checkpoint is None or not checkpoint.exists(CHECKPOINT):
        return trainer
    try:
        trainer.restore(checkpoint)
    except Exception as error:  # of what was cut off, overwritten, or is of something else
        if isinstance(error, Unreachable) or is_out_of_memory(error):  # the trial is tried again
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        logger.warning(
            f"{CHECKPOINT} in {checkpoint.uri} could not be read ({reason}); the trial starts over"
        )
        checkpoint.delete(CHECKPOINT)
        return Trainer(config, data, seed=seed, device=device)  # that one is half restored
    return trainer


class Trainer:
    """One trial's model, optimiser, schedule and progress.

    What it asks for in steps is done by `Together`: an epoch of training, or predictions. No draw comes from a stream
    that others share.

    reads: what the batches of an epoch follow from
    passes: in how many parts a batch is passed, whose gradients are summed; more than one where memory did not suffice
    for it: but for rounding and for what dropout draws, the numbers stay the same
    saving: says after which epochs a checkpoint is written
    """

    def __init__(self, config: TrialConfig, data: TrialData, *, seed: int, device: torch.device):
        self.config, self.seed, self.device = config, seed, device
        draw = seed if config.draw is None else config.draw
        drawn = data.view(config.train_examples, draw)
        self.reads = (seed,) if drawn is data else (seed, config.train_examples, draw)
        self.data = drawn.at_words(config.word_token(data.shape))
        self.model = build_model(config, data.shape, data.source, seed=seed, device=device)
        self.generator = torch.Generator(device)
        draw_from(self.model, self.generator)
        self.progress = Progress()
        self.on_batch: Callable[[], None] = lambda: None
        self.saving = Pace(CHECKPOINT_SHARE)
        self.passes = 1
        self._counted: dict[tuple[State, ...], Operations] = {}
        weights = data.kind.class_weights(config.class_weights, data.gold(self.data.splits[TRAIN]))
        self.class_weights = None if weights is None else np.array(weights)
        self.trained = Trained(self.config, self.model)

    def steps(
        self,
        on_evaluation: Callable[[Evaluation], None],
        checkpoint: Folder | None = None,
        *,
        test: bool = False,
        variants: Sequence[Variant] = (),
    ) -> Steps[Outcome]:
        """Train and score, as `train` does, in steps of one batch."""
        yield from self._train(on_evaluation, checkpoint)
        yield Request(self, epoch=math.inf)
        return (yield from self._outcome(test=test, variants=variants))

    def batches(self) -> list[np.ndarray]:
        """Return the examples of the batches of this epoch."""
        return self.data.splits[TRAIN].shuffled(self.config.batch_size, self.seed, self.progress.epoch)

    def label_weights(self, rows: np.ndarray) -> np.ndarray:
        """Return what labels of train count in the loss, by their rows."""
        labels = self.data.splits[TRAIN].labels[rows]
        return np.ones(len(rows)) if self.class_weights is None else self.class_weights[labels]

    def rate_factor(self) -> float:
        """Return what the rates of the next step are multiplied by."""
        config, progress = self.config, self.progress
        if config.schedule == "plateau":
            return float(0.5**progress.halved)
        of_epoch = math.ceil(len(self.data.splits[TRAIN].trainable) / config.batch_size)
        steps, taken = config.epochs * of_epoch, progress.step - progress.begun * of_epoch
        rising = max(1, round(config.warmup * steps))
        return min((taken + 1) / rising, max(0.0, (steps - taken) / max(1, steps - rising + 1)))

    def point(self, epoch: float) -> dict[str, float]:
        """Return where training stands, the beginning of a row of history.

        `round` is there from the second on, which a fusion that refits has.
        """
        again = {"round": 2.0} if self.progress.begun else {}
        rate = self.trained.groups[0][1] * self.rate_factor()
        return {"epoch": float(epoch), "step": self.progress.step, **again, "lr": rate}

    def _train(self, on_evaluation: Callable[[Evaluation], None], checkpoint: Folder | None) -> Steps[None]:
        """Train until the epochs are used up or validation stops improving, from where training stands."""
        progress = self.progress
        if progress.epoch == 0:
            split, states = self.data.splits[TRAIN], self.model.fusion.states
            self.model.fusion.fit(Passes(split, states, self.device, self.config.batch_size, self.on_batch))
            if type(self.model.fusion).fit is not Fusion.fit:  # it looked at all of them
                progress.read_to = self.model.shape.depth(states)
            self.model.prepare_training()
            self.trained = Trained(self.config, self.model)
            progress.history.append(self.point(0.0) | self.model.fusion.diagnostics())
        while True:
            while not self._round_is_over():
                metrics = yield from self._train_and_evaluate()
                last = self._round_is_over()
                if checkpoint and not last and self.saving.due(progress.epoch):
                    with self.saving.doing():
                        self._save(checkpoint)
                on_evaluation(Evaluation(metrics, self._row(), progress.history, last))
            self.model.load_state_dict(progress.best_model)
            if not self.model.fusion.refit():
                break
            progress.begun, progress.best = progress.epoch, -math.inf
            progress.stale = progress.halved = 0
            self.trained = Trained(self.config, self.model)

    def _outcome(self, *, test: bool, variants: Sequence[Variant]) -> Steps[Outcome]:
        """Return the trial's results with the best model, once it is trained."""
        progress = self.progress
        before = self.model.fusion.summary()
        self.model.fusion.finish()
        changed = self.model.fusion.summary() != before
        frames = []
        if test or changed:  # otherwise the scores of the best epoch already are the best model's
            splits = ("validation", "test") if test and "test" in self.data.splits else ("validation",)
            for name in splits:
                scores, answers = yield from self._evaluate(name, math.inf)
                progress.row |= scores
                frames.append(self._predictions(name, answers))
            progress.row |= self.model.fusion.summary()
        predictions = pd.concat(frames, ignore_index=True) if test else pd.DataFrame()
        if test:
            # Of test, or of validation where that is all.
            progress.row["predictions"] = prediction_hash(frames[-1])
        others = yield from self._variant_scores(variants)
        progress.row |= cost(self.model, self.data, epochs=progress.operations, read_to=progress.read_to)
        return Outcome(self._row(), progress.history, predictions, others, self.model, self.data.kind)

    def _round_is_over(self) -> bool:
        progress, config = self.progress, self.config
        if progress.epoch - progress.begun >= config.epochs:
            return True
        # A decay has to reach its end.
        return config.schedule == "plateau" and progress.stale >= config.patience

    def _train_and_evaluate(self) -> Steps[dict[str, float]]:
        """Train until the next evaluation, evaluate, note what came of it, and return the evaluation's metrics."""
        progress, fusion = self.progress, self.model.fusion
        left = progress.begun + self.config.epochs - progress.epoch
        for epochs_left in reversed(range(min(self.config.evaluate_every, left))):
            progress.epoch += 1
            self._count_operations(evaluated=not epochs_left)
            loss = yield from self.train_epoch()
            if not math.isfinite(loss):
                raise Diverged(f"the training loss is {loss} in epoch {progress.epoch}")
        scores, _ = yield from self._evaluate("validation", progress.epoch)
        score = scores[f"val/{self.data.metric}"]
        point = self.point(progress.epoch) | fusion.diagnostics() | {"train/loss": loss} | scores
        progress.history.append(point)
        progress.stale += 1
        if score > progress.best:
            progress.best, progress.stale = score, 0
            progress.best_model = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
            progress.row = {"best_epoch": progress.epoch, **scores, **fusion.summary()}
        if progress.stale and progress.stale % self.config.lr_patience == 0:
            progress.halved += 1
        return {**point, **fusion.summary(), "best": progress.best}

    def _count_operations(self, *, evaluated: bool) -> None:
        """Add what an epoch costs, by the hidden states that are read at its start; evaluated: whether one follows."""
        live = tuple(self.model.fusion.live())
        if live not in self._counted:
            self.model.train()  # what a fusion notes when it is evaluated stays as it is
            self._counted = {live: operations(self.model, self.data)}
        self.progress.operations += self._counted[live].of_epoch(self.data, evaluated=evaluated)
        if not self.model.base_use().own_pass:
            self.progress.read_to = max(self.progress.read_to, self.model.shape.depth(live))

    def train_epoch(self) -> Steps[float]:
        """Train one epoch, in steps; return the mean objective per example."""
        # The same after a resume.
        self.generator.manual_seed(stream(self.seed, "dropout", self.progress.epoch))
        self.model.train()
        total = yield Request(self, TRAIN, self.progress.epoch)
        return total / len(self.data.splits[TRAIN].trainable)

    def _evaluate(
        self, name: str, epoch: float
    ) -> Steps[tuple[dict[str, float], tuple[np.ndarray, np.ndarray]]]:
        """Return, in steps, the scores of a split, `val/*` or `test/*`, and what is predicted and how sure it is.

        Items that truncation cut away count as the kind's `truncated_prediction`.
        """
        data, split = self.data, self.data.splits[name]
        predicted = np.full(len(split.labels), data.kind.truncated_prediction(data.label_names))
        probability = np.ones(len(split.labels))
        rows, of_rows, sure = yield Request(self, name, epoch)
        predicted[rows], probability[rows] = of_rows, sure
        # Else no study would have these columns but those that began since there are such scores.
        ranked = isinstance(metric(data.metric), RankMetric)
        scores = data.kind.scores(data.gold(split), predicted, probability if ranked else None)
        return {f"{PREFIXES[name]}/{key}": value for key, value in scores.items()}, (predicted, probability)

    def _predictions(self, name: str, answers: tuple[np.ndarray, np.ndarray]) -> pd.DataFrame:
        """Return a row of `predictions.parquet` of each example: the kind says what is in it."""
        split = self.data.splits[name]
        columns = self.data.kind.prediction_columns(self.data.gold(split), *answers)
        groups = {} if split.groups is None else {"group": split.groups}
        return pd.DataFrame({"split": PREFIXES[name], "index": split.index, **groups, **columns})

    def _variant_scores(self, variants: Sequence[Variant]) -> Steps[pd.DataFrame]:
        """Return, in steps, the rows of `evaluations.parquet` of the model on validation.

        A variant that is the model itself, or none, is left out.
        """
        rows, selects = [], self.data.metric
        for variant in variants:
            changed = self.model.as_variant(variant)
            if changed is not None:
                with changed:
                    scores, _ = yield from self._evaluate("validation", math.inf)
                rows.append(("val", variant.name, selects, scores[f"val/{selects}"]))
        return pd.DataFrame(rows, columns=["split", "variant", "metric", "value"])

    def _row(self) -> dict[str, Cell]:
        return {
            "epochs": self.progress.epoch,
            **self.progress.row,
            "parameters": self.model.n_parameters(),
            "seconds": self.progress.seconds,
        }

    def _save(self, folder: Folder) -> None:
        buffer = io.BytesIO()
        state = {
            "model": self.model.state_dict(),
            "trained": {"moments": self.trained.moments, "steps": self.trained.steps},
            "progress": vars(self.progress),
        }
        # Of a view all would be saved that it is a view of.
        torch.save(tree_map_only(Tensor, Tensor.clone, state), buffer)
        data = buffer.getvalue()
        folder.write_bytes(CHECKPOINT, data + SEAL + xxhash.xxh3_128(data).digest())

    def restore(self, folder: Folder) -> None:
        """Go on from the checkpoint in a folder. One that is damaged raises an error, half restored."""
        data, _, digest = folder.read_bytes(CHECKPOINT).rpartition(SEAL)
        if xxhash.xxh3_128(data).digest() != digest:
            raise ValueError("its checksum is wrong")
        state = torch.load(io.BytesIO(data), map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        # A fusion that refitted trains other parameters than at its start.
        self.trained = Trained(self.config, self.model)
        self.trained.moments, self.trained.steps = (state["trained"][name] for name in ("moments", "steps"))
        self.progress = Progress(**state["progress"])
