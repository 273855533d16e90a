"""Doubts: what could overturn the answer, shortest form; all of it is under Caveats in the details."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.caveats import NOTE, Caveat
from reports.evidence.evidence import Evidence
from reports.parts.part import DETAILS, Part
from reports.words.text import count, listed

MOST = 3


@dataclass(frozen=True)
class Info:
    """caveats: above a note, but for those on top of the page; the most serious first."""

    caveats: tuple[Caveat, ...]


def info(evidence: Evidence) -> Info:
    return Info(tuple(caveat for caveat in evidence.caveats if caveat.severity != NOTE and not caveat.on_top))


def section(info: Info) -> list[str]:
    if not info.caveats:
        return ["The report's own checks found nothing else that should overturn this."]
    shown = [f"*{caveat.severity}*: {caveat.found} {caveat.advice}" for caveat in info.caveats[:MOST]]
    rest = len(info.caveats) - len(shown)
    more = [f"{count(rest, 'further caveat')}: [details]({DETAILS}#caveats)."] if rest else []
    return [listed([*shown, *more])]


PART = Part("Doubts", info, section)
