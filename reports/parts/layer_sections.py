"""Sections that only some studies have: single-layer baselines, and score against the amount of data."""

from __future__ import annotations

from reports.evidence.evidence import Evidence
from reports.evidence.findings import learned_row
from reports.evidence.statistics import LEVEL
from reports.parts.sections import figure_link
from reports.reading.frames import records
from reports.reading.load import Loaded
from reports.words.labels import SPLITS, short
from reports.words.text import code, escape, estimate, folded, table


def single_layers(loaded: Loaded, evidence: Evidence) -> list[str]:
    """Each single layer against the learned mix (thesis figures 10, 14, 18); nothing where none was run."""
    found = evidence.findings
    if found.single.empty:
        return []
    learned = learned_row(evidence.arms, found)
    against = (
        f"The line is {code(learned['arm'])}, the best arm on validation among those that learn their mix: "
        f"{estimate(learned['mean'], learned['low'], learned['high'], learned['n'])}."
        if learned
        else "No arm that learns its mix has a score."
    )
    rows = [
        [escape(row["layer"]), code(row["arm"]), estimate(row["mean"], row["low"], row["high"], row["n"])]
        for row in records(found.single)
    ]
    scored = f"{SPLITS[evidence.split]} {short(loaded.plan.metric)}"
    return [
        "The same network with all of the mix on one layer. Intervals are t intervals over seeds, not corrected; "
        f"the best of many layers is flattered by being picked. {against}",
        figure_link("single_layers", f"{scored} of each single layer against the learned mix"),
        folded(
            "The layers as a table",
            len(rows),
            table(["layer", "arm", f"{scored}, mean [{LEVEL:.0%} interval]"], rows),
        ),
    ]


def data_size(loaded: Loaded, evidence: Evidence) -> list[str]:
    """Score against the number of training examples; nothing where it was not varied."""
    sizes = evidence.findings.sizes
    if sizes.empty:
        return []
    scored = f"{SPLITS[evidence.split]} {short(loaded.plan.metric)}"
    rows = [
        [
            escape(row["line"]),
            f"{row['examples']:,.0f}",
            estimate(row["mean"], row["low"], row["high"], row["n"]),
        ]
        for row in records(sizes)
    ]
    return [
        "Intervals are t intervals over seeds, not corrected.",
        figure_link("score_by_size", f"{scored} against the number of training examples"),
        folded(
            "The scores as a table",
            len(rows),
            table(["arm", "training examples", f"{scored}, mean [{LEVEL:.0%} interval]"], rows),
        ),
    ]
