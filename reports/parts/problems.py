"""What is missing from the files or disagrees in them."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.words.text import listed


@dataclass(frozen=True)
class Info:
    problems: tuple[str, ...]


def info(evidence: Evidence) -> Info:
    return Info(evidence.loaded.problems)


def section(info: Info) -> list[str]:
    return [listed(info.problems) if info.problems else "None: all files are there and agree."]


PART = Part("Problems in the files", info, section)
