"""Sections on the search beyond its list of trials: importances, range edges, surface, parallel coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from reports.evidence.decomposition import INTERACTION
from reports.evidence.evidence import Evidence
from reports.evidence.findings import Findings
from reports.evidence.importances import FANOVA, FEWEST, PED_ANOVA, target_share
from reports.evidence.ranges import Edge
from reports.evidence.statistics import LEVEL
from reports.parts.sections import figure_link
from reports.reading.frames import records
from reports.reading.load import Loaded
from reports.words.labels import short
from reports.words.text import NONE, code, count, escape, folded, interval, number, several, table


def importances(loaded: Loaded, evidence: Evidence) -> list[str]:
    """Importances of the hyperparameters with their spread, and where the best lies on the edge of a range."""
    findings = evidence.findings
    done = int((findings.points["status"] == "completed").sum())
    paragraphs = [_unread(findings), figure_link("importances", "Importance of each hyperparameter")]
    if not findings.importances:
        why = (
            f"{count(done, 'completed search trial')} with a score; importances are worked out from {FEWEST} on, "
            "over at least two hyperparameters and different scores."
        )
        return [f"No importances: {why}", *paragraphs, _edges(findings.edges)]
    paragraphs[:0] = [
        "How far the search's scores hang on each hyperparameter, as shares of the whole. Only completed "
        "trials count: where the scheduler stopped poor ones early, this is about the better part of the "
        "space. The ranges are the middle 90% over bootstrap resamples of the trials, one seed each; ranges "
        "that overlap widely mean that the order could be another. Importance is no effect and no direction.",
        " ".join(_evaluator(item["evaluator"].iloc[0], done) for item in findings.importances),
    ]
    rows = [
        [
            *(code(row["name"]), row["role"], row["evaluator"], number(row["importance"], 2)),
            f"{interval(row['low'], row['high'], 2)}, n = {row['n']} trials, {row['resamples']} resamples",
        ]
        for item in findings.importances
        for row in records(item)
    ]
    heads = ["hyperparameter", "role", "evaluator", "importance (share)", "middle 90% of resamples"]
    return [*paragraphs, table(heads, rows), _edges(findings.edges)]


def _evaluator(name: str, done: int) -> str:
    if name == PED_ANOVA:
        return (
            f"{PED_ANOVA} (Optuna) asks what sets the best {target_share(done):.0%} of the trials apart from all "
            "of them."
        )
    assert name == FANOVA
    return f"{FANOVA} (Optuna) splits the variance of a random forest fitted to all of the scores."


def _unread(findings: Findings) -> str:
    if not findings.unread:
        return ""
    names = several([code(name) for name in findings.unread], 8)
    return f"Left out, because `study.json` does not describe them as a range or a choice: {names}."


def _edges(edges: list[Edge]) -> str:
    if not edges:
        return ""
    named = several(
        [
            f"{code(edge.name)} = {edge.value:.3g}, {edge.end} end, {edge.there} of the best {edge.of}"
            for edge in edges
        ],
        8,
    )
    return (
        f"**At the edge of what was searched**, so that better values may lie beyond: {named}. Widen a range where "
        "most of the best trials lie at one end."
    )


def surface(evidence: Evidence) -> list[str]:
    """The mean score over two hyperparameters, and the lines of parallel coordinates."""
    findings = evidence.findings
    drawn = figure_link(
        "search_surface", "Mean validation score of completed search trials over two hyperparameters"
    )
    lines = figure_link("search_parallel", "Every completed search trial across its hyperparameters")
    if findings.factors is None or findings.surface["n"].sum() == 0:
        return ["No completed search trial over two hyperparameters.", drawn, lines]
    x, y = findings.factors
    cells = {(row["x"], row["y"]): (row["mean"], row["n"]) for row in records(findings.surface)}
    xs, ys = (list(dict.fromkeys(findings.surface[name])) for name in ("x", "y"))

    def cell(at: tuple[str, str]) -> str:
        mean, n = cells[at]
        return f"{number(mean)} (n = {n})" if n else NONE

    grid = table(
        [f"{escape(short(f'config/{y.name}'))} ↓, {escape(short(f'config/{x.name}'))} →", *map(escape, xs)],
        [[escape(name), *(cell((column, name)) for column in xs)] for name in ys],
    )
    return [
        "Each cell is the mean over its completed trials (n), whatever their other hyperparameters, one seed "
        "each, no interval: where n is small it shows those others as much as the two named here. Cells "
        "without a trial stay empty; nothing is interpolated.",
        drawn,
        folded("The surface as a table", len(ys) + 6, grid),
        "A line per completed trial, from its hyperparameters to its score; the table of trials above holds "
        "the same numbers.",
        lines,
    ]


def interaction(evidence: Evidence) -> list[str]:
    """How much of the core's score each factor moves, and how much only both together."""
    found = evidence.findings.interaction
    if found.empty:
        return [
            "Its parts (α, λ, both together) cannot be told apart: that takes a whole grid and at least two seeds "
            "on which every cell has a score."
        ]
    names = {INTERACTION: "α with λ (interaction)"}
    rows = [
        [
            names.get(row["part"], short(f"config/{row['part']}")),
            number(row["size"], 4),
            _range(row),
            str(row["df"]),
        ]
        for row in records(found)
    ]
    first = found.iloc[0]
    return [
        "What moves the score in the core, as the standard deviation of the true effects over the levels of "
        "each part, in units of the score: 0 means that the part does nothing. The interaction is what α does "
        "differently at different λ. From the two-way decomposition with seeds as blocks "
        f"(n = {first['seeds']} seeds × {first['cells']} cells); intervals from the noncentral F distribution, "
        "not corrected, and no claim rests on them; none where a part is smaller than seeds alone would make it.",
        table(["part", "size", f"{LEVEL:.0%} interval", "degrees of freedom"], rows),
    ]


def _range(row: Mapping[str, Any]) -> str:
    n = f"n = {row['seeds']}"
    if pd.isna(row["low"]):
        return f"no interval, {n}"
    return f"{interval(row['low'], row['high'], 4)}, {n}"
