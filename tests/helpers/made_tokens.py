"""Small made-up data in token ids, for tests of models that run a backbone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.features.features import LiveFeatures
from adalayers.provenance import BackboneId, DatasetId, Provenance
from adalayers.states import Shape
from adalayers.tasks.kinds import KINDS

WORDS = (20, 60)
"""Token ids of words that all tiny vocabularies have, first and last + 1."""


@dataclass(frozen=True)
class Tokens:
    """A batch of token ids and nothing else."""

    input_ids: torch.Tensor
    lengths: torch.Tensor
    token_types: torch.Tensor | None = None


def made_tokens(*lengths: int) -> Tokens:
    """Return random sequences of these lengths."""
    generator = torch.Generator().manual_seed(0)
    return Tokens(torch.randint(*WORDS, (sum(lengths),), generator=generator), torch.tensor(lengths))


def shape_of(backbone: Backbone, family: str) -> Shape:
    """Return the shape of a task of two classes of texts on a backbone."""
    return Shape("sequence", 2, (backbone.streams[0],), backbone.width, family)


def token_data(source: BackboneSource, *, sizes: tuple[int, ...] = (64, 32, 32)) -> TrialData:
    """Return data in which the second token, one of two, says the label."""
    splits = {}
    for name, n in zip(("train", "validation", "test"), sizes, strict=True):
        rng = np.random.default_rng([n, len(name)])
        lengths, labels = rng.integers(4, 9, n), rng.integers(0, 2, n)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        ids = rng.integers(WORDS[0] + 2, WORDS[1], int(lengths.sum())).astype(np.int32)
        ids[offsets[:-1] + 1] = WORDS[0] + labels
        encoded = Encoded(ids, offsets)
        splits[name] = SplitData(LiveFeatures(source, encoded), labels, np.arange(n), tokens=encoded)
    shape = Shape("sequence", 2, source.streams, source.width, source.family)
    about = Provenance(
        backbone=BackboneId(id=source.id, revision=source.revision, fingerprint=source.fingerprint),
        dataset=DatasetId(source="made", fingerprint="1" * 16),
    )
    return TrialData(shape, ("a", "b"), "accuracy", splits, about, KINDS["sequence"], source)
