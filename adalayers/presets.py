"""The thesis's published set-ups and scores (Dremov 2024, figures 7, 11, 15 and 19, sections 5.4.2 to 5.4.4), whole.

Where its text is silent (early stopping, epochs, class weights), the configurations released with it speak. Two
readings of a set-up are kept apart: `as-written`, what the text and its tables say, and `as-released`, what the code
does; the published scores are those of the code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

Reading = Literal["as-written", "as-released"]
READINGS: tuple[Reading, ...] = ("as-written", "as-released")


@dataclass(frozen=True, kw_only=True)
class BaseModel:
    """A frozen model of the thesis.

    name:       its alias here
    layers, width: l and K of its encoder; family: transformers' model type
    max_length: the most tokens it reads, where the released code cuts a text
    """

    name: str
    layers: int
    width: int
    family: str
    max_length: int


@dataclass(frozen=True, kw_only=True)
class ClassScore:
    """Published precision, recall and F1 (0 to 1) of a class, and how many phrases were predicted as it."""

    name: str = ""
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    predicted: int = 0


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """One published training set-up: a dataset with a base model.

    Attributes:
        head: Of the task, as `n_outputs` is.
        figures: Of the thesis: where its table and its scores by class stand.
        written: The hyperparameters of its table, as `LayerMixConfig` names them; patience, epochs and class weights,
            on which the text says nothing, are those of the released configuration.
        released_dropout: Of the released configuration; that of the thesis's table is in `written`.
        selects: The metric of validation that chose the model.
        score: In `metric` on the test split, 0 to 1.
        parameters: Added ones, as the thesis prints them.
        recomputed: Those of the released configuration, counted: p and the whole head included.
        remark: Why the two differ, where they do.
        classes: Published scores by class, where there are any.
    """

    dataset: str
    head: Literal["sequence", "token"]
    n_outputs: int
    base: BaseModel
    figures: str
    written: Mapping[str, Any]
    released_dropout: float
    selects: str = "f1_macro"
    metric: str
    score: float
    parameters: float
    recomputed: int
    remark: str = ""
    train_examples: int
    test_examples: int
    classes: tuple[ClassScore, ...] = ()

    def config(self, reading: Reading) -> dict[str, Any]:
        """Return the hyperparameters of a layer mix that the set-up says, in one of its two readings."""
        if reading == "as-written":
            return dict(self.written)
        return {
            **self.written,
            "dropout": self.released_dropout,
            "projection_dropout": self.released_dropout,
            "gelu_after_mix": True,
            "hidden_states": "as-released",
            "entropy_scale": "as-released",
        }


class PublishedMix(NamedTuple):
    """The published alpha, lambda, cutoff and rate of the mix, which both base models share, and whose they are.

    values: by hyperparameter; source: the dataset that they are from
    """

    values: dict[str, float]
    source: str

    @property
    def words(self) -> str:
        """The values in a sentence, and the step that a logit of the mix takes with them."""
        values = ", ".join(f"{name} {value:g}" for name, value in self.values.items())
        return f"{values}: a step of {self.values['alpha'] * self.values['mix_lr']:.3g}"


ROBERTA = BaseModel(name="roberta-large", layers=24, width=1024, family="roberta", max_length=512)
BART = BaseModel(name="bart-large-cnn", layers=12, width=1024, family="bart", max_length=1024)

_WRITTEN = {"mix": "learned", "lr": 1e-4, "class_weights": "none"}
_IMDB = SetUp(
    dataset="imdb",
    head="sequence",
    n_outputs=2,
    base=ROBERTA,
    figures="figure 7",
    written={
        **_WRITTEN,
        "weight_decay": 1e-3,
        "alpha": 70.0,
        "entropy_weight": 0.0,
        "cutoff": 5e-3,
        "heads": 16,
        "k": 64,
        "lr_patience": 5,
        "patience": 10,
        "batch_size": 1200,
        "epochs": 128,
        "positions": False,
        "dropout": 3e-2,
    },
    released_dropout=0.3,
    metric="accuracy",
    score=0.961,
    parameters=1.59e6,
    recomputed=1_589_658,
    train_examples=22_500,
    test_examples=25_000,
)
_COLA = SetUp(
    dataset="cola",
    head="sequence",
    n_outputs=2,
    base=ROBERTA,
    figures="figure 11",
    written={
        **_WRITTEN,
        "weight_decay": 0.0,
        "alpha": 64.0,
        "entropy_weight": 0.0,
        "cutoff": 1e-2,
        "heads": 8,
        "k": 64,
        "lr_patience": 25,
        "patience": 30,
        "batch_size": 600,
        "epochs": 256,
        "positions": True,
        "dropout": 3e-2,
    },
    released_dropout=0.3,
    metric="accuracy",
    score=0.836,
    parameters=1.59e6,
    recomputed=1_589_658,
    train_examples=7_695,
    test_examples=1_043,
)
_CONLL = SetUp(
    dataset="conll2003",
    head="token",
    n_outputs=9,
    base=ROBERTA,
    figures="figures 15 and 19",
    written={
        **_WRITTEN,
        "weight_decay": 1e-3,
        "alpha": 128.0,
        "entropy_weight": 1e-3,
        "cutoff": 1e-2,
        "heads": 8,
        "k": 128,
        "lr_patience": 16,
        "patience": 40,
        "batch_size": 356,
        "epochs": 256,
        "positions": True,
        "class_weights": "published",
        "encoder_layers": 1,
        "feedforward": 2048,
        "dropout": 0.2,
    },
    released_dropout=0.2,
    metric="f1",
    score=0.894,
    parameters=3.21e6,
    recomputed=3_739_937,
    remark="The thesis prints projections and attention alone, without the encoder layer's feed-forward.",
    train_examples=14_041,
    test_examples=3_453,
    classes=(
        ClassScore(name="LOC", precision=0.9093, recall=0.9251, f1=0.9171, predicted=1697),
        ClassScore(name="MISC", precision=0.7244, recall=0.8162, f1=0.7676, predicted=791),
        ClassScore(name="ORG", precision=0.8505, recall=0.9043, f1=0.8766, predicted=1766),
        ClassScore(name="PER", precision=0.9402, recall=0.9536, f1=0.9469, predicted=1640),
    ),
)


def _with_bart(setup: SetUp, score: float, written: Mapping[str, Any], **changed: Any) -> SetUp:
    """Return the set-up of the same dataset for BART."""
    small = {"parameters": 0.87e6, "recomputed": 868_751, **changed}
    return replace(setup, base=BART, score=score, written={**setup.written, **written}, classes=(), **small)


SETUPS: tuple[SetUp, ...] = (
    _IMDB,
    _with_bart(_IMDB, 0.960, {"batch_size": 588}, released_dropout=0.005),
    _COLA,
    _with_bart(
        _COLA,
        0.809,
        {"lr_patience": 16, "patience": 32, "batch_size": 900, "dropout": 1e-2},
        released_dropout=0.1,
    ),
    _CONLL,
    _with_bart(_CONLL, 0.893, {"class_weights": "none"}, parameters=1.77e6, recomputed=2_298_134),
)
"""The six of the thesis; of each dataset, RoBERTa-large's first."""


