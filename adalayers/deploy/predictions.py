"""Predictions of tasks for a text: a label with its probability, tags of words with their entities, or a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from adalayers.deploy.tokenized import TokenizedText
from adalayers.models.model import FusionModel
from adalayers.tasks.kind import TaskKind
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.metrics import entities
from adalayers.tasks.schemes import scheme_or_runs


@dataclass(frozen=True)
class TextPrediction:
    """A label of a whole text; probabilities: of all labels, in order."""

    label: str
    probability: float
    probabilities: dict[str, float]

    def __str__(self) -> str:
        return f"{self.label} {self.probability:.3f}"


@dataclass(frozen=True)
class Number:
    """The number that a regression predicts for a text."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:g}"


@dataclass(frozen=True)
class Entity:
    """A run of words of one type; start and end (exclusive) in characters; the mean probability of its words' tags."""

    label: str
    text: str
    start: int
    end: int
    probability: float

    def __str__(self) -> str:
        return f"{self.label} {self.text!r} {self.start}:{self.end} {self.probability:.3f}"


@dataclass(frozen=True)
class Tags:
    """A tag of each word, and the entities that they make.

    Words beyond the maximum length have the tag of no entity.
    """

    entities: tuple[Entity, ...]
    tags: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.entities)) or "none"


Prediction = TextPrediction | Number | Tags
"""A task's prediction for one text."""


def task_kind(task: FusionModel) -> TaskKind:
    """Return the kind of a task: the one that was saved with it, else the first that has its head."""
    name = task.about.get("kind")
    if name in KINDS:
        return KINDS[name].as_saved(task.about)
    return next(kind for kind in KINDS.values() if kind.head == task.shape.head)


def label_names(task: FusionModel) -> tuple[str, ...]:
    """Return the labels of a task, none of regression; their numbers where it was saved without."""
    return tuple(map(str, task.about.get("labels", range(task.shape.n_outputs))))


def prediction_of(
    task: FusionModel, text: str, tokenized: TokenizedText, outputs: Float[Tensor, ...]
) -> Prediction:
    """Return a task's prediction for a text, from its outputs: [outputs], or [tokens, outputs]."""
    kind, names = task_kind(task), label_names(task)
    if kind.per_word:
        return _tags(task, text, tokenized, outputs)
    values, probabilities = kind.decode(outputs.unsqueeze(0))
    if not names:
        return Number(float(values[0]))
    shares = dict(zip(names, outputs.softmax(dim=-1).tolist(), strict=True))
    return TextPrediction(names[int(values[0])], float(probabilities[0]), shares)


def _tags(task: FusionModel, text: str, tokenized: TokenizedText, outputs: Tensor) -> Tags:
    """Return the tag of each word, predicted at the token that answers for it, and the entities."""
    kind, names = task_kind(task), label_names(task)
    last = task.config.word_token(task.shape) == "last-token"
    word_tokens = tokenized.last if last else tokenized.first
    present = word_tokens >= 0
    predicted = np.full(len(tokenized.words), int(kind.truncated_prediction(names)))
    probability = np.ones(len(tokenized.words))
    decoded, probabilities = kind.decode(outputs[word_tokens[present]])
    predicted[present], probability[present] = decoded.cpu().numpy(), probabilities.cpu().numpy()
    prediction_names = kind.prediction_names(names)
    tags = tuple(prediction_names[tag] for tag in predicted)
    scheme, runs = scheme_or_runs(names), []
    begins, ends, entity_types = entities([tags], scheme)
    # `entities` counts a word in front of the first.
    for begin, end, entity_type in zip(begins - 1, ends - 1, entity_types, strict=True):
        start, stop = tokenized.words[begin][0], tokenized.words[end - 1][1]
        mean = float(probability[begin:end].mean())
        runs.append(Entity(scheme.types[entity_type], text[start:stop], start, stop, mean))
    return Tags(tuple(runs), tags)
