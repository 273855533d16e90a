"""The thesis's published set-ups and scores (Dremov 2024, figures 7, 11, 15 and 19, sections 5.4.2 to 5.4.4), whole.

Where its text is silent (early stopping, epochs, class weights), the configurations released with it speak. Two
readings of a set-up are kept apart: `as-written`, what the text and its tables say, and `as-released`, what the code
does; the published scores are those of the code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from adalayers.states import Settings

Reading = Literal["as-written", "as-released"]
READINGS: tuple[Reading, ...] = ("as-written", "as-released")


@dataclass(frozen=True, kw_only=True)
class ClassScore:
    """Published precision, recall and F1 (0 to 1) of a class, and how many phrases were predicted as it."""

    name: str = ""
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    predicted: int = 0


@dataclass(frozen=True, kw_only=True)
class Published:
    """What was published for the set-up of an arm, for a page to show next to what the arm scores here.

    arm:        its name; source: where it was published
    base_model, layers, width: the frozen model of the published run
    metric, split, score: the published score, 0 to 1; selects: the metric that chose its model on validation
    parameters: added parameters, as published; recomputed: as counted; remark: why the two differ
    examples:   by split; max_length: tokens a text was cut to; seeds: runs behind the score; precision: in words
    states:     the hidden states that were mixed, in words; states_here: those that the arm mixes
    config:     hyperparameters of the set-up, as the arm reads it
    classes:    published scores by class
    """

    arm: str = ""
    source: str = ""
    base_model: str = ""
    layers: int = 0
    width: int = 0
    dataset: str = ""
    metric: str = ""
    split: str = "test"
    score: float = 0.0
    selects: str = ""
    parameters: float = 0.0
    recomputed: int = 0
    remark: str = ""
    examples: dict[str, int] = field(default_factory=dict)
    max_length: int = 0
    seeds: int = 1
    precision: str = ""
    states: str = ""
    states_here: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    classes: tuple[ClassScore, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """One published training set-up: a dataset with a base model.

    Attributes:
        head: Of the task, as `n_outputs` is.
        released_dropout: Of the released configuration; that of the thesis's table is in the run's configuration.
        run: What was published. Its `config` has the hyperparameters of the thesis's table, as `LayerMixConfig` names
            them; patience, epochs and class weights, on which the text says nothing, are those of the released
            configuration.
    """

    head: Literal["sequence", "token"]
    n_outputs: int
    released_dropout: float
    run: Published

    def config(self, reading: Reading) -> Settings:
        """Return the hyperparameters of a layer mix that the set-up says, in one of its two readings."""
        if reading == "as-written":
            return dict(self.run.config)
        return {
            **self.run.config,
            "dropout": self.released_dropout,
            "projection_dropout": self.released_dropout,
            "gelu_after_mix": True,
            "hidden_states": "as-released",
            "entropy_scale": "as-released",
        }

    @property
    def mix(self) -> dict[str, float]:
        """The published alpha, lambda, cutoff and rate of the mix, which both base models share."""
        values = {name: self.run.config[name] for name in ("alpha", "entropy_weight", "cutoff")}
        return {**values, "mix_lr": self.run.config["lr"]}

    @property
    def travel(self) -> float:
        """How far a logit of the mix can travel in the published run."""
        how = {name: self.run.config[name] for name in ("alpha", "batch_size", "epochs")}
        return logit_travel(**how, mix_lr=self.mix["mix_lr"], train_examples=self.run.examples["train"])


class PublishedMix(NamedTuple):
    """Values of the mix by hyperparameter, published or with a rate of the user's own, and of which dataset."""

    values: dict[str, float]
    source: str

    @property
    def words(self) -> str:
        """The values in a sentence, and the step that a logit of the mix takes with them."""
        values = ", ".join(f"{name} {value:g}" for name, value in self.values.items())
        return f"{values}: a step of {self.values['alpha'] * self.values['mix_lr']:.3g}"


ROBERTA: dict[str, Any] = {
    "base_model": "roberta-large",
    "layers": 24,
    "width": 1024,
    "max_length": 512,
    "states": "embeddings and layers 1 to 23",
}
BART: dict[str, Any] = {
    "base_model": "bart-large-cnn",
    "layers": 12,
    "width": 1024,
    "max_length": 1024,
    "states": "embeddings and layers 1 to 12",
}
"""Base models, what the released code reads of them, and where it cuts a text."""


def _setup(
    head: Literal["sequence", "token"], n_outputs: int, dropout: float, config: Mapping[str, Any], **run: Any
) -> SetUp:
    """Return a set-up for RoBERTa-large; dropout: of the released configuration."""
    config = {"mix": "learned", "lr": 1e-4, "class_weights": "none", **config}
    published = Published(config=config, selects="f1_macro", precision="mixed, float16", **ROBERTA, **run)
    return SetUp(head=head, n_outputs=n_outputs, released_dropout=dropout, run=published)


