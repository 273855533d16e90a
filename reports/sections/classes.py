"""F1 by entity class, of every arm."""

from __future__ import annotations

from reports.evidence.evidence import Evidence
from reports.section import Section, Table, named, summary
from reports.tables import arms
from reports.words import NONE, SPLITS


def section(evidence: Evidence) -> Section | None:
    """None for tasks other than tagging entities."""
    if not (evidence.tokens and len(evidence.arms)):
        return None
    prefix = f"{evidence.split}/f1/"
    scores = {
        str(name).removeprefix(prefix): arms.values(evidence.trials, str(name))
        for name in evidence.trials.columns
        if str(name).startswith(prefix)
    }
    rows: list[list[object]] = [
        [
            named(arm),
            *(summary(arms.summary(own.get(arm, {}).values(), limits=(0.0, 1.0))) for own in scores.values()),
        ]
        for arm in evidence.arms["arm"]
    ]
    for model in {run.base_model: run for run in evidence.request.published if run.classes}.values():
        rows.append([f"published, {model.base_model}", *(model.classes.get(name, NONE) for name in scores)])
    caption = f"F1 on {SPLITS[evidence.split]}; words and type have to agree."
    return Section("Scores by entity class", [Table(["arm", *scores], rows, caption)])
