"""How fast arms learn: the best validation score so far over training steps, and the step of convergence."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.study_file import RequestRecord
from reports import names
from reports.evidence.evidence import Evidence
from reports.plots import GREY, curves, panels
from reports.section import Section, ends, named, table_of
from reports.tables.convergence import convergence, learning_curves
from reports.words import LABELS, label, number

PER_PANEL = 6
"""Most arms in one panel."""


def section(evidence: Evidence) -> Section | None:
    over_steps = learning_curves(evidence.best_so_far, evidence.request)
    if over_steps.empty:
        return None
    heads = {
        "arm": lambda row: named(row["arm"]),
        "step of convergence, median": lambda row: number(row["median"], 0),
        "[earliest, latest]": lambda row: ends(row["low"], row["high"], 0),
        "n": "n",
        "censored": "censored",
    }
    caption = (
        "Step of convergence: first evaluation with 95% of a trial's own gain; censored: never above trivial."
    )
    table = table_of(convergence(evidence.best_so_far, evidence.request), heads, caption)
    figures = {"learning_curves": draw(over_steps, evidence.request)}
    return Section(
        "Convergence", [table], figures, "Best validation score so far over training steps, by arm"
    )


def draw(over_steps: pd.DataFrame, request: RequestRecord) -> Figure:
    """Mean best score so far against steps, six arms in a panel with names of its own; the control is grey."""
    arms = list(dict.fromkeys(over_steps["arm"]))
    shown = [arms[start : start + PER_PANEL] for start in range(0, len(arms), PER_PANEL)]
    y = "best " + label(f"val/{request.metric}")
    figure, axes = panels([""] * len(shown), 3.3, x=LABELS["step"], y=y, most=2)
    reference = over_steps[over_steps["arm"] == request.control]
    for panel, of_panel in zip(axes, shown, strict=True):
        own = over_steps[over_steps["arm"].isin(of_panel)]
        series = own["arm"].map(lambda name: names.arm(name, request))
        panel.plot(reference["step"], reference["mean"], color=GREY, linewidth=0.9, label="control")
        curves(own.assign(series=series), panel)
        panel.legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=7, frameon=False)  # above it
    low, top = over_steps["mean"].quantile(0.02), over_steps["mean"].max()
    if top - low > 1e-9:  # where the means are: a band of two seeds may be wider than the scale
        axes[0].set_ylim(low - 0.15 * (top - low), top + 0.15 * (top - low))
    return figure
