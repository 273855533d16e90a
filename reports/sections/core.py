"""Mean score in each cell of the factorial core."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from reports.evidence.evidence import Evidence
from reports.plots import colour_bar, heatmap, single
from reports.reading.factors import cell_names, column, label, level_name, levels
from reports.reading.frames import records
from reports.section import Section

SPANS = 4
"""Pooled standard deviations of one score that the colours span at least: noise is not painted."""


def frames(evidence: Evidence) -> Evidence | None:
    return evidence if evidence.core["mean"].notna().any() and len(evidence.plan.factors) > 1 else None


def draw(evidence: Evidence) -> Figure:
    """The levels of the first factor across, the cells of all others down, each with n."""
    first, *others = evidence.plan.factors
    core = evidence.core.assign(row=cell_names(evidence.core, others))
    across, down = levels(core[column(first.name)]), list(dict.fromkeys(core["row"]))
    core["column"] = core[column(first.name)].map(lambda value: level_name(levels([value])[0]))
    columns = [level_name(value) for value in across]
    grid = core.pivot_table(index="row", columns="column", values="mean").reindex(index=down, columns=columns)
    texts = core.assign(text=[f"{row['mean']:.3f}\nn = {row['n']:.0f}" for row in records(core)])
    texts = texts.pivot_table(index="row", columns="column", values="text", aggfunc="first").reindex(
        index=down, columns=columns
    )
    low, high = np.nanmin(grid), np.nanmax(grid)
    least = SPANS * (evidence.spread or 0.0) or 1e-9
    middle, half = (low + high) / 2, max(high - low, least) / 2
    figure, axes = single(1.4 + 0.65 * max(len(down), 2), label(first), "")
    heatmap(grid, axes, texts=texts.fillna("no result"), low=middle - half, high=middle + half)
    colour_bar(figure, [axes], f"mean {evidence.scored}")
    return figure


SECTION = Section(
    "The factorial core", frames, figures={"core_heatmap": draw}, alt="Mean score in each cell of the core"
)
