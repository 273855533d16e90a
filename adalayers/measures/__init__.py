"""What can be known of a backbone and its data without training: a file per measure, and the list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adalayers.backbones.loading import shared_backbone
from adalayers.measures import proxy_a, variability
from adalayers.measures.case_data import CaseData
from adalayers.results.measures import Measured, measured, write_measures
from adalayers.storage.folder import Folder

MEASURES: dict[str, Callable[[CaseData], Measured]] = {
    "proxy_a": proxy_a.measure,
    "variability": variability.measure,
}


def measure(names: Sequence[str], case: CaseData, folder: Folder) -> dict[str, Measured]:
    """Return these measures of a case, from its `measures.json` if that is of the same data, else taken and written.

    Raises:
        BadInput: If the data cannot be had.
    """
    key = {"names": list(names), **case.key}
    measures = measured(folder, key)
    if not measures:
        measures = {name: MEASURES[name](case) for name in names}
        shared_backbone.cache_clear()  # its memory is the trials'
        write_measures(folder, key, measures)
    return measures
