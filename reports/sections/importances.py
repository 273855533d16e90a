"""Importances of the hyperparameters with their spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from adalayers.comparisons import IMPORTANCES_FROM
from reports.cells import ends, table_of
from reports.evidence.evidence import Evidence
from reports.plots import bars, legend, looks_of, single
from reports.section import Section, Table
from reports.tables.importances import RESAMPLES, importances, target_share
from reports.words.text import number


@dataclass(frozen=True)
class Frames:
    """table: as from `importances.importances`; done: completed trials with a score that are looked at."""

    evidence: Evidence
    table: pd.DataFrame
    done: int


def frames(evidence: Evidence) -> Frames | None:
    """None without a search, and where searches were for different arms."""
    if evidence.searches != 1:
        return None
    points = evidence.points
    return Frames(
        evidence, importances(points, evidence.space[0]), int((points["status"] == "completed").sum())
    )


def tables(frames: Frames) -> Sequence[Table]:
    if frames.table.empty:
        why = f"None: {frames.done} completed search trials with a score; it takes {IMPORTANCES_FROM}, and two ranges."
        return [Table(["importances"], [[why]])]
    heads = {
        "hyperparameter": "name",
        "role": "role",
        "importance (share)": lambda row: number(row["importance"], 2),
        f"middle 90% of {RESAMPLES} resamples": lambda row: ends(row["low"], row["high"], 2),
        "trials": "n",
    }
    caption = (
        f"PED-ANOVA (Optuna): what sets the best {target_share(frames.done):.0%} of trials apart from all; "
        "no effect and no direction."
    )
    return [table_of(frames.table, heads, caption)]


def draw(frames: Frames) -> Figure | None:
    """Share of importance of each hyperparameter with its spread; None without importances."""
    if frames.table.empty:
        return None
    figure, axes = single(
        1.2 + 0.4 * max(len(frames.table), 2), "importance (PED-ANOVA; share of the whole)", "hyperparameter"
    )
    names = [frames.evidence.plan.short(name) for name in frames.table["name"]]
    looks = looks_of(frames.table["role"])
    bars(
        frames.table.assign(name=names, mean=frames.table["importance"], series=frames.table["role"]),
        axes,
        looks=looks,
    )
    title = f"{frames.done} completed trials, one seed each; bars: middle 90% of {RESAMPLES} resamples"
    legend(figure, {role: how._replace(marker="s") for role, how in looks.items()}, title, lines=False)
    return figure


SECTION = Section(
    "Hyperparameter importance", frames, tables, {"importances": draw}, "Importance of each hyperparameter"
)
