"""The question of the study, in its own words."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.words.text import escape


@dataclass(frozen=True)
class Info:
    question: str


def info(evidence: Evidence) -> Info:
    return Info(evidence.loaded.study.request.question or "(not stated in study.json)")


def section(info: Info) -> list[str]:
    return [escape(info.question, 2000)]


PART = Part("Question", info, section)
