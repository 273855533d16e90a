"""Score over the cutoff, at work always or after training alone, next to the layers left."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from adalayers.results.intervals import LEVEL
from reports.drawing.pieces import legend_right, point, seeds_text, unit_below
from reports.drawing.style import COLOURS, LINES, MARKERS, new_figure, pick, plain_text
from reports.evidence.evidence import Evidence
from reports.parts.cells import relative, summary
from reports.parts.part import Part, figure_link
from reports.reading.factors import cell_names
from reports.reading.frames import records
from reports.words.labels import AxisLabel
from reports.words.text import NONE, code, escape, folded, number, several, table

CUTOFF, WHEN = "config/cutoff", "config/cutoff_when"
AFTER = "after-training"


WHEN_WORDS = {False: "always", True: "after training"}


@dataclass(frozen=True)
class Info:
    """What is shown of cutoffs.

    Attributes:
        cells: A row per arm: cutoff, line (its other factors), after (whether it is cut after training alone), the
            score's summary, live, layers.
        later: Cutoffs tried on trained models, as from `variants.score_changes`, with cutoff and line.
    """

    cells: pd.DataFrame
    later: pd.DataFrame
    score: AxisLabel
    layers: int


def info(evidence: Evidence) -> Info | None:
    arms, plan = evidence.arms, evidence.plan
    if CUTOFF not in arms or not any(factor.name == "cutoff" for factor in plan.factors):
        return None
    cells = arms[(arms["role"] == "core") & arms[CUTOFF].notna() & arms["mean"].notna()]
    if cells[CUTOFF].nunique() < 2:
        return None
    others = [factor for factor in plan.factors if factor.name not in ("cutoff", "cutoff_when")]
    after = (cells[WHEN] == AFTER) & (cells[CUTOFF] > 0) if WHEN in cells else False
    cells = cells.assign(line=cell_names(cells, others), after=after)
    cells = cells.merge(evidence.costs[["arm", "live", "layers"]], on="arm", how="left")
    cutoffs = {name: how.cutoff for name, how in evidence.loaded.study.request.variants.items()}
    whole = cells[cells[CUTOFF] == 0].set_index("arm")["line"]
    later = evidence.variants.assign(
        cutoff=evidence.variants["variant"].map(cutoffs).astype(float),
        line=evidence.variants["arm"].map(whole),
    ).dropna(subset=["cutoff", "line"])
    layers = len(plan.hidden_states) or evidence.loaded.study.environment.backbone.layers
    return Info(cells, later, evidence.scored, layers)


def section(info: Info) -> list[str]:
    scored = f"{info.score.name}, mean [{LEVEL:.0%} interval]"
    rows = [
        [
            escape(row["line"]) or code(row["arm"]),
            f"{row[CUTOFF]:g}",
            WHEN_WORDS[row["after"]] if row[CUTOFF] else NONE,
            summary(row),
            number(row["live"], 2),
            number(row["layers"], 2),
        ]
        for row in records(info.cells.sort_values(["line", "after", CUTOFF], kind="stable"))
    ]
    heads = ["setting", "cutoff", "at work", scored, "live layers", "deepest"]
    later = [
        [escape(row["line"]), f"{row['cutoff']:g}", relative(row)]
        for row in records(info.later.sort_values(["line", "cutoff"], kind="stable"))
    ]
    more = "More cutoffs, on the models trained without one: relative change of the score"
    return [
        figure_link("cutoff", f"{info.score.name} and layers left against the cutoff"),
        folded("Score and layers left as a table", len(rows), table(heads, rows)),
        folded(
            more, len(later), table(["setting", "cutoff", f"change in %, mean [{LEVEL:.0%} interval]"], later)
        )
        if later
        else "",
    ]


def draw(info: Info) -> Figure:
    """Score (left) and live layers (right) against the cutoff; filled lines always, dashed after training."""
    figure = new_figure(3.9)
    panels = figure.subplots(1, 2)
    handles: list[Line2D] = []
    lines = list(dict.fromkeys(info.cells["line"]))
    for position, (line, after) in enumerate(itertools.product(lines, (False, True))):
        same = (info.cells["line"] == line) & ((info.cells["after"] == after) | (info.cells[CUTOFF] == 0))
        rows = info.cells[same].sort_values(CUTOFF)
        if len(rows) < 2:
            continue
        colour, marker, dashes = (
            pick(COLOURS, position // 2),
            pick(MARKERS, position),
            pick(LINES, int(after)),
        )
        # Apart, so that bars do not hide each other.
        x = rows[CUTOFF] + info.cells[CUTOFF].max() * 0.012 * (position - len(lines))
        panels[0].plot(x, rows["mean"], dashes, color=colour)
        for x_point, row in zip(x, records(rows), strict=True):
            point(panels[0], x_point, row["mean"], row["low"], row["high"], colour, marker, along="y")
        panels[1].plot(x, rows["live"], dashes, color=colour, marker=marker)
        name = plain_text(f"{line}\n{WHEN_WORDS[after]}".strip())
        handles.append(Line2D([], [], color=colour, linestyle=dashes, marker=marker, label=name))
    for axes in panels:
        axes.set_xlabel("cutoff (share of 1)")
    panels[0].set_ylabel(unit_below(info.score))
    panels[1].set_ylabel("live layers (count)")
    panels[1].set_ylim(0, info.layers * 1.05)
    legend_right(figure, handles, f"cutoff at work,\n{seeds_text(info.cells['n'])}")
    return figure


def answer(info: Info) -> list[str]:
    """Say how many layers are left at the highest cutoff of each setting: what it would save at use."""
    parts = []
    for line, rows in info.cells[info.cells[CUTOFF] > 0].groupby("line", sort=False):
        highest = records(rows[rows[CUTOFF] == rows[CUTOFF].max()])
        left = " and ".join(f"{number(row['live'], 2)} {WHEN_WORDS[row['after']]}" for row in highest)
        parts.append(f"{left} ({escape(str(line)) or 'all'})")
    top = f"{info.cells[CUTOFF].max():g}"
    return [
        f"**Layers left**: of {info.layers} layers, at the highest cutoff, {top}, there are left on average: "
        f"{several(parts, 6)}. A layer that is cut is not projected; layers above the deepest that is left "
        "need not run at all."
    ]


PART = Part("The cutoff", info, section, {"cutoff": draw}, answer)