def setups(dataset: str, head: str) -> tuple[tuple[SetUp, ...], str]:
    """Return the published set-ups for a dataset, RoBERTa-large's first, and the dataset that they are for.

    A dataset without any takes those of CoLA (sequences) or CoNLL-2003 (tokens).
    """
    datasets = {setup.dataset for setup in SETUPS}
    source = dataset if dataset in datasets else {"sequence": "cola", "token": "conll2003"}[head]
    return tuple(setup for setup in SETUPS if setup.dataset == source), source


def published_mix(dataset: str, head: str) -> PublishedMix:
    """Return the published mix for a dataset."""
    (setup, *_), source = setups(dataset, head)
    values = {name: setup.written[name] for name in ("alpha", "entropy_weight", "cutoff")}
    return PublishedMix({**values, "mix_lr": setup.written["lr"]}, source)


def logit_travel(alpha: float, *, mix_lr: float, batch_size: int, epochs: int, train_examples: int) -> float:
    """Return how far a logit alpha p of the mix can travel in a training: under Adam a step moves p by its rate."""
    return alpha * mix_lr * epochs * math.ceil(train_examples / batch_size)


def published_travel(source: str) -> float:
    """Return how far a logit of the mix can travel in the published run of RoBERTa-large on a dataset."""
    setup = next(setup for setup in SETUPS if setup.dataset == source)
    names = ("alpha", "batch_size", "epochs")
    how = {name: setup.written[name] for name in names}
    return logit_travel(**how, mix_lr=setup.written["lr"], train_examples=setup.train_examples)
