"""What measures read: a case's training texts, and those of the dataset that stands for the base model's domain."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adalayers.backbones.sources import require_base_model
from adalayers.backbones.tokens import Encoded
from adalayers.data.prepare import Prepared, prepare
from adalayers.features.features import LiveFeatures
from adalayers.storage.to_json import JsonObject

REFERENCE = "reference_dataset"
"""The flag that names the dataset which a case's data is measured against."""

SEED = 0
"""Sets every draw of every measure."""

Pool = tuple[Encoded, np.ndarray]
"""Texts, and which of them are meant: example numbers in random order, int64."""


@dataclass(frozen=True)
class CaseData:
    """What measures read of a case.

    Attributes:
        prepared: Its backbone and data.
        flags: The study's own flags, as they were typed.
    """

    prepared: Prepared
    flags: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def reference(self) -> Prepared:
        """The reference dataset in the tokens of the case's backbone.

        Raises:
            BadInput: Where it cannot be had.
        """
        request, reference = self.prepared.request, self.flags[REFERENCE]
        require_base_model(self.prepared.source, f"that reads {reference} too")
        if reference == request.dataset:
            return self.prepared
        plain = replace(request, text_column=None, label_column=None, group_column=None, metric=None)
        return prepare(replace(plain, dataset=reference, splits=()))

    @property
    def key(self) -> JsonObject:
        """All that the numbers follow from, in JSON's own types; a study without the flag has no reference."""
        key: JsonObject = {"backbone": self.prepared.source.fingerprint, "train": _fingerprint(self.prepared)}
        return key | ({"reference": _fingerprint(self.reference)} if REFERENCE in self.flags else {})

    def pools(self, rng: np.random.Generator) -> tuple[Pool, Pool]:
        """Return the training examples of the case and of the reference.

        Of data that is its own reference two halves without a common example.
        """
        own, reference = self.encoded, self.reference.encoded["train"]
        order = rng.permutation(len(own.offsets) - 1)
        if _fingerprint(self.prepared) == _fingerprint(self.reference):
            return (own, order[: len(order) // 2]), (own, order[len(order) // 2 :])
        return (own, order), (reference, rng.permutation(len(reference.offsets) - 1))

    @property
    def encoded(self) -> Encoded:
        """The training examples of the case in tokens."""
        return self.prepared.encoded["train"]

    def features(self, encoded: Encoded) -> LiveFeatures:
        """Return all hidden states of such examples, computed when they are read."""
        return LiveFeatures(self.prepared.source.with_all_states, encoded)


def _fingerprint(prepared: Prepared) -> str:
    return prepared.provenance.splits["train"]
