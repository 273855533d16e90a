"""A trial as `trials.csv` has it: what it is, the hyperparameters that it uses, and what training found."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from adalayers.config import DEFAULT_FUSION, TrialConfig, used_config
from adalayers.errors import BadInput
from adalayers.provenance import Provenance
from adalayers.results.files import FINISHED, RESTORE, TRIALS, read_trials
from adalayers.states import Shape
from adalayers.storage.folder import Folder, damaged
from adalayers.study import trial_id

Cell = str | int | float | bool
"""A value of a row, as JSON and `trials.csv` hold it."""

TAKEN_FROM = "taken_from"
"""Column of `trials.csv`: the study that trained the trial, as <study>/<name>; empty for those of the study itself."""
TAKEN_COMMIT = "taken_commit"
"""Column of `trials.csv`: the commit that trained it there, and `UNCOMMITTED` where its code had changes."""
TEXTS = ("group", "predictions", TAKEN_FROM, TAKEN_COMMIT)
"""What of `found` is no number."""

_SETTINGS = {name: name for name in ("train_examples", "draw")}
"""Hyperparameters -> their columns, where these are not `config/<name>`."""


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """A row of `trials.csv`; what is empty there is "" here, or in neither of the mappings.

    Attributes:
        stage, arm, search, status, error: As `docs/files.md` explains the columns.
        settings: The hyperparameters that it uses, by name.
        found: What training found, by column: scores, costs, a fusion's notes, its group.
    """

    trial_id: str
    stage: str
    arm: str = ""
    search: str = ""
    status: str = "unfinished"
    error: str = ""
    seed: int
    fusion: str = DEFAULT_FUSION
    settings: Mapping[str, Cell] = field(default_factory=dict)
    found: Mapping[str, Cell] = field(default_factory=dict)

    @classmethod
    def of_cells(cls, cells: Mapping[str, str]) -> TrialRow:
        """Return the row of some cells by column, as texts.

        Raises:
            KeyError: What every row has is not there.
            ValueError, OverflowError: Its seed is no whole number.
        """
        there = {name: cell for name, cell in cells.items() if cell}
        seed = int(float(there.pop("seed")))
        own = {name: there.pop(name) for name in _OWN if name in there}
        found = {name: cell if name in TEXTS else _value(cell) for name, cell in there.items()}
        columns = [name for name in there if name.startswith("config/") or name in _SETTINGS]
        settings = {name.removeprefix("config/"): found.pop(name) for name in columns}
        return cls(**{"trial_id": "", **own}, seed=seed, settings=settings, found=found)

    def cells(self) -> dict[str, Cell]:
        """Return the row by column."""
        settings = {_SETTINGS.get(name, f"config/{name}"): value for name, value in self.settings.items()}
        return {name: getattr(self, name) for name in (*_OWN, "seed")} | settings | dict(self.found)

    @property
    def finished(self) -> bool:
        """Whether it never changes again."""
        return self.status in FINISHED

    @property
    def confirmed(self) -> bool:
        """Whether it confirms an arm and has completed."""
        return self.stage == "confirm" and self.status == "completed"

    @property
    def scores(self) -> dict[str, Cell]:
        """Its scores by column: all of `val/*`, and of `test/*` where the test split was scored."""
        return {name: value for name, value in self.found.items() if name.startswith(("val/", "test/"))}

    def score(self, metric: str) -> float | None:
        """Return its score on validation, None where it has none."""
        return None if (value := self.found.get(f"val/{metric}")) is None else float(value)

    @cached_property
    def config(self) -> TrialConfig:
        """The configuration that it was trained with. Raises `BadInput` as `used_config` does."""
        return used_config(self.fusion, self.settings)

    def identity(self, shape: Shape, provenance: Provenance) -> str:
        """Return the id that it has on a backbone and data.

        Raises:
            BadInput: As `config` does, or where that does not fit the shape.
        """
        return trial_id(self.config, shape, self.seed, provenance)


_CONVERTED = ("seed", "settings", "found")
_OWN = tuple(each.name for each in dataclasses.fields(TrialRow) if each.name not in _CONVERTED)


def read_trial_rows(folder: Folder, *, advice: str = RESTORE) -> dict[str, TrialRow]:
    """Return trial_id -> row of `trials.csv`, numbers exactly as they are written.

    Raises `BadInput` as `read_trials` does, and for a seed that is no number.
    """
    read_trials(folder, advice=advice)
    frame = pd.read_csv(io.BytesIO(folder.read_bytes(TRIALS)), dtype=str, keep_default_na=False)
    rows = {}
    for cells in frame.to_dict("records"):
        try:
            rows[cells["trial_id"]] = TrialRow.of_cells({str(name): cell for name, cell in cells.items()})
        except (KeyError, ValueError, OverflowError) as error:
            raise _no_number(folder, "seed", cells["trial_id"], cells["seed"], advice) from error
    return rows


def require_scores(folder: Folder, rows: Iterable[TrialRow], *, advice: str = RESTORE) -> None:
    """Raise `BadInput` for a score or time that is no number."""
    for row in rows:
        for name in (*row.scores, "seconds"):
            if isinstance(cell := row.found.get(name), str):
                raise _no_number(folder, name, row.trial_id, cell, advice)


def _no_number(folder: Folder, name: str, trial_id: str, cell: str, advice: str) -> BadInput:
    why = f"{name} of trial {trial_id} is {cell[:40]!r}, no number"
    return damaged(folder, TRIALS, why, lost="what rests on it is lost", advice=advice)


def _value(cell: str) -> Cell:
    """Return a text that is a number, or says true or false, as such."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(cell)
    return {"True": True, "False": False}.get(cell, cell)
