"""Rows of `trials.csv` against the ids that they have: whether a row is of what it says, and of what is read now."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from adalayers.config import DEFAULT_FUSION, TrialConfig, config_class, trial_config
from adalayers.provenance import Provenance
from adalayers.states import Shape
from adalayers.study import trial_id


def config_of(row: Mapping[str, str]) -> TrialConfig:
    """Return the configuration that a row was trained with.

    A hyperparameter that the row lacks is what it was before there was one (`absent` of its field).

    Args:
        row: Its texts by column, as `read_texts` gives them.

    Raises:
        BadInput: The row names what is no hyperparameter, or has an impossible value.
    """
    names = {name: name.removeprefix("config/") for name in row if name.startswith("config/")}
    names |= {name: name for name in ("train_examples", "draw")}
    settings = {name: row[column] for column, name in names.items() if row.get(column)}
    fusion = row.get("fusion") or DEFAULT_FUSION
    before = {
        field.name: field.metadata["absent"]
        for field in dataclasses.fields(config_class(fusion))
        if "absent" in field.metadata
    }
    return trial_config(fusion=fusion, **before | settings)


def identity_of(row: Mapping[str, str], shape: Shape, provenance: Provenance) -> str:
    """Return the id that a row's trial has on a backbone and data.

    Args:
        row: As `config_of` takes it, with its seed.
        shape: Of backbone and task.
        provenance: Of the data.

    Raises:
        BadInput: As `config_of` does, or where the configuration does not fit the shape.
    """
    return trial_id(config_of(row), shape, int(row["seed"]), provenance)
