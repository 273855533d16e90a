"""Score and layers left over the first factor, or over the number of training examples, a line per whatever else."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence
from reports.names import symbol
from reports.plots import legend, looks_of, panels, points, seeds_text
from reports.reading.factors import known, label, level_name
from reports.section import INTERVAL, Section, named, summary, table_of
from reports.tables.factor import SIZE, over_factor
from reports.words import number


def section(evidence: Evidence) -> Section | None:
    name, rows = over_factor(evidence.arms.dropna(subset=["mean"]), evidence.trials, evidence.request)
    if rows.empty:  # as where a study was interrupted in its search
        return None
    rows = rows.merge(evidence.costs[["arm", "live", "layers"]], on="arm", how="left")
    heads = {
        "arm": lambda row: named(row["arm"]),
        symbol(name, evidence.request): lambda row: level_name(row["x"]),
        **({"epochs": lambda row: int(row["panel"])} if rows["panel"].nunique() > 1 else {}),
        f"{evidence.scored.name}, {INTERVAL}": summary,
        **({"live layers": lambda row: number(row["live"], 2)} if rows["live"].nunique() > 1 else {}),
        **({"deepest": lambda row: number(row["layers"], 2)} if rows["layers"].nunique() > 1 else {}),
    }
    pool = evidence.environment.dataset.examples.get("train", 0)
    overlap = name == SIZE and pool and (rows["x"] > pool / 2).any()
    caption = (
        f"Each seed draws its own examples from {pool:,}: draws of more than half overlap." if overlap else ""
    )
    tables = [table_of(rows, heads, caption)]
    figures = {"factor": draw(evidence, name, rows)}
    return Section("Score over the first factor", tables, figures, "Score over the levels of a factor")


def draw(evidence: Evidence, name: str, rows: pd.DataFrame) -> Figure:
    """A panel per number of epochs, or one of scores and one of live layers where these change."""
    factor = known(name, evidence.request.factors)
    scale = "log" if name == SIZE else factor.scale
    looks, epochs = looks_of(rows["series"]), sorted(set(rows["panel"]))
    live = len(epochs) == 1 and rows["live"].nunique() > 1
    titles = ["", ""] if live else [f"{most:g} epochs" if most else "" for most in epochs]
    x = "training examples (count), log scale" if name == SIZE else label(factor)
    figure, axes = panels(titles, 3.0, x=x, y=evidence.scored, share=not live)
    for panel, most in zip(axes, epochs, strict=False):
        points(rows[rows["panel"] == most], panel, scale=scale, looks=looks)
    if live:
        layers = rows.assign(mean=rows["live"], low=rows["live"], high=rows["live"]).dropna(subset=["live"])
        points(layers, axes[1], scale=scale, looks=looks)
        axes[1].set_ylabel("live layers (count)", visible=True)
    legend(figure, looks if len(looks) > 1 else {}, f"mean and 95% interval, {seeds_text(rows['n'])}")
    return figure
