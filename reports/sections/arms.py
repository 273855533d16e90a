"""Every arm: what it is, its score, and how its predictions go with those of others."""

from __future__ import annotations

from reports import names
from reports.evidence.evidence import Evidence
from reports.section import INTERVAL, Section, named, summary, table_of


def section(evidence: Evidence) -> Section | None:
    arms, request, alike = evidence.arms, evidence.request, evidence.alike(evidence.arms["arm"])
    told = {arm.name: names.otherwise(arm, request) for arm in request.arms} | {request.control: "control"}
    heads = {
        "arm": lambda row: named(row["arm"]),
        "what it is, or differs from the control in": lambda row: told.get(row["arm"], ""),
        **({"fusion": "fusion"} if arms["fusion"].nunique() > 1 else {}),
        f"{evidence.scored.name}, {INTERVAL}": summary,
        **({"on validation": lambda row: summary(row, "val_")} if evidence.split != "val" else {}),
        **({"also known as": "aliases"} if arms["aliases"].any() else {}),
        **({"predicts exactly as": lambda row: named(alike.get(row["arm"]))} if alike else {}),
    }
    caption = "Intervals are t intervals over seeds, not corrected; they compare no two arms."
    return Section("Arms", [table_of(arms, heads, caption)]) if len(arms) else None
