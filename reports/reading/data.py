"""What `study.json` says of the data beyond its size: what was cut, and what stands in train as well."""

from __future__ import annotations

from adalayers.results.study_file import DatasetRecord
from reports.words.labels import SPLITS
from reports.words.text import count


def cuts(dataset: DatasetRecord, above: float = -1.0) -> list[str]:
    """Return "train 46.0% (184 of 400 examples, 1,203 words lost)" for each split that was cut to the maximum length.

    above: for those alone of which a larger share was cut; of a split of unknown size any cut is one of all
    """
    found = []
    for split, counts in dataset.truncated.items():
        cut, total = int(counts.get("examples", 0)), dataset.examples.get(split)
        if (cut / total if total else float(bool(cut))) > above:
            size = f"{cut:,} of {total:,} examples" if total else count(cut, "example")
            words = f", {count(counts['words'], 'word')} lost" if "words" in counts else ""
            share = f"{cut / total:.1%} " if total else ""
            found.append(f"{SPLITS.get(split, split)} {share}({size}{words})")
    return found


def majority(dataset: DatasetRecord, split: str) -> tuple[str, float]:
    """Return the most frequent class of a split and its share; ("", 0) where no class is known."""
    counts = dataset.distribution.get(split, {}) if dataset.labels else {}
    if not sum(counts.values()):
        return "", 0.0
    most = max(counts, key=counts.__getitem__)
    return most, counts[most] / sum(counts.values())
