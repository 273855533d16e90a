"""What measures read: a case's training texts, and those of the dataset that stands for the base model's domain."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adalayers.backbones import backbone as backbones
from adalayers.backbones.backbone import Backbone
from adalayers.backbones.tokens import Encoded, load_tokenizer
from adalayers.data.prepare import Prepared, prepare

REFERENCE = "reference_dataset"
"""The flag that names the dataset which a case's data is measured against."""

SEED = 0
"""Sets every draw of every measure."""


@dataclass(frozen=True)
class Given:
    """What measures read of a case; own: the study's own flags, as they were typed."""

    prepared: Prepared
    own: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def reference(self) -> Prepared:
        """The reference dataset in the tokens of the case's backbone. Raises `BadInput` where it cannot be had."""
        asked = self.prepared.request
        if self.own[REFERENCE] == asked.dataset:
            return self.prepared
        return prepare(
            replace(asked, dataset=self.own[REFERENCE], text_column=None, label_column=None, metric=None)
        )

    @property
    def same(self) -> bool:
        """Whether the case's data is the reference: it is then measured against other examples of its own."""
        return self.texts_fingerprint(self.prepared) == self.texts_fingerprint(self.reference)

    @property
    def key(self) -> dict[str, Any]:
        """All that the numbers follow from, in JSON's own types; a study without the flag has no reference."""
        reference = {"reference": self.texts_fingerprint(self.reference)} if REFERENCE in self.own else {}
        return {
            "backbone": self.prepared.source.fingerprint,
            "train": self.texts_fingerprint(self.prepared),
            **reference,
        }

    def pools(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the training examples of the case and of the reference, each in random order, int64.

        Of data that is its own reference two halves without a common example.
        """
        ours = rng.permutation(len(self.encoded.offsets) - 1)
        if self.same:
            return ours[: len(ours) // 2], ours[len(ours) // 2 :]
        return ours, rng.permutation(len(self.reference_encoded.offsets) - 1)

    @property
    def encoded(self) -> Encoded:
        return self.prepared.encoded["train"]

    @property
    def reference_encoded(self) -> Encoded:
        return self.reference.encoded["train"]

    @functools.cached_property
    def special(self) -> np.ndarray:
        """The token ids that are no part of a text, int64."""
        return np.array(sorted(load_tokenizer(self.prepared.source).all_special_ids), dtype=np.int64)

    @functools.cached_property
    def backbone(self) -> Backbone:
        return backbones.load(self.prepared.source.whole)

    @staticmethod
    def texts_fingerprint(of: Prepared) -> str:
        return str(of.about()["splits"]["train"])


def texts(encoded: Encoded, examples: np.ndarray, special: np.ndarray) -> np.ndarray:
    """Return the token ids of these examples end to end, without special ones, int64."""
    ids = encoded.take(examples).input_ids.astype(np.int64)
    return ids[~np.isin(ids, special)]
