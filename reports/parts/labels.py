"""How the labels of the data are distributed: examples by class, or the spread of numbers, by split."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.reading.data import NAMES
from reports.words.text import NONE, count, escape, folded, number, table


@dataclass(frozen=True)
class Info:
    """by_split: split -> how often each class is a label there, or what describes its numbers; numeric: which."""

    by_split: dict[str, dict[str, float]]
    numeric: bool


def info(evidence: Evidence) -> Info | None:
    dataset = evidence.loaded.study.environment.dataset
    by_split = {split: of for split, of in dataset.distribution.items() if of}
    return Info(by_split, not dataset.labels) if by_split else None


def section(info: Info) -> list[str]:
    names = list(dict.fromkeys(name for of in info.by_split.values() for name in of))
    heads = [NAMES.get(split, split) for split in info.by_split]
    if info.numeric:
        rows = [[escape(name), *(number(of.get(name)) for of in info.by_split.values())] for name in names]
        return ["How the numbers that are predicted are spread.", table(["", *heads], rows)]
    rows = [[escape(name), *(_share(of, name) for of in info.by_split.values())] for name in names]
    uneven = [f"{NAMES.get(split, split)} {_uneven(of)}" for split, of in info.by_split.items()]
    return [
        f"Labels by class. The most frequent class against the rarest: {', '.join(uneven)}.",
        folded(count(len(rows), "class", "classes"), len(rows), table(["class", *heads], rows), most=20),
    ]


def _share(of: dict[str, float], name: str) -> str:
    total = sum(of.values())
    return f"{of[name]:,.0f} ({of[name] / total:.1%})" if name in of and total else NONE


def _uneven(of: dict[str, float]) -> str:
    """Return "12.3 to 1", or how many classes have no example."""
    missing = sum(not n for n in of.values())
    if missing:
        return f"has {count(missing, 'class', 'classes')} without any"
    return f"{max(of.values()) / min(of.values()):.1f} to 1"


PART = Part("Labels", info, section)
