"""The report judges itself: its caveats, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.caveats import Caveat
from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.words.text import table


@dataclass(frozen=True)
class Info:
    caveats: tuple[Caveat, ...]


def info(evidence: Evidence) -> Info:
    return Info(tuple(evidence.caveats))


def section(info: Info) -> list[str]:
    """Return the section that lists the findings."""
    found = info.caveats
    if not found:
        return ["None of the checks found anything."]
    return [
        "What the files give reason to doubt. *Serious*: do not lean on the numbers before it "
        "is put right; *caution*: it may change a verdict; *note*: good to know.",
        table(["weight", "what was found", "what to do"], [[f.severity, f.found, f.advice] for f in found]),
    ]


PART = Part("Caveats", info, section)
