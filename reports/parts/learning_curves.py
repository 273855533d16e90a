"""The best validation score so far over training steps, by arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from reports.drawing import style
from reports.drawing.pieces import seeds_text, unit_below
from reports.drawing.style import LINES, new_figure, pick, plain_text, say_empty, styled
from reports.evidence import tables
from reports.evidence.curves import learning_curves, milestones
from reports.evidence.evidence import Evidence
from reports.evidence.statistics import FEW, LEVEL
from reports.parts.cells import summary
from reports.parts.part import Part, figure_link
from reports.reading.factors import cell_names
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.labels import LABELS
from reports.words.text import NONE, code, folded, table

NO_CURVES = "Nothing to draw: no history of evaluations of confirmed arms."
PER_PANEL = 6
REST = "other arms"
CONTROL = "control"


@dataclass(frozen=True)
class Info:
    """curves: as from `curves.learning_curves`; arms: as from `tables.arms`; lines: those of the core, in order."""

    curves: pd.DataFrame
    arms: pd.DataFrame
    lines: tuple[str, ...]
    plan: Plan
    score: str


def info(evidence: Evidence) -> Info:
    curves = learning_curves(evidence.trials, evidence.history, evidence.plan)
    return Info(curves, evidence.arms, evidence.lines, evidence.plan, evidence.chosen)


def section(info: Info) -> list[str]:
    figure = figure_link("learning_curves", "Best validation score so far over training steps, by arm")
    curves = info.curves
    if curves.empty:
        return ["No confirmed arm has a history of evaluations.", figure]
    found = milestones(curves)
    columns = list(dict.fromkeys(found["at"]))
    cells = {(row["arm"], row["at"]): summary(row) for row in records(found)}
    rows = [
        [code(arm), *(cells.get((arm, at), NONE) for at in columns)] for arm in dict.fromkeys(found["arm"])
    ]
    return [
        f"The best validation score so far, mean and, from {FEW} seeds on, {LEVEL:.0%} t band, not corrected. A trial "
        "that stopped early keeps its best, so every seed counts at every step. The best so far never falls: a late "
        "loss of score does not show here.",
        figure,
        folded(
            "The curves as a table", len(rows), table(["arm", *(f"step {at:,.0f}" for at in columns)], rows)
        ),
    ]


@styled
def draw(info: Info) -> Figure:
    """Mean best validation score so far against steps, a panel per level of the first factor, one for other arms.

    With one factor, the core is one panel. Bands are 95% t intervals.
    """
    curves, arms, control, lines = info.curves, info.arms, info.plan.control, info.lines
    panels = _panels(arms[arms["arm"].isin(set(curves["arm"]))], info.plan)
    if not panels:
        figure = new_figure(3.7)
        say_empty(figure.add_subplot(), NO_CURVES)
        return figure
    across = min(len(panels), 3)
    down = math.ceil(len(panels) / across)
    names = {_name(arm, lines) for _, of_panel in panels for arm in records(of_panel)}
    longest, entries = max(map(len, names)), 1 + len(names)
    columns = next(most for most, width in ((4, 20), (3, 28), (2, 45), (1, longest)) if longest <= width)
    figure = new_figure(1.0 + 2.2 * down + 0.2 * math.ceil(entries / columns))
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    styles = style.arm_styles(arms, lines)
    handles: dict[str, Line2D] = {}
    reference = curves[curves["arm"] == control]
    for axes, (title, of_panel) in zip(grid.flat, panels, strict=False):
        for place, arm in enumerate(records(of_panel)):
            colour, marker = styles[arm["arm"]]
            core = arm["role"] == "core" and arm["line"] in lines
            line = style.look(lines.index(arm["line"]))[2] if core else pick(LINES, place + 3 * bool(lines))
            name = plain_text(_name(arm, lines))
            _curve(axes, curves[curves["arm"] == arm["arm"]], colour, marker, line, place)
            handles.setdefault(name, Line2D([], [], color=colour, marker=marker, linestyle=line, label=name))
        if len(reference) and control not in set(of_panel["arm"]):
            axes.plot(reference["step"], reference["mean"], color="0.35", linewidth=0.9, zorder=1)
            handles.setdefault(CONTROL, Line2D([], [], color="0.35", linewidth=0.9, label=CONTROL))
        axes.set_title(plain_text(title), loc="left", fontsize=10)
    for spare in grid.flat[len(panels) :]:
        spare.set_axis_off()
    for place, axes in enumerate(grid.flat[: len(panels)]):
        axes.set_ylabel(unit_below(info.score))
        axes.set_xlabel(LABELS["step"])
        axes.yaxis.label.set_visible(place % across == 0)
        axes.xaxis.label.set_visible(place + across >= len(panels))
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.tick_params(labelbottom=place + across >= len(panels))
    low, top = curves["mean"].quantile(0.02), curves["mean"].max()
    if top - low > 1e-9:  # where the means are: a band of two seeds may be wider than the scale
        grid[0, 0].set_ylim(low - 0.15 * (top - low), top + 0.3 * (top - low))
    ordered = sorted(handles.values(), key=lambda handle: handle is handles.get(CONTROL))  # it comes last
    band = " and 95% band" if curves["n"].max() >= FEW else ""
    title = f"best score so far, mean{band}, {seeds_text(curves['n'])}"
    figure.legend(handles=ordered, loc="outside lower center", ncols=columns, title=title, frameon=False)
    return figure


def _name(arm: Mapping[str, Any], lines: Sequence[str]) -> str:
    """Return what the legend calls an arm: one of the core by its line."""
    return str(arm["line"] if arm["role"] == "core" and arm["line"] in lines else arm["arm"])


def _panels(arms: pd.DataFrame, plan: Plan) -> list[tuple[str, pd.DataFrame]]:
    """Return title and arms of each panel: the core by its first factor, then all others, six at most in one."""
    core = tables.core(arms, plan)
    along = cell_names(core, plan.factors[:1]) if len(plan.factors) > 1 else ["arms"] * len(core)
    panels = [(name, core[[of == name for of in along]]) for name in dict.fromkeys(along)]
    rest = arms[~arms["arm"].isin(core["arm"])]
    for start in range(0, len(rest), PER_PANEL):
        panels.append((REST if panels else "arms", rest.iloc[start : start + PER_PANEL]))
    return panels


def _curve(axes: Axes, rows: pd.DataFrame, colour: str, marker: str, line: object, place: int) -> None:
    apart = max(1, len(rows) // 5)
    axes.plot(
        rows["step"],
        rows["mean"],
        color=colour,
        linestyle=line,
        marker=marker,
        markevery=(place * apart // 3 % apart, apart),  # lines that coincide show each other's markers
        markersize=5,
        linewidth=1.4,
        zorder=3,
    )
    axes.fill_between(
        rows["step"].to_numpy(dtype=float),
        rows["low"].to_numpy(dtype=float),
        rows["high"].to_numpy(dtype=float),
        color=colour,
        alpha=0.15,
        linewidth=0,
        zorder=2,
    )


PART = Part("Convergence", info, section, {"learning_curves": draw})
