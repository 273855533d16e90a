"""Importances of the hyperparameters with their spread."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence
from reports.names import with_meaning
from reports.plots import bars, legend, looks_of, single
from reports.section import Section, ends, table_of
from reports.tables.importances import RESAMPLES, importances, target_share
from reports.words import number


def section(evidence: Evidence) -> Section | None:
    """None for too few trials, and where searches were for different arms."""
    table = importances(evidence.points, evidence.space) if evidence.searches == 1 else pd.DataFrame()
    if table.empty:
        return None
    heads = {
        "hyperparameter": "name",
        "role": "role",
        "importance (share)": lambda row: number(row["importance"], 2),
        f"middle 90% of {RESAMPLES} resamples": lambda row: ends(row["low"], row["high"], 2),
        "trials": "n",
    }
    share = target_share(int(table["n"].iloc[0]))
    caption = f"PED-ANOVA (Optuna): what sets the best {share:.0%} of trials apart from all; no effect, no direction."
    words = [with_meaning(name, evidence.request) for name in table["name"]]
    tables = [table_of(table, heads, caption)]
    figures = {"importances": draw(table.assign(name=words))}
    return Section("Hyperparameter importance", tables, figures, "Importance of each hyperparameter")


def draw(table: pd.DataFrame) -> Figure:
    """Share of importance of each hyperparameter with its spread."""
    height, x = 1.2 + 0.4 * max(len(table), 2), "importance (PED-ANOVA; share of the whole)"
    figure, axes = single(height, x, "hyperparameter")
    looks = looks_of(table["role"])
    bars(table.assign(mean=table["importance"], series=table["role"]), axes, looks=looks)
    title = f"{table['n'].iloc[0]} completed trials, one seed each; bars: middle 90% of {RESAMPLES} resamples"
    legend(figure, {role: how._replace(marker="s") for role, how in looks.items()}, title, lines=False)
    return figure
