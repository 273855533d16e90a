"""Sections on predictions: scores by entity class, what was taken for what, misclassified examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.evidence.evidence import Evidence
from reports.evidence.predicted import differing_words
from reports.evidence.statistics import LEVEL
from reports.parts import sections
from reports.parts.sections import figure_link
from reports.reading.frames import records
from reports.reading.load import Loaded
from reports.words.labels import SPLITS
from reports.words.text import code, count, escape, estimate, folded, number, table

SHOWN = 20
"""Misclassified examples on the page; all are in `predictions.parquet`."""

NO_PREDICTIONS = "No predictions of confirmed trials."


def classes(loaded: Loaded, evidence: Evidence) -> list[str]:
    """Precision, recall, F1 and counts by entity class (thesis figure 19); nothing for tasks without entities."""
    found = evidence.findings
    if not found.tokens:
        return []
    drawn = figure_link("class_scores", "Precision, recall and F1 of each entity class")
    if found.classes.empty:
        return [f"{NO_PREDICTIONS} What is known is F1.", drawn, *sections.per_class(loaded, evidence)]
    roles = {loaded.plan.control: ["control"]}
    roles.setdefault(str(found.error_arm), []).append("best on validation")
    rows = [
        [escape(row["class"]), code(row["arm"])]
        + [_part(row, part) for part in ("precision", "recall", "f1")]
        + [f"{number(row['gold_mean'], 0)} / {number(row['predicted_mean'], 1)}"]
        for row in records(found.classes)
    ]
    named = ", ".join(f"{code(arm)} ({', '.join(role)})" for arm, role in roles.items() if arm)
    return [
        f"On {SPLITS[evidence.split]}, mean [{LEVEL:.0%} t interval] over n seeds, counted from the predictions of "
        f"{named}. An entity counts where its words and its type agree. These were not compared. The figure shows "
        f"{code(found.error_arm)}.",
        drawn,
        table(["class", "arm", "precision", "recall", "F1", "entities, true / predicted (mean)"], rows),
    ]


def _part(row: Mapping[str, Any], part: str) -> str:
    return estimate(row[f"{part}_mean"], row[f"{part}_low"], row[f"{part}_high"], row["n"])


def errors(loaded: Loaded, evidence: Evidence) -> list[str]:
    """The confusion of classes or entity types, and the surest wrong predictions by index, without texts."""
    found, split = evidence.findings, SPLITS[evidence.split]
    drawn = figure_link("confusion", "True against predicted classes")
    if found.confusion.empty:
        return [NO_PREDICTIONS, drawn]
    what = "entities by type" if found.tokens else "examples by class"
    true, said = (list(dict.fromkeys(found.confusion[name])) for name in ("label", "prediction"))
    cells = {(row["label"], row["prediction"]): row["mean"] for row in records(found.confusion)}
    grid = table(
        ["true ↓, predicted →", *map(escape, said)],
        [[escape(name), *(number(cells[name, other], 1) for other in said)] for name in true],
    )
    n = int(found.confusion["n"].iloc[0])
    explained = (
        " An entity found with other words counts under *other boundaries*, one that overlaps no true entity "
        "under *no entity there*."
        if found.tokens
        else ""
    )
    return [
        f"Mean counts of {what} on {split} over the {count(n, 'seed')} of {code(found.error_arm)}, the best arm on "
        f"validation.{explained}",
        drawn,
        folded("The counts as a table", len(true) + 5, grid),
        *_wrong(evidence, split),
    ]


def _wrong(evidence: Evidence, split: str) -> list[str]:
    found = evidence.findings
    if found.misclassified.empty:
        return [
            f"Trial {code(found.error_trial)}, the best confirmed one on validation, left no wrong prediction."
        ]
    shown = found.misclassified.head(SHOWN)
    rows = []
    for row in records(shown):
        label, said = row["label"], row["prediction"]
        if found.tokens:
            label, said = differing_words(label, said)
        rows.append([escape(row["index"]), escape(label), escape(said), number(row["score"])])
    heads = ["index", "label", "prediction", "score"]
    if found.tokens:
        heads = ["index", "tags of the words that differ", "as predicted", "score"]
    total = len(found.misclassified)
    return [
        f"{count(total, 'example')} misclassified on {split} by trial {code(found.error_trial)} (n = 1), the best "
        "confirmed one on validation, chosen before looking at its errors. `index` counts in the dataset's split; "
        "texts are shown only where a study asks for them (`--show-text`, in `examples.md`).",
        folded(f"The {len(rows)} surest of {total}", len(rows), table(heads, rows)),
    ]
