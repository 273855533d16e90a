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


@dataclass(frozen=True)
class Reading:
    """What was read of a dataset.

    Attributes:
        path: Where: a folder, or an id on the hub.
        roles: Source split of train, validation and test, in words.
        unused: Source splits, and files in the folder, that are not used, each with why: "test (no labels)".
        columns: Of the texts, then of the labels; () where there are no columns.
        notes: What a reader may not expect of how it was read, a clause each: "test.tsv: quotes are text".
    """

    path: str = ""
    roles: dict[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), metadata={"later": True})


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
