"""The cover page over the folders of one study: arms by folder, and a link to each report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.claims import BETTER, OPEN, SAME, WORSE
from reports.evidence import Evidence
from reports.frames import records
from reports.labels import SPLITS, short
from reports.load import Loaded, get
from reports.text import code, escape, estimate, listed, table


@dataclass(frozen=True)
class Entry:
    """One folder on the cover: `link` leads from the cover to its folder.

    A link is named by its folder, which a study set aside by `--fresh` does not share with its successor.
    """

    link: str
    loaded: Loaded
    evidence: Evidence


def cover(title: str, entries: Sequence[Entry], problems: Sequence[str] = ()) -> str:
    """Return the page; `problems` names folders that could not be read."""
    parts = [f"# {escape(title)}: all backbones and datasets"]
    questions = list(
        dict.fromkeys(get(entry.loaded.results.study, "asked", "question", default="") for entry in entries)
    )
    parts += [escape(question, 2000) for question in questions if question]
    if not entries:
        parts.append("No results to show yet.")
    else:
        parts += ["## Verdicts", _verdicts(entries), "## Arms", _explained(entries), _arms(entries)]
    if problems:
        parts += ["## Problems", listed(problems)]
    return "\n\n".join(parts) + "\n"


def _verdicts(entries: Sequence[Entry]) -> str:
    rows = []
    for entry in entries:
        claims = entry.evidence.claims
        counts = [
            str(sum(claim.verdict == verdict for claim in claims)) for verdict in (BETTER, WORSE, SAME, OPEN)
        ]
        rows.append([_link(entry), code(entry.loaded.plan.control), *counts, _state(entry)])
    return table(["report", "control", BETTER, WORSE, SAME, OPEN, "remarks"], rows)


def _explained(entries: Sequence[Entry]) -> str:
    return (
        "Mean of each arm with its 95% t interval over n seeds, not corrected. Corrected comparisons are "
        "in the reports; nothing was compared across columns, whose metrics and data differ."
        if len(entries) > 1
        else "Mean of the arm with its 95% t interval over n seeds, not corrected. Corrected comparisons are "
        "in the report."
    )


def _arms(entries: Sequence[Entry]) -> str:
    names = list(dict.fromkeys(name for entry in entries for name in entry.evidence.arms["arm"]))
    heads = [
        f"{_link(entry)}: {SPLITS[entry.evidence.split]} {escape(short(entry.loaded.plan.metric))}"
        for entry in entries
    ]
    columns = [
        {
            row["arm"]: estimate(row["mean"], row["low"], row["high"], row["n"])
            for row in records(entry.evidence.arms)
        }
        for entry in entries
    ]
    return table(
        ["arm", *heads],
        [[code(name), *(column.get(name, "not an arm here") for column in columns)] for name in names],
    )


def _link(entry: Entry) -> str:
    return f"[{escape(entry.link.rsplit('/', 1)[-1])}](<{entry.link}/report.md>)"


def _state(entry: Entry) -> str:
    study = entry.loaded.results.study
    remarks = ["smoke run"] if get(study, "happened", "smoke") else []
    remarks += ["uncommitted changes"] if get(study, "on", "git", "dirty") else []
    remarks += [] if get(study, "happened", "state") == "finished" else ["unfinished"]
    return ", ".join(remarks)
