"""`measures.json`: what was measured of a case's backbone and data without training, for its writer and its readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adalayers.storage.folder import Folder
from adalayers.storage.to_json import to_json

MEASURES = "measures.json"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One measure of a case.

    title:     what tables call it; unit: of its value; how: how it was measured, in a sentence
    value:     None where it cannot be had; why says the reason
    low, high: between which it lies, 95%, over other draws of the same data; None where nothing says
    nothing:   what the measure gives where there is nothing to find, as much of it as data of this size shows anyway
    n:         how much data it rests on; counted: in what ("examples of each", "tokens of each"), `of` in the file
    by_layer:  of a measure of layers, what it is by the hidden state's name ("01"); value then says what follows
    distance:  whether it is the data's distance from the reference dataset, which cases are compared by
    """

    title: str = ""
    unit: str = ""
    how: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    nothing: float | None = None
    n: int = 0
    counted: str = ""
    why: str = ""
    by_layer: dict[str, float] = field(default_factory=dict)
    distance: bool = True

    @property
    def beyond(self) -> float | None:
        """The value beyond what there is where there is nothing to find."""
        return None if self.value is None else self.value - (self.nothing or 0.0)


Scores = dict[str, float]
"""{"val/<score>": ..., "test/<score>": ...}."""


def write_references(folder: Folder, key: Mapping[str, Any], rows: Mapping[str, Scores]) -> None:
    """Write the scores of references, by name; key: all that the numbers follow from."""
    _write(folder, references={"key": key, "scores": rows})


def read_references(folder: Folder, key: Mapping[str, Any] | None = None) -> dict[str, Scores] | None:
    """Return the scores of references that the file holds, by name; None where it holds no word, or of another key."""
    try:
        references = folder.read_object(MEASURES)["references"]
        if key is not None and references["key"] != to_json(key):
            return None
        return {
            str(name): {str(score): float(value) for score, value in scores.items() if value is not None}
            for name, scores in references["scores"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def write_shared(folder: Folder, indices: Mapping[str, Sequence[int]]) -> None:
    """Write, by split, the indices of the examples that also stand in train."""
    _write(folder, shared=indices)


def read_shared(folder: Folder, split: str) -> list[int]:
    """Return the indices of the examples of a split that also stand in train; none where the file has none."""
    try:
        return [int(index) for index in folder.read_object(MEASURES)["shared"][split]]
    except (ValueError, KeyError, TypeError):
        return []


def write_measures(folder: Folder, key: Mapping[str, Any], measures: Mapping[str, Measured]) -> None:
    """Write what was measured, by name; key: all that the numbers follow from."""
    rows = {name: _renamed(dataclasses.asdict(row), "counted", "of") for name, row in measures.items()}
    _write(folder, key=key, measures=rows)


def measured(folder: Folder, key: Mapping[str, Any] | None = None) -> dict[str, Measured]:
    """Return what the file holds, by name; empty without a file, for a broken one, and for one of another key."""
    document = folder.read_object(MEASURES)
    try:
        rows = document["measures"].items() if key in (None, document["key"]) else ()
        return {name: Measured(**_renamed(row, "of", "counted")) for name, row in rows}
    except (KeyError, TypeError, AttributeError):
        return {}


def damaged(folder: Folder) -> str:
    """Return why the file cannot be read; "" where it can, or there is none."""
    try:
        return "" if not folder.exists(MEASURES) or dict(folder.read_json(MEASURES)) else "it is empty"
    except (ValueError, TypeError) as error:
        return str(error)


def _renamed(row: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in row.items()}


def _write(folder: Folder, **parts: Mapping[str, Any]) -> None:
    """Write these parts of the file, and leave the others."""
    folder.write_json(MEASURES, {**folder.read_object(MEASURES), **parts})
