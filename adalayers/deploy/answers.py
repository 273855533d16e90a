"""What tasks say of a text: a label with its probability, tags of words and the entities they make, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float
from torch import Tensor

from adalayers.deploy.reading import Read
from adalayers.models.model import FusionModel
from adalayers.tasks.kind import TaskKind
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.metrics import entities


class Answer(Protocol):
    """An answer to one text."""

    def as_json(self) -> dict[str, Any]:
        """Return it in JSON's own types."""
        ...

    def rows(self) -> list[dict[str, Any]]:
        """Return it as rows of a table: `label`, `probability`, and of entities `text`, `start` and `end`."""
        ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Label:
    """A label of a whole text; probabilities: of all labels, in order."""

    label: str
    probability: float
    probabilities: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        return {"label": self.label, "probability": self.probability, "probabilities": self.probabilities}

    def rows(self) -> list[dict[str, Any]]:
        return [{"label": self.label, "probability": self.probability}]

    def __str__(self) -> str:
        return f"{self.label} {self.probability:.3f}"


@dataclass(frozen=True)
class Number:
    """A number that a task gives a text."""

    value: float

    def as_json(self) -> dict[str, Any]:
        return {"value": self.value}

    def rows(self) -> list[dict[str, Any]]:
        return [{"label": f"{self.value:g}"}]

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

    def as_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "probability": self.probability,
        }


@dataclass(frozen=True)
class Tags:
    """A tag of each word, and the entities that they make; words that were cut away have the tag of no entity.

    lost: how many those are
    """

    entities: tuple[Entity, ...]
    tags: tuple[str, ...]
    lost: int

    def as_json(self) -> dict[str, Any]:
        return {
            "entities": [entity.as_json() for entity in self.entities],
            "tags": list(self.tags),
            "lost": self.lost,
        }

    def rows(self) -> list[dict[str, Any]]:
        return [entity.as_json() for entity in self.entities]

    def __str__(self) -> str:
        said = [f"{e.label} {e.text!r} {e.start}:{e.end} {e.probability:.3f}" for e in self.entities]
        return "; ".join(said) or "none"


def kind_of(task: FusionModel) -> TaskKind:
    """Return the kind of a task: the one that was saved with it, else the first that has its head."""
    name = task.about.get("kind")
    if name in KINDS:
        return KINDS[name].as_saved(task.about)
    return next(kind for kind in KINDS.values() if kind.head == task.shape.head)


def label_names(task: FusionModel) -> tuple[str, ...]:
    """Return the labels of a task, none of regression; their numbers where it was saved without."""
    names = tuple(map(str, task.about.get("labels", ())))
    if not names and "labels" in task.about:
        return ()
    return names if len(names) == task.shape.n_outputs else tuple(map(str, range(task.shape.n_outputs)))


def answer(task: FusionModel, text: str, read: Read, outputs: Float[Tensor, ...]) -> Answer:
    """Return what a task says of a text, of its outputs: [outputs], or [tokens, outputs]."""
    kind = kind_of(task)
    names = label_names(task)
    if kind.per_word:
        last = task.config.word_token(task.shape) == "last-token"
        return _tags(kind, names, text, read, read.last if last else read.first, outputs)
    if not task.about.get("labels", names):
        value, _ = kind.decode(outputs.unsqueeze(0))
        return Number(float(value[0]))
    shares = outputs.softmax(dim=-1).tolist()
    predicted, sure = kind.decode(outputs.unsqueeze(0))
    return Label(names[int(predicted[0])], float(sure[0]), dict(zip(names, shares, strict=True)))


def _tags(
    kind: TaskKind, names: Sequence[str], text: str, read: Read, places: np.ndarray, outputs: Tensor
) -> Tags:
    """Return the tag of each word, that of its token in `places`, and the entities."""
    there = places >= 0
    predicted = np.full(len(read.words), int(kind.truncated_prediction(tuple(names))))
    sure = np.ones(len(read.words))
    if there.any():
        decoded, probability = kind.decode(outputs[places[there]])
        predicted[there], sure[there] = decoded.cpu().numpy(), probability.cpu().numpy()
    tags = tuple(names[tag] for tag in predicted)
    types: dict[str, int] = {}
    begins, ends, kinds = entities([list(tags)], types)
    numbered = list(types)
    found = []
    for begin, end, number in zip(
        begins - 1, ends - 1, kinds, strict=True
    ):  # an O lies before the first word
        start, stop = read.words[begin][0], read.words[end - 1][1]
        mean = float(sure[begin:end].mean())
        found.append(Entity(numbered[number], text[start:stop], start, stop, mean))
    return Tags(tuple(found), tags, int((~there).sum()))
