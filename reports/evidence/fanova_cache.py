"""Importances by fANOVA, cached in the results folder: they take seconds to minutes, and change with the trials."""

from __future__ import annotations

import pandas as pd

from adalayers.storage.folder import Folder
from reports.evidence.importances import FANOVA, IMPORTANCE_COLUMNS, importances, key, search_points
from reports.reading.load import Loaded
from reports.reading.space import domains

IMPORTANCES = "importances.json"


def fanova(folder: Folder, loaded: Loaded, *, wanted: bool) -> pd.DataFrame | None:
    """Return importances by fANOVA: the cached ones where they are of these trials; else new ones, if `wanted`.

    New ones are written to `importances.json` with a hash of all they were computed from. Without `wanted`, and with
    none cached that still hold, None.
    """
    space, _ = domains(loaded.study)
    points = search_points(loaded.results.trials, loaded.plan, space)
    current = key(points, space, FANOVA)
    if folder.exists(IMPORTANCES):
        cached = _read(folder)
        if cached and cached.get("key") == current:
            return pd.DataFrame(cached["rows"], columns=IMPORTANCE_COLUMNS)
    if not wanted:
        return None
    table = importances(points, space, FANOVA)
    folder.write_json(IMPORTANCES, {"key": current, "evaluator": FANOVA, "rows": table.to_dict("records")})
    return table


def _read(folder: Folder) -> dict:
    """Return the cache; nothing where the file is broken: it is computed again, never an error."""
    try:
        cached = folder.read_json(IMPORTANCES)
        pd.DataFrame(cached["rows"], columns=IMPORTANCE_COLUMNS)
    except (ValueError, KeyError, TypeError):
        return {}
    return cached
