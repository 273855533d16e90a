"""The thesis's published set-ups and scores (Dremov 2024, figures 7, 11, 15 and 19, sections 5.4.2 to 5.4.4), whole.

Where its text is silent (early stopping, epochs, class weights), the configurations released with it speak. Two
readings of a set-up are kept apart: `as-written`, what the text and its tables say, and `as-released`, what the code
does; the published scores are those of the code.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from adalayers.states import Settings

Reading = Literal["as-written", "as-released"]
READINGS: tuple[Reading, ...] = ("as-written", "as-released")


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
    classes:    published F1 by class, 0 to 1
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
    classes: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """One published training set-up: a dataset with a base model.

    Attributes:
        released_dropout: Of the released configuration; that of the thesis's table is in the run's configuration.
        run: What was published. Its `config` has the hyperparameters of the thesis's table, as `LayerMixConfig` names
            them; patience, epochs and class weights, on which the text says nothing, are those of the released
            configuration.
    """

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


SYMBOLS = {"alpha": "α", "entropy_weight": "λ", "mix_lr": "learning rate of p"}
"""What sentences call the mix's hyperparameters; p are the layer weights before the softmax."""


class PublishedMix(NamedTuple):
    """Values of the mix by hyperparameter, published or with a rate of the user's own, and of which dataset."""

    values: dict[str, float]
    source: str

    @property
    def words(self) -> str:
        """The values in a sentence, and the step that a logit of the mix takes with them."""
        values = ", ".join(f"{SYMBOLS.get(name, name)} = {value:g}" for name, value in self.values.items())
        return f"{values}: a step of {self.values['alpha'] * self.values['mix_lr']:.3g}"


_SETUPS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["setups"]
SETUPS = tuple(SetUp(run=Published(**each.pop("run")), **each) for each in _SETUPS)
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
