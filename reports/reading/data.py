"""What `study.json` says of the data beyond its size: what was cut, and what stands in train as well."""

from __future__ import annotations

from dataclasses import dataclass

from adalayers.results.study_file import DatasetRecord
from reports.words.labels import SPLITS
from reports.words.text import count


@dataclass(frozen=True)
class Cut:
    """Examples of a split that were cut to the maximum length.

    Attributes:
        split: Its name.
        examples: How many were cut.
        total: All examples of the split; None where `study.json` does not say.
        words: How many were lost by that; None where they were not counted.
    """

    split: str
    examples: int
    total: int | None
    words: int | None

    @property
    def share(self) -> float:
        return self.examples / self.total if self.total else float(bool(self.examples))

    def text(self) -> str:
        """Return "train 46.0% (184 of 400 examples, 1,203 words lost)"."""
        size = (
            f"{self.examples:,} of {self.total:,} examples" if self.total else count(self.examples, "example")
        )
        words = "" if self.words is None else f", {count(self.words, 'word')} lost"
        share = f"{self.share:.1%} " if self.total else ""
        return f"{SPLITS.get(self.split, self.split)} {share}({size}{words})"


def cuts(dataset: DatasetRecord) -> list[Cut]:
    """Return what was cut, by split; empty where `study.json` does not say."""
    return [
        Cut(split, int(counts.get("examples", 0)), dataset.examples.get(split), counts.get("words"))
        for split, counts in dataset.truncated.items()
    ]


def shared(dataset: DatasetRecord) -> list[str]:
    """Return "test 104 of 2,500 examples" for each split with examples that also stand in train."""
    return [
        f"{SPLITS.get(split, split)} {n:,}"
        + (f" of {total:,} examples" if (total := dataset.examples.get(split)) else "")
        for split, n in dataset.shared.items()
        if n
    ]
