"""The index of a results root: a line per study, from its `study.json` and `claims.json` alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adalayers.results.study_file import StudyFile
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.words.text import NONE, code, count, escape, link, listed, table

ASIDE = re.compile(r"\.\d{8}-\d{6}$")
"""How `--fresh` renames the study it sets aside: by the time."""


@dataclass(frozen=True)
class Line:
    """One results folder below the root: `link` leads to it. problem: why it could not be read, or ""."""

    link: str
    study: StudyFile = field(default_factory=StudyFile)
    claims: Sequence[Mapping[str, Any]] = ()
    problem: str = ""


def index(lines: Sequence[Line], covers: Sequence[str] = ()) -> str:
    """Return the page: studies by their paths, then those set aside, then those that cannot be read."""
    broken = [line for line in lines if line.problem]
    aside = [line for line in lines if not line.problem and ASIDE.search(line.link)]
    current = [line for line in lines if line not in broken and line not in aside]
    parts = ["# All studies", f"{count(len(current), 'study', 'studies')}, each with its report."]
    if covers:
        named = [link(cover.rsplit("/", 1)[-1] or "this folder", f"{cover}/report.md") for cover in covers]
        parts.append(f"Over several backbones and datasets: {', '.join(named)}.")
    if current:
        parts.append(_studies(current))
    if aside:
        parts += [
            "## Set aside",
            "Earlier studies that a later one of the same name replaced (`--fresh`).",
            _studies(aside),
        ]
    if broken:
        parts += ["## Not readable", listed(f"{code(line.link)}: {escape(line.problem)}" for line in broken)]
    return "\n\n".join(parts) + "\n"


def _studies(lines: Sequence[Line]) -> str:
    rows = [
        [
            escape(line.study.study or "not stated"),
            escape(line.study.environment.backbone.name or "not stated"),
            escape(line.study.environment.dataset.name or "not stated"),
            state(line.study),
            _seeds(line.claims),
            _verdict(
                [claim for claim in line.claims if claim.get("primary", True)], line.study.request.control
            ),
            link(line.link.rsplit("/", 1)[-1], f"{line.link}/report.md"),
        ]
        for line in lines
    ]
    heads = ["study", "backbone", "dataset", "state", "n (paired seeds)", "primary comparisons", "report"]
    return table(heads, rows)


def state(study: StudyFile) -> str:
    """Return how a study ended, and what makes it less than a finished one."""
    remarks = [escape(study.runs.state or "state not stated")]
    remarks += ["smoke run"] if study.runs.smoke else []
    remarks += ["uncommitted changes"] if study.environment.git.dirty else []
    return ", ".join(remarks)


def _seeds(claims: Sequence[Mapping[str, Any]]) -> str:
    counts = sorted({int(claim["n"]) for claim in claims if isinstance(claim.get("n"), int)})
    return " to ".join(dict.fromkeys(map(str, (counts[0], counts[-1])))) if counts else NONE


def _verdict(claims: Sequence[Mapping[str, Any]], control: str) -> str:
    if not claims:
        return "no arm was compared"
    verdicts = [claim.get("verdict") for claim in claims]
    counts = [f"{verdicts.count(name)} {name}" for name in (BETTER, WORSE, SAME, OPEN) if name in verdicts]
    return f"{', '.join(counts)} (control {code(control)})"