def _with_bart(setup: SetUp, score: float, dropout: float, config: Mapping[str, Any], **run: Any) -> SetUp:
    """Return the set-up of the same dataset for BART."""
    config = {**setup.run.config, **config}
    return replace(
        setup,
        released_dropout=dropout,
        run=replace(setup.run, **BART, score=score, config=config, classes=(), **run),
    )


_IMDB = _setup(
    head="sequence",
    n_outputs=2,
    dropout=0.3,
    config={"alpha": 70.0, "entropy_weight": 0.0, "cutoff": 5e-3, "positions": False, "heads": 16, "k": 64}
    | {"lr_patience": 5, "patience": 10, "batch_size": 1200, "epochs": 128}
    | {"weight_decay": 1e-3, "dropout": 3e-2},
    source="Dremov 2024, figure 7",
    dataset="imdb",
    metric="accuracy",
    score=0.961,
    parameters=1.59e6,
    recomputed=1_589_658,
    examples={"train": 22_500, "test": 25_000},
)
_COLA = _setup(
    head="sequence",
    n_outputs=2,
    dropout=0.3,
    config={"alpha": 64.0, "entropy_weight": 0.0, "cutoff": 1e-2, "positions": True, "heads": 8, "k": 64}
    | {"lr_patience": 25, "patience": 30, "batch_size": 600, "epochs": 256}
    | {"weight_decay": 0.0, "dropout": 3e-2},
    source="Dremov 2024, figure 11",
    dataset="cola",
    metric="accuracy",
    score=0.836,
    parameters=1.59e6,
    recomputed=1_589_658,
    examples={"train": 7_695, "test": 1_043},
)
_CONLL = _setup(
    head="token",
    n_outputs=9,
    dropout=0.2,
    config={"alpha": 128.0, "entropy_weight": 1e-3, "cutoff": 1e-2, "positions": True, "heads": 8, "k": 128}
    | {"lr_patience": 16, "patience": 40, "batch_size": 356, "epochs": 256}
    | {"weight_decay": 1e-3, "dropout": 0.2, "class_weights": "published"}
    | {"encoder_layers": 1, "feedforward": 2048},
    source="Dremov 2024, figures 15 and 19",
    dataset="conll2003",
    metric="f1",
    score=0.894,
    parameters=3.21e6,
    recomputed=3_739_937,
    remark="The thesis prints projections and attention alone, without the encoder layer's feed-forward.",
    examples={"train": 14_041, "test": 3_453},
    classes=(
        ClassScore(name="LOC", precision=0.9093, recall=0.9251, f1=0.9171, predicted=1697),
        ClassScore(name="MISC", precision=0.7244, recall=0.8162, f1=0.7676, predicted=791),
        ClassScore(name="ORG", precision=0.8505, recall=0.9043, f1=0.8766, predicted=1766),
        ClassScore(name="PER", precision=0.9402, recall=0.9536, f1=0.9469, predicted=1640),
    ),
)


_COLA_BART = {"lr_patience": 16, "patience": 32, "batch_size": 900, "dropout": 1e-2}
_SMALL = {"parameters": 0.87e6, "recomputed": 868_751}
SETUPS: tuple[SetUp, ...] = (
    _IMDB,
    _with_bart(_IMDB, 0.960, 0.005, {"batch_size": 588}, **_SMALL),
    _COLA,
    _with_bart(_COLA, 0.809, 0.1, _COLA_BART, **_SMALL),
    _CONLL,
    _with_bart(_CONLL, 0.893, 0.2, {"class_weights": "none"}, parameters=1.77e6, recomputed=2_298_134),
)
"""The six of the thesis; of each dataset, RoBERTa-large's first."""


def setups(dataset: str, head: str) -> tuple[SetUp, ...]:
    """Return the published set-ups for a dataset, RoBERTa-large's first.

    A dataset without any takes those of CoLA (sequences) or CoNLL-2003 (tokens).
    """
    there = {setup.run.dataset for setup in SETUPS}
    source = dataset if dataset in there else {"sequence": "cola", "token": "conll2003"}[head]
    return tuple(setup for setup in SETUPS if setup.run.dataset == source)


def logit_travel(alpha: float, *, mix_lr: float, batch_size: int, epochs: int, train_examples: int) -> float:
    """Return how far a logit alpha p of the mix can travel in a training: under Adam a step moves p by its rate."""
    return alpha * mix_lr * epochs * math.ceil(train_examples / batch_size)
