"""The search's trials one by one, best first; one seed each."""

from __future__ import annotations

from reports.evidence.evidence import Evidence
from reports.names import symbol
from reports.reading.factors import Level, column, of_trials
from reports.reading.frames import numbers
from reports.section import Section, table_of
from reports.words import NONE, number

MOST = 20
"""Rows of trials; all are in `trials.csv`."""


def section(evidence: Evidence) -> Section | None:
    request, trials = evidence.request, evidence.search
    if trials.empty:
        return None
    shown = trials.head(MOST)
    names = dict.fromkeys([*(factor.name for factor in request.factors), *request.nuisance])
    cells = {column(name): [_brief(level) for level in of_trials(shown, name)] for name in names}
    heads = {
        "trial": "trial_id",
        "status": lambda row: "stopped early" if row["status"] == "stopped" else row["status"],
        **{symbol(name, request): column(name) for name in names},
        "score": "score",
        "epochs": lambda row: number(row["epochs"], 0),
    }
    caption = (
        f"The best {len(shown)} of {len(trials)} trials, on validation; a stopped trial's score is what it had by "
        "then."
    )
    table = table_of(shown.assign(**cells, epochs=numbers(shown, "epochs")), heads, caption)
    return Section("Search (exploratory)", [table])


def _brief(level: Level | None) -> str:
    return NONE if level is None else f"{level:.3g}" if isinstance(level, float) else level
