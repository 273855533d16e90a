"""The index of a results root: a line per study, from its `study.json` and `claims.json` alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adalayers.results.study_file import StudyFile
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.render import render

ASIDE = re.compile(r"\.\d{8}-\d{6}$")
"""How `--fresh` renames the study it sets aside: by the time."""


@dataclass(frozen=True)
class Line:
    """One results folder below the root: `link` leads to it. problem: why it could not be read, or ""."""

    link: str
    study: StudyFile = field(default_factory=StudyFile)
    claims: Sequence[Mapping[str, Any]] = ()
    problem: str = ""

    @property
    def state(self) -> str:
        return state(self.study)

    @property
    def seeds(self) -> list[int]:
        """The fewest and the most pairs of seeds of a comparison; none where there is none."""
        counts = sorted({int(claim["n"]) for claim in self.claims if isinstance(claim.get("n"), int)})
        return [*dict.fromkeys((counts[0], counts[-1]))] if counts else []

    @property
    def verdicts(self) -> dict[str, int]:
        """Verdict -> how many planned comparisons have it."""
        given = [claim.get("verdict") for claim in self.claims if claim.get("primary", True)]
        return {name: given.count(name) for name in (BETTER, WORSE, SAME, OPEN) if name in given}


def index(lines: Sequence[Line], covers: Sequence[str] = ()) -> str:
    """Return the page: studies by their paths, then those set aside, then those that cannot be read."""
    readable = [line for line in lines if not line.problem]
    return render(
        "index.md.j2",
        current=[line for line in readable if not ASIDE.search(line.link)],
        aside=[line for line in readable if ASIDE.search(line.link)],
        broken=[line for line in lines if line.problem],
        covers=covers,
    )


def state(study: StudyFile) -> str:
    """Return how a study ended, and what makes it less than a finished one."""
    remarks = [study.runs.state or "state not stated"]
    remarks += ["smoke run"] if study.runs.smoke else []
    remarks += ["uncommitted changes"] if study.environment.git.dirty else []
    return ", ".join(remarks)
