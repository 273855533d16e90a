"""What `study.json` says of the classes of the data."""

from __future__ import annotations

from adalayers.results.study_file import DatasetRecord


def majority(dataset: DatasetRecord, split: str) -> tuple[str, float]:
    """Return the most frequent class of a split and its share; ("", 0) where no class is known."""
    counts = dataset.distribution.get(split, {}) if dataset.labels else {}
    if not sum(counts.values()):
        return "", 0.0
    most = max(counts, key=counts.__getitem__)
    return most, counts[most] / sum(counts.values())
