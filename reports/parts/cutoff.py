"""Score over the cutoff, at work always or after training alone, next to the layers left."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.drawing.pieces import legend_right, point, seeds_text, unit_below
from reports.drawing.style import COLOURS, LINES, MARKERS, new_figure, pick, plain_text, styled
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import LEVEL
from reports.parts.part import Part, figure_link
from reports.reading.factors import cell_names
from reports.reading.frames import records
from reports.words.labels import Label
from reports.words.text import NONE, code, escape, estimate, folded, number, several, table

CUTOFF, WHEN = "config/cutoff", "config/cutoff_when"
AFTER = "after-training"


@dataclass(frozen=True)
class Info:
    """cells: a row per arm: cutoff, line (its other factors), after, the score's summary, live, deepest.

    later: cutoffs tried on trained models, as from `spans.by_variant`, with cutoff and line
    """

    cells: pd.DataFrame
    later: pd.DataFrame
    score: Label
    layers: int


def info(evidence: Evidence) -> Info | None:
    arms, plan = evidence.arms, evidence.plan
    if CUTOFF not in arms or not any(factor.name == "cutoff" for factor in plan.factors):
        return None
    cells = arms[(arms["role"] == "core") & arms[CUTOFF].notna() & arms["mean"].notna()].copy()
    if cells[CUTOFF].nunique() < 2:
        return None
    others = [factor for factor in plan.factors if factor.name not in ("cutoff", "cutoff_when")]
    cells["line"] = cell_names(cells, others)
    cells["after"] = (cells[WHEN] == AFTER) & (cells[CUTOFF] > 0) if WHEN in cells else False
    cells = cells.merge(evidence.use_costs[["arm", "live", "deepest"]], on="arm", how="left")
    cutoffs = {name: how.cutoff for name, how in evidence.loaded.study.request.variants.items()}
    later = evidence.variants.assign(cutoff=evidence.variants["variant"].map(cutoffs).astype(float))
    later = later.dropna(subset=["cutoff"])
    whole = cells[cells[CUTOFF] == 0].set_index("arm")["line"]
    later = later[later["arm"].isin(whole.index)]
    later = later.assign(line=later["arm"].map(whole))
    return Info(cells, later, evidence.scored, evidence.loaded.study.environment.backbone.layers)


def section(info: Info) -> list[str]:
    scored = info.score.name
    rows = [
        [
            escape(row["line"]) or code(row["arm"]),
            f"{row[CUTOFF]:g}",
            NONE if not row[CUTOFF] else "after training" if row["after"] else "always",
            estimate(row["mean"], row["low"], row["high"], row["n"]),
            number(row["live"], 2),
            number(row["deepest"], 2),
        ]
        for row in records(info.cells.sort_values(["line", "after", CUTOFF], kind="stable"))
    ]
    heads = [
        "setting",
        "cutoff",
        "at work",
        f"{scored}, mean [{LEVEL:.0%} interval]",
        "live layers",
        "deepest",
    ]
    later = [
        [
            escape(row["line"]),
            f"{row['cutoff']:g}",
            estimate(row["mean"], row["low"], row["high"], row["n"], signed=True),
        ]
        for row in records(info.later.sort_values(["line", "cutoff"], kind="stable"))
    ]
    return [
        figure_link("cutoff", f"{scored} and layers left against the cutoff"),
        folded("Score and layers left as a table", len(rows), table(heads, rows)),
        folded(
            "More cutoffs, on the models trained without one: change of the score",
            len(later),
            table(["setting", "cutoff", f"change of {scored}, mean [{LEVEL:.0%} interval]"], later),
        )
        if later
        else "",
    ]


def _left(info: Info) -> str:
    """Say how many layers are left at the highest cutoff of each setting: what it would save at use."""
    parts = []
    for line, rows in info.cells.groupby("line", sort=False):
        cut = rows[rows[CUTOFF] > 0].sort_values(CUTOFF)
        if len(cut):
            highest = records(cut[cut[CUTOFF] == cut[CUTOFF].max()])
            told = " and ".join(
                f"{number(row['live'], 2)} {'after training' if row['after'] else 'always'}"
                for row in highest
            )
            parts.append(f"{told} ({escape(str(line)) or 'all'})")
    top = info.cells[CUTOFF].max()
    return (
        f"of {info.layers} layers, at the highest cutoff, {top:g}, there are left on average: {several(parts, 6)}. A "
        "layer that is cut is not projected; layers above the deepest that is left need not run at all."
    )


@styled
def draw(info: Info) -> Figure:
    """Score (left) and live layers (right) against the cutoff; filled lines always, dashed after training."""
    figure = new_figure(3.9)
    panels = figure.subplots(1, 2)
    handles: list[Line2D] = []
    step = info.cells[CUTOFF].max() * 0.012
    lines = list(dict.fromkeys(info.cells["line"]))
    for place, line in enumerate(lines):
        colour = pick(COLOURS, place)
        of_line = info.cells[info.cells["line"] == line]
        for after, marker in ((False, pick(MARKERS, place)), (True, pick(MARKERS, place + 3))):
            style = pick(LINES, int(after))
            rows = of_line[(of_line["after"] == after) | (of_line[CUTOFF] == 0)].sort_values(CUTOFF)
            if len(rows) < 2:
                continue
            x = rows[CUTOFF] + step * (
                2 * place + after - len(lines)
            )  # apart, so that bars do not hide each other
            panels[0].plot(x, rows["mean"], style, color=colour)
            for at, row in zip(x, records(rows), strict=True):
                point(panels[0], at, row["mean"], row["low"], row["high"], colour, marker, along="y")
            panels[1].plot(x, rows["live"], style, color=colour, marker=marker)
            name = (
                f"{line}\n{'after training' if after else 'always'}"
                if line
                else "after training"
                if after
                else "always"
            )
            handles.append(
                Line2D([], [], color=colour, linestyle=style, marker=marker, label=plain_text(name))
            )
    for axes in panels:
        axes.set_xlabel("cutoff (share of 1)")
    panels[0].set_ylabel(unit_below(info.score))
    panels[1].set_ylabel("live layers (count)")
    panels[1].set_ylim(0, info.layers * 1.05)
    legend_right(figure, handles, f"cutoff at work,\n{seeds_text(info.cells['n'])}")
    return figure


def answer(info: Info) -> list[str]:
    return [f"**Layers left**: {_left(info)}"]


PART = Part("The cutoff", info, section, {"cutoff": draw}, answer)
