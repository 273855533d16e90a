"""Classification of texts and pairs (thesis 5.2.1), of words as tags of entities (5.2.2), and of single words."""

from __future__ import annotations

import itertools
from abc import ABC
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from adalayers.errors import BadInput
from adalayers.escaping import listed
from adalayers.tasks.columns import MAX_CLASSES, shape_of
from adalayers.tasks.kind import Gold, LabelColumn, LabelsByRole, Scores, TaskKind
from adalayers.tasks.metrics import (
    ACCURACY,
    CUT,
    F1,
    F1_MACRO,
    MATTHEWS,
    PRECISION,
    RANK_METRICS,
    RECALL,
    Answers,
    class_scores,
    entities,
    of_second,
    require_as_many,
    token_scores,
)
from adalayers.tasks.schemes import OUTSIDE, scheme_of, scheme_or_runs

if TYPE_CHECKING:
    from torch import Tensor

OUTSIDE_WEIGHT, OTHER_WEIGHT = 0.0292, 0.12
"""Of the tag O and of all other labels in the configuration released with the thesis for CoNLL-2003."""


class Classification(TaskKind, ABC):
    """What all kinds of classification share: one output per class, softmax, and weights per class."""

    def read_labels(self, column: LabelColumn) -> LabelsByRole:
        """Return the class names and, by role, the classes as int64 [items].

        Raises:
            BadInput: If there are too many or too few classes, or numbers that are no class.
        """
        feature = getattr(column.feature, "feature", column.feature)
        names = tuple(getattr(feature, "names", None) or ())
        if not names and shape_of(feature) == "int":
            names = column.fallback_names
        values = column.values
        if not names:
            names, values = _named_by_values(column)
        labels = {role: np.array(numbers, dtype=np.int64) for role, numbers in values.items()}
        outside = sum(int(((ids < 0) | (ids >= len(names))).sum()) for ids in labels.values())
        if outside:
            raise BadInput(
                f"wanted labels in 0..{len(names) - 1} in {column.where}, got {outside} others; label or drop them"
            )
        if len(names) < 2:
            raise BadInput(
                f"wanted at least two classes in {column.where}, got {len(names)}; name another column"
            )
        return names, labels

    def outside(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the classes that stand for no entity."""
        return (OUTSIDE,)

    def n_outputs(self, label_names: tuple[str, ...]) -> int:
        """Return the number of classes."""
        return len(label_names)

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the cross-entropy."""
        from torch.nn import functional

        return functional.cross_entropy(outputs, labels, reduction="none")

    def decode(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the most probable classes, int64 [items], and their probabilities, float64.

        In float32 all from a margin of 17 on would be 1, and a ranking by them tied at its top.
        """
        best = outputs.double().softmax(dim=-1).max(dim=-1)
        return best.indices, best.values

    def constant(self, gold: Gold) -> float:
        """Return the most frequent class."""
        return int(np.bincount(gold.labels).argmax())

    def describe_labels(self, gold: Gold) -> Scores:
        """Return how often each class occurs."""
        counts = np.bincount(gold.labels, minlength=len(gold.names))
        return dict(zip(gold.names, counts.tolist(), strict=True))

    def notes(self, gold: Mapping[str, Gold]) -> list[str]:
        """Return what may surprise of classes.

        Which differ by blanks or case alone, occur in validation or test but not train, or count 0 in macro F1.
        """
        counts = {role: self.describe_labels(split) for role, split in gold.items()}
        alike, notes = defaultdict(list), list[str]()
        for name in gold["train"].names:
            there = ", ".join(f"{role} {of[name]:,}" for role, of in counts.items() if of[name])
            alike["".join(name.split()).casefold()].append(f"{name!r} ({there or 'none'})")
        if pairs := [name for names in alike.values() for name in names if len(names) > 1]:
            notes.append(f"classes that differ by blanks or case alone are kept apart: {listed(pairs)}")
        for role in [role for role in counts if role != "train"]:
            unseen = {name: n for name, n in counts[role].items() if n and not counts["train"][name]}
            if unseen:
                notes.append(
                    f"{sum(unseen.values()):,} of {len(gold[role].labels):,} labels of {role} are of classes that "
                    f"train has none of: {listed(f'{name!r} ({n:,})' for name, n in unseen.items())}"
                )
            absent = [repr(name) for name, n in counts[role].items() if not n]
            if absent and F1_MACRO in self.metrics:
                notes.append(
                    f"macro F1, a mean over all {len(counts[role])} classes, counts 0 for {len(absent)} that {role} "
                    f"has none of: {listed(absent)}"
                )
        return notes

    def rescored(self, answers: Answers) -> Scores:
        """Return the scores of the names of classes, which may be more than `names`; what was cut away is of none."""
        labels, predictions = answers[:2]
        if self.per_word:
            require_as_many(labels, predictions)
            labels, predictions = (list(itertools.chain.from_iterable(of)) for of in answers[:2])
        names = dict.fromkeys([*answers.names, *labels, *predictions])
        if self.per_word:
            names.pop(CUT, None)
        number = {name: i for i, name in enumerate(names)}
        gold, predicted = (
            np.array([number.get(name, len(names)) for name in of], dtype=int) for of in (labels, predictions)
        )
        known = answers.probabilities if answers.names else None  # else the order of classes is not known
        return self.scores(Gold(gold, tuple(names)), predicted, known)

    def class_weights(self, scheme: str, gold: Gold) -> list[float] | None:
        """Return inverse frequencies (`balanced`), or the released CoNLL-2003 configuration's (`published`)."""
        if scheme == "published":
            outside = self.outside(gold.names)
            return [OUTSIDE_WEIGHT if name in outside else OTHER_WEIGHT for name in gold.names]
        if scheme == "balanced":
            counts = np.bincount(gold.labels, minlength=len(gold.names))
            return (counts.sum() / (len(counts) * np.maximum(counts, 1))).tolist()
        return super().class_weights(scheme, gold)


class SequenceClassification(Classification):
    """One class per text or pair of texts."""

    name = "sequence"
    title = "sequence classification"
    head = "sequence"
    input_shapes = ("text", "text pair")
    label_shapes = ("class",)
    metrics = (ACCURACY, F1_MACRO, MATTHEWS, *RANK_METRICS)
    default_metric = "f1_macro"
    demo = "acceptability-demo"

    def strata(self, labels: np.ndarray) -> np.ndarray:
        """Return the classes themselves: each keeps its share in validation."""
        return labels

    def scores(self, gold: Gold, predictions: np.ndarray, probabilities: np.ndarray | None = None) -> Scores:
        """Return accuracy, macro F1 and Matthews correlation, and of two classes that both occur `RANK_METRICS`."""
        scores = class_scores(gold.labels, predictions, len(gold.names))
        if len(gold.names) == 2 and probabilities is not None and 0 < gold.labels.sum() < len(gold.labels):
            second = of_second(predictions, probabilities)
            scores |= {metric.name: metric.score(gold.labels, second) for metric in RANK_METRICS}
        return scores

    def metrics_of(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return all scores for two classes, for others those without a ranking."""
        return tuple(each.name for each in self.metrics if len(label_names) == 2 or each not in RANK_METRICS)

    def as_text(self, gold: Gold, values: np.ndarray) -> list[str]:
        """Return the names of classes."""
        return np.array(gold.names)[values].tolist()


class OfWords(Classification, ABC):
    """What kinds share that have one class per word of texts that come as words."""

    head = "token"
    input_shapes = ("words",)
    label_shapes = ("tags",)

    def truncated_prediction(self, label_names: tuple[str, ...]) -> int:
        """Return a number that is no class: a word that truncation cut away is wrong, whatever it is."""
        return len(label_names)

    def prediction_names(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the classes, and what a word that was cut away is called where its prediction is none of them."""
        return (*label_names, CUT)

    def as_text(self, gold: Gold, values: np.ndarray) -> list[tuple[str, ...]]:
        """Return the classes of the words of each sentence."""
        names = np.array(self.prediction_names(gold.names), dtype=object)
        return [tuple(names[sentence]) for sentence in gold.by_example(values)]


class TokenClassification(OfWords):
    """One tag per word, which marks entities."""

    name = "token"
    title = "token classification"
    marks_entities = True
    metrics = (PRECISION, RECALL, F1)
    default_metric = "f1"
    demo = "entities-demo"

    def fits(self, label_names: tuple[str, ...], where: str) -> bool:
        """Return whether the tags mark entities, by a scheme that all of them follow.

        Raises:
            BadInput: If they are tags of entities of which some fit no scheme.
        """
        return scheme_of(label_names, where) is not None

    def described(self, label_names: tuple[str, ...]) -> str:
        """Return what the task is, and how its tags are read."""
        return f"{self.title} by {scheme_or_runs(label_names)}"

    def notes(self, gold: Mapping[str, Gold]) -> list[str]:
        """Return what is to be said of classes, and how many tagged words are in no entity."""
        scheme, notes = scheme_or_runs(gold["train"].names), super().notes(gold)
        for role, split in gold.items():
            sentences = self.as_text(split, split.labels)
            inside = sum(tag in scheme.places for tag in itertools.chain.from_iterable(sentences))
            found = entities(sentences, scheme)
            if alone := inside - int((found.ends - found.starts).sum()):
                notes.append(
                    f"{alone:,} of {inside:,} tagged words of {role} are in no entity that begins and ends as "
                    f"{scheme.name} has it"
                )
        return notes

    def outside(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tags for no entity."""
        return scheme_or_runs(label_names).outside

    def classes(self, label_names: tuple[str, ...]) -> int:
        """Return the number of types of entity."""
        return len(scheme_or_runs(label_names).types)

    def truncated_prediction(self, label_names: tuple[str, ...]) -> int:
        """Return the tag for no entity; where there is none, a number that is no tag."""
        outside = self.outside(label_names)
        return next((i for i, name in enumerate(label_names) if name in outside), len(label_names))

    def metrics_of(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return precision, recall and F1 over all entities, and F1 of each type of entity."""
        of_types = tuple(f"f1/{name}" for name in scheme_or_runs(label_names).types)
        return super().metrics_of(label_names) + of_types

    def scores(self, gold: Gold, predictions: np.ndarray, probabilities: np.ndarray | None = None) -> Scores:
        """Return precision, recall and F1 over entities, and `f1/<TYPE>` for each type in the labels."""
        true, said = (self.as_text(gold, values) for values in (gold.labels, predictions))
        return token_scores(true, said, scheme_or_runs(gold.names))

    def rescored(self, answers: Answers) -> Scores:
        """Return the scores of sentences of tags."""
        labels, predictions = answers[:2]
        known = answers.names or sorted({*itertools.chain.from_iterable((*labels, *predictions))})
        return token_scores(labels, predictions, scheme_or_runs(known))


class WordClassification(OfWords):
    """One class per word; no class stands for words outside any entity."""

    name = "word"
    title = "word classification"
    metrics = (ACCURACY, F1_MACRO)
    default_metric = "accuracy"
    demo = "word-classes-demo"

    def scores(self, gold: Gold, predictions: np.ndarray, probabilities: np.ndarray | None = None) -> Scores:
        """Return accuracy and macro F1 over all words."""
        return class_scores(gold.labels, predictions, len(gold.names), self.metrics)


def _named_by_values(column: LabelColumn) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Return the values that occur as class names, and by role the number of each value's class."""
    values = set(itertools.chain.from_iterable(column.values.values()))
    # The hub's order where it is known, so that a copy with names for numbers stays the same task.
    names = column.fallback_names if values <= set(column.fallback_names) else sorted(values)
    if len(names) > MAX_CLASSES:
        raise BadInput(
            f"wanted at most {MAX_CLASSES} classes in {column.where}, got {len(names)}; name another column"
        )
    numbers = {name: number for number, name in enumerate(names)}
    return tuple(map(str, names)), {
        role: [numbers[value] for value in values] for role, values in column.values.items()
    }
