"""Entropy of the mix weights and live layers by arm, along the last factor of the core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from reports.drawing import style
from reports.drawing.axes import name_levels, series
from reports.drawing.pieces import legend_right, point, seeds_text
from reports.drawing.style import LINES, MARKERS, new_figure, pick, plain_text, say_empty, styled
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.parts.cells import summary
from reports.parts.comparisons import compared_table
from reports.parts.part import Part, figure_link
from reports.reading.factors import cell_names, column, level, levels, name, short
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.labels import LABELS
from reports.words.text import code, folded, several, table

NO_CORE = "Nothing to draw: no completed trials in the factorial core."


@dataclass(frozen=True)
class Info:
    """mix: as from `tables.mix_by_arm`; core: its rows in the core; lines: those of the core, in order."""

    mix: pd.DataFrame
    core: pd.DataFrame
    contrasts: tuple[Claim, ...]
    plan: Plan
    lines: tuple[str, ...]


def info(evidence: Evidence) -> Info | None:
    if not evidence.has_mix:
        return None
    contrasts = tuple(claim for claim in evidence.contrasts if claim.metric == "mix/entropy")
    return Info(evidence.mix_by_arm, evidence.mix_core, contrasts, evidence.plan, evidence.lines)


def section(info: Info) -> list[str]:
    rows = [
        [code(row["arm"]), summary(row, "entropy_"), summary(row, "live_", digits=1)]
        for row in records(info.mix)
    ]
    heads = ["arm", "entropy (nats), mean [interval]", "live layers, mean [interval]"]
    return [
        "Entropy of p̃ at the best epoch, in nats: 0 when one layer has all the weight, ln(number of "
        "layers) when all share it alike. A layer is live while its weight is not cut to 0.",
        *_picture(info),
        folded(
            "The mix of each arm",
            len(rows),
            table(heads, rows),
        ),
        *compared_table(info.contrasts, info.plan, "entropy (nats)"),
    ]


def _picture(info: Info) -> list[str]:
    """Return the figure's link, where there is a core to draw."""
    if info.core.empty:
        return []
    factors = info.plan.factors
    others = several(short(factor) for factor in factors[:-1])
    lines = f", a line per {others}" if others else ""
    text = (
        f"Entropy of the mix weights, and live layers where some are cut, against {short(factors[-1])}{lines}"
    )
    return [figure_link("mix_by_factor", text)]


@styled
def draw(info: Info) -> Figure | None:
    """Entropy of p~, and live layers where some are cut, against the last factor, a line per cell of the others; None
    without a core.
    """
    if info.core.empty:
        return None
    figure = new_figure(4.0)
    last, others = info.plan.factors[-1], info.plan.factors[:-1]
    core = info.core[(info.core["entropy_n"] > 0) | (info.core["live_n"] > 0)]
    if core.empty:
        say_empty(figure.add_subplot(), NO_CORE)
        return figure
    styles = style.arm_styles(info.mix, info.lines)
    along, names = levels(core[column(last.name)]), series(core, others)
    places = {value: place for place, value in enumerate(along)}
    core = core.assign(series=cell_names(core, others), place=core[column(last.name)].map(level).map(places))
    # Where nothing is cut every layer is live, and a panel of that shows nothing.
    cut = core["live_mean"].nunique() > 1
    shown = {"entropy_": "mix/entropy", **({"live_": "mix/live_layers"} if cut else {})}
    panels = np.atleast_1d(figure.subplots(1, len(shown)))
    for axes, (prefix, about) in zip(panels, shown.items(), strict=True):
        for of, place in names.items():
            rows = core[core["series"] == of].sort_values("place")
            at = rows["place"].to_numpy(dtype=float) + 0.07 * (place - (len(names) - 1) / 2)
            axes.plot(at, rows[f"{prefix}mean"], color="0.35", linestyle=pick(LINES, place), linewidth=1.2)
            for x, row in zip(at, records(rows), strict=True):
                colour, marker = styles[row["arm"]][0], pick(MARKERS, place)
                point(
                    axes,
                    x,
                    row[f"{prefix}mean"],
                    row[f"{prefix}low"],
                    row[f"{prefix}high"],
                    colour,
                    marker,
                    along="y",
                )
        name_levels(axes, along)
        axes.set_xlabel(plain_text(f"{name(last)} ({last.unit or 'no unit'};\nin order, not to scale)"))
        axes.set_ylabel(LABELS[about])
        highest = core[[f"{prefix}mean", f"{prefix}high"]].to_numpy(dtype=float)
        known = highest[np.isfinite(highest)]
        top = known.max() if known.any() else 1.0
        axes.set_ylim(-0.04 * top, 1.06 * top)  # room for points at 0
    if cut:
        panels[1].yaxis.set_major_locator(MaxNLocator(integer=True))
    handles = [
        Line2D([], [], color="0.35", linestyle=pick(LINES, i), marker=pick(MARKERS, i), label=plain_text(of))
        for of, i in names.items()
        if of
    ]
    legend_right(figure, handles, f"core arms,\n{seeds_text(core['entropy_n'])}")
    return figure


PART = Part("The mix", info, section, {"mix_by_factor": draw})
