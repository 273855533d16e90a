"""What can be known of a backbone and its data without training: a file per measure, and the list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adalayers.measures import masked_lm, proxy_a, variability, vocabulary
from adalayers.measures.given import Given
from adalayers.results.measures import Measured, measured, write_measures
from adalayers.storage.folder import Folder

MEASURES: dict[str, Callable[[Given], Measured]] = {
    "vocabulary": vocabulary.measure,
    "proxy_a": proxy_a.measure,
    "masked_lm": masked_lm.measure,
    "variability": variability.measure,
}


def measure(names: Sequence[str], given: Given, folder: Folder) -> dict[str, Measured]:
    """Return these measures of a case, from its `measures.json` if that is of the same data, else taken and written.

    Raises `BadInput` where the data cannot be had.
    """
    key: Mapping[str, Any] = {"names": list(names), **given.key}
    if found := measured(folder, key):
        return found
    found = {name: MEASURES[name](given) for name in names}
    write_measures(folder, key, found)
    return found
