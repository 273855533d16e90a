"""The thesis's published set-ups and scores (Dremov 2024, figures 7, 11, 15 and 19, sections 5.4.2 to 5.4.4), whole.

Where its text is silent (early stopping, epochs, class weights), the configurations released with it speak. Two
readings of a set-up are kept apart: `as-written`, what the text and its tables say, and `as-released`, what the code
does; the published scores are those of the code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

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

    head, n_outputs: of the task
    figures:      of the thesis: where its table and its scores by class stand
    lr to feedforward: as `TrialConfig` and `LayerMixConfig` name them; encoder layers are those of token tasks
    dropout:      of the thesis's table; released_dropout: of the released configuration
    patience, epochs, class_weights: of the released configuration, on which the text says nothing
    selects:      the metric of validation that chose the model
    metric, score, split: the published score, 0 to 1
    parameters, share: added parameters as the thesis prints them, and of the base model's
    recomputed:   the added parameters of the released configuration, counted: p and the whole head included
    remark:       why the two differ, where they do
    train_examples, test_examples: of the dataset
    classes:      published scores by class, where there are any
    """

    dataset: str
    head: Literal["sequence", "token"]
    n_outputs: int
    base: BaseModel
    figures: tuple[int, ...]
    lr: float = 1e-4
    weight_decay: float
    alpha: float
    entropy_weight: float
    cutoff: float
    dropout: float
    released_dropout: float
    heads: int
    k: int
    lr_patience: int
    patience: int
    batch_size: int
    epochs: int
    positions: bool
    encoder_layers: int | None = None
    feedforward: int | None = None
    class_weights: Literal["none", "published"] = "none"
    selects: str
    metric: str
    score: float
    split: str = "test"
    parameters: float
    share: float
    recomputed: int
    remark: str = ""
    train_examples: int
    test_examples: int
    classes: tuple[ClassScore, ...] = ()

    @property
    def name(self) -> str:
        """As arms are called: by the base model."""
        return self.base.name

    def config(self, reading: Reading) -> dict[str, Any]:
        """Return the hyperparameters of a layer mix that the set-up says, in one of its two readings."""
        shared = (
            *(
                "lr",
                "weight_decay",
                "alpha",
                "entropy_weight",
                "cutoff",
                "heads",
                "k",
                "lr_patience",
                "patience",
            ),
            *("batch_size", "epochs", "positions", "class_weights"),
            *(name for name in ("encoder_layers", "feedforward") if getattr(self, name) is not None),
        )
        values: dict[str, Any] = {"mix": "learned", **{name: getattr(self, name) for name in shared}}
        if reading == "as-written":
            return values | {"dropout": self.dropout}
        return values | {
            "dropout": self.released_dropout,
            "projection_dropout": self.released_dropout,
            "gelu_after_mix": True,
            "hidden_states": "as-released",
            "entropy_scale": "as-released",
        }

    def steps_per_epoch(self, train_examples: int) -> int:
        """Return the batches that make an epoch of so many examples."""
        return math.ceil(train_examples / self.batch_size)


ROBERTA = BaseModel(name="roberta-large", layers=24, width=1024, family="roberta", max_length=512)
BART = BaseModel(name="bart-large-cnn", layers=12, width=1024, family="bart", max_length=1024)

_IMDB = SetUp(
    dataset="imdb",
    head="sequence",
    n_outputs=2,
    base=ROBERTA,
    figures=(7,),
    weight_decay=1e-3,
    alpha=70.0,
    entropy_weight=0.0,
    cutoff=5e-3,
    dropout=3e-2,
    released_dropout=0.3,
    heads=16,
    k=64,
    lr_patience=5,
    patience=10,
    batch_size=1200,
    epochs=128,
    positions=False,
    selects="f1_macro",
    metric="accuracy",
    score=0.961,
    parameters=1.59e6,
    share=0.004,
    recomputed=1_589_658,
    train_examples=22_500,
    test_examples=25_000,
)
_COLA = SetUp(
    dataset="cola",
    head="sequence",
    n_outputs=2,
    base=ROBERTA,
    figures=(11,),
    weight_decay=0.0,
    alpha=64.0,
    entropy_weight=0.0,
    cutoff=1e-2,
    dropout=3e-2,
    released_dropout=0.3,
    heads=8,
    k=64,
    lr_patience=25,
    patience=30,
    batch_size=600,
    epochs=256,
    positions=True,
    selects="f1_macro",
    metric="accuracy",
    score=0.836,
    parameters=1.59e6,
    share=0.004,
    recomputed=1_589_658,
    train_examples=7_695,
    test_examples=1_043,
)
_CONLL = SetUp(
    dataset="conll2003",
    head="token",
    n_outputs=9,
    base=ROBERTA,
    figures=(15, 19),
    weight_decay=1e-3,
    alpha=128.0,
    entropy_weight=1e-3,
    cutoff=1e-2,
    dropout=0.2,
    released_dropout=0.2,
    heads=8,
    k=128,
    lr_patience=16,
    patience=40,
    batch_size=356,
    epochs=256,
    positions=True,
    encoder_layers=1,
    feedforward=2048,
    class_weights="published",
    selects="f1_macro",
    metric="f1",
    score=0.894,
    parameters=3.21e6,
    share=0.009,
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
_SMALL: dict[str, Any] = {"base": BART, "parameters": 0.87e6, "share": 0.002, "recomputed": 868_751}

SETUPS: tuple[SetUp, ...] = (
    _IMDB,
    replace(_IMDB, **_SMALL, released_dropout=0.005, batch_size=588, score=0.960),
    _COLA,
    replace(
        _COLA,
        **_SMALL,
        dropout=1e-2,
        released_dropout=0.1,
        lr_patience=16,
        patience=32,
        batch_size=900,
        score=0.809,
    ),
    _CONLL,
    replace(
        _CONLL,
        base=BART,
        class_weights="none",
        score=0.893,
        parameters=1.77e6,
        share=0.004,
        recomputed=2_298_134,
        classes=(),
    ),
)
"""The six of the thesis; of each dataset, RoBERTa-large's first."""


def setups(dataset: str, head: str) -> tuple[tuple[SetUp, ...], str]:
    """Return the published set-ups for a dataset, RoBERTa-large's first, and the dataset that they are for.

    A dataset without any takes those of CoLA (sequences) or CoNLL-2003 (tokens).
    """
    known = {setup.dataset for setup in SETUPS}
    source = dataset if dataset in known else {"sequence": "cola", "token": "conll2003"}[head]
    return tuple(setup for setup in SETUPS if setup.dataset == source), source


def published_mix(dataset: str, head: str) -> tuple[dict[str, float], str]:
    """Return the published alpha, lambda and cutoff for a dataset, and the dataset that they are from.

    Both base models share them.
    """
    (setup, *_), source = setups(dataset, head)
    return {name: getattr(setup, name) for name in ("alpha", "entropy_weight", "cutoff")}, source


def logit_travel(source: str, *, mix_lr: float, batch_size: int, train_examples: int) -> float:
    """Return how many times as far a mix logit can travel in an epoch as in the published runs, at the same alpha.

    The published runs are those of RoBERTa-large on `source`. Under Adam a step moves p by about its rate, so an
    epoch's reach is rate times steps.
    """
    setup = next(setup for setup in SETUPS if setup.dataset == source)
    steps = math.ceil(train_examples / batch_size)
    return (mix_lr * steps) / (setup.lr * setup.steps_per_epoch(train_examples))
