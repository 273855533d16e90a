"""Importances by fANOVA, kept in the results folder: they take seconds to minutes, and change only with the trials."""

from __future__ import annotations

import pandas as pd

from adalayers.storage.folder import Folder
from reports.evidence.importances import COLUMNS, FANOVA, importances, key, search_points
from reports.reading.load import Loaded
from reports.reading.space import domains

IMPORTANCES = "importances.json"


def fanova(place: Folder, loaded: Loaded, *, wanted: bool) -> pd.DataFrame | None:
    """Return importances by fANOVA: those kept, if they are of these very trials; else new ones, if `wanted`.

    New ones are written to `importances.json` with a hash of all they were computed from. Without
    `wanted`, and with none kept that still holds, None.
    """
    space, _ = domains(loaded.study)
    points = search_points(loaded.results.trials, loaded.plan, space)
    now = key(points, space, loaded.plan, FANOVA)
    if place.exists(IMPORTANCES):
        kept = _read(place)
        if kept and kept.get("key") == now:
            return pd.DataFrame(kept["rows"], columns=COLUMNS)
    if not wanted:
        return None
    table = importances(points, space, loaded.plan, FANOVA)
    place.write_json(IMPORTANCES, {"key": now, "evaluator": FANOVA, "rows": table.to_dict("records")})
    return table


def _read(place: Folder) -> dict:
    """Return what is kept; nothing where the file is broken: it is worked out again, never an error."""
    try:
        kept = place.read_json(IMPORTANCES)
        pd.DataFrame(kept["rows"], columns=COLUMNS)
    except (ValueError, KeyError, TypeError):
        return {}
    return kept
