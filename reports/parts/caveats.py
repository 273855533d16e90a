"""The report judges itself: its caveats, and what to do about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.evidence.caveats import CAUTION, SERIOUS, Caveat
from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.words.text import count, table


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
        "is mended; *caution*: it may change a verdict; *note*: good to know.",
        table(["weight", "what was found", "what to do"], [[f.severity, f.found, f.advice] for f in found]),
    ]


def headline(found: Sequence[Caveat]) -> str:
    """Return the sentence that the Answer ends on; nothing where there is no caveat above a note."""
    serious, caution = (sum(f.severity == severity for f in found) for severity in (SERIOUS, CAUTION))
    if not serious + caution:
        return ""
    return (
        f"**Before leaning on this**: the report's own checks raise {count(serious, 'serious caveat')} and "
        f"{count(caution, 'caution')}, listed with what to do under *Caveats*."
    )


PART = Part("Caveats", info, section)
