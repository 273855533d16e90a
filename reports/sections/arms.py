"""Every arm: what it is, its score, and how its predictions go with those of others."""

from __future__ import annotations

from adalayers.results.intervals import MIN_N
from reports import names
from reports.evidence.evidence import Evidence
from reports.section import INTERVAL, Section, named, summary, table_of
from reports.words import number


def section(evidence: Evidence) -> Section | None:
    arms, request, alike = evidence.arms, evidence.request, evidence.alike(evidence.arms["arm"])
    told = {arm.name: names.otherwise(arm, request) for arm in request.arms} | {request.control: "control"}
    few = arms["n"].between(1, MIN_N - 1).any()
    heads = {
        "arm": lambda row: named(row["arm"]),
        "what it is, or differs from the control in": lambda row: told.get(row["arm"], ""),
        **({"fusion": "fusion"} if arms["fusion"].nunique() > 1 else {}),
        f"{evidence.scored.name}, {INTERVAL}": summary,
        **({"by seed": lambda row: _seeds(evidence, row["arm"])} if few else {}),
        **({"on validation": lambda row: summary(row, "val_")} if evidence.split != "val" else {}),
        **({"also known as": "aliases"} if arms["aliases"].any() else {}),
        **({"predicts exactly as": lambda row: named(alike.get(row["arm"]))} if alike else {}),
    }
    caption = "Intervals are t intervals over seeds, not corrected; they compare no two arms."
    return Section("Arms", [table_of(arms, heads, caption)]) if len(arms) else None


def _seeds(evidence: Evidence, arm: str) -> str:
    return ", ".join(map(number, evidence.scores.get(arm, {}).values()))
