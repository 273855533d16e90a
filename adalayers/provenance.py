"""What the data of a trial follows from: which backbone computed it, of which dataset."""

from __future__ import annotations

from dataclasses import dataclass, field

from adalayers.states import ComputeType


@dataclass(frozen=True, kw_only=True)
class BackboneId:
    """A backbone: its id, the commit of the hub where known, its files, and what it computes in."""

    id: str = ""
    revision: str | None = None
    fingerprint: str = ""
    dtype: ComputeType = "float32"


@dataclass(frozen=True, kw_only=True)
class DatasetId:
    """A dataset: its id, the revision asked for, and its content."""

    source: str = ""
    revision: str | None = None
    fingerprint: str = ""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What determines the data of a trial.

    Attributes:
        labels: Names of the classes.
        precision: In what hidden states are stored.
        splits: By split, a hash of its tokens and labels.
        metric: What selects, where it is not the dataset's own: it decides when a trial ends.
    """

    backbone: BackboneId
    dataset: DatasetId
    labels: tuple[str, ...] = ()
    precision: str = "float32"
    splits: dict[str, str] = field(default_factory=dict)
    metric: str | None = None
