"""The embedded datasets by name: their generated examples as inputs and labels, with a name for each class."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalayers.tasks import demo_data, demo_pairs, demo_words
from adalayers.tasks.kind import Labels


@dataclass(frozen=True)
class Embedded:
    """A generated dataset: the kind of task by name, the names of its classes, and its (input, label)s by split."""

    kind: str
    label_names: tuple[str, ...]
    examples: Callable[[], Mapping[str, list[Any]]]


EMBEDDED_DATA = {
    "acceptability-demo": Embedded("sequence", demo_data.ACCEPTABILITY_LABELS, demo_data.acceptability),
    "inference-demo": Embedded("sequence", demo_pairs.INFERENCE_LABELS, demo_pairs.inference),
    "similarity-demo": Embedded("regression", (), demo_pairs.similarity),
    "entities-demo": Embedded("token", demo_data.ENTITY_LABELS, demo_data.entities),
    "word-classes-demo": Embedded("word", demo_words.WORD_CLASSES, demo_words.word_classes),
}


def examples(name: str) -> dict[str, tuple[list[Any], Labels]]:
    """Return inputs and labels by split: [n], of classes int64 and of numbers float32, or n arrays [words]."""
    found: dict[str, tuple[list[Any], Labels]] = {}
    for split, rows in _generated(name).items():
        inputs = [given for given, _ in rows]
        labels = [np.asarray(label) for _, label in rows]
        if labels[0].ndim == 1:
            found[split] = (inputs, labels)
        else:
            of = np.array(labels)
            found[split] = (inputs, of.astype(np.float32) if of.dtype.kind == "f" else of)
    return found


@functools.cache
def _generated(name: str) -> Mapping[str, list[Any]]:
    """Return a dataset's examples, always the same: generated once, as a study of many backbones asks for each."""
    return EMBEDDED_DATA[name].examples()
