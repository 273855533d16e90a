"""How fast arms learn: the best validation score so far over training steps, and the step of convergence."""

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

from adalayers.results.intervals import LEVEL, MIN_N
from reports.drawing import style
from reports.drawing.pieces import seeds_text, unit_below
from reports.drawing.style import LINES, new_figure, pick, plain_text
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.parts.cells import summary
from reports.parts.comparisons import compared_table
from reports.parts.part import Part, figure_link
from reports.reading.factors import cell_names
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.tables import arms as tables
from reports.tables.convergence import convergence_by_arm
from reports.tables.curves import learning_curves, milestones
from reports.words.labels import LABELS
from reports.words.text import NONE, code, folded, interval, number, table

PER_PANEL = 6
"""Most arms outside the core in one panel of the learning curves."""
REST = "other arms"
CONTROL_LABEL = "control"


@dataclass(frozen=True)
class Info:
    """What is shown.

    curves: as from `curves.learning_curves`; by_arm: as from `convergence.convergence_by_arm`
    lines: those of the core, in order
    """

    curves: pd.DataFrame
    by_arm: pd.DataFrame
    contrasts: tuple[Claim, ...]
    plan: Plan
    lines: tuple[str, ...]
    score: str


def info(evidence: Evidence) -> Info | None:
    curves = learning_curves(evidence.trials, evidence.history, evidence.plan)
    if curves.empty:
        return None
    return Info(
        curves=curves,
        by_arm=convergence_by_arm(evidence.convergence, evidence.arms),
        contrasts=tuple(claim for claim in evidence.contrasts if claim.metric == "convergence_step"),
        plan=evidence.plan,
        lines=evidence.lines,
        score=evidence.chosen,
    )


def section(info: Info) -> list[str]:
    at_step = milestones(info.curves)
    steps = list(dict.fromkeys(at_step["at"]))
    scores = {(row["arm"], row["at"]): summary(row) for row in records(at_step)}
    rows = [
        [code(row["arm"]), *(scores.get((row["arm"], step), NONE) for step in steps), _median(row)]
        for row in records(info.by_arm)
    ]
    heads = ["arm", *(f"score at step {step:,.0f}" for step in steps), "step of convergence"]
    return [
        f"*Scores*: the best on validation so far, mean and, from {MIN_N} seeds on, {LEVEL:.0%} t band, not corrected; "
        "a trial that stopped early keeps its best. *Step of convergence*: the first evaluation at which a trial has "
        "95% of its own gain over the trivial model, so early does not mean good; median [earliest, latest] over "
        "trials, a range that holds the true median with probability 1 − 2^(1−n). A trial that never beats the trivial "
        "model is *censored*: later than all others.",
        figure_link("learning_curves", "Best validation score so far over training steps, by arm"),
        folded("Convergence of each arm", len(rows), table(heads, rows)),
        *compared_table(info.contrasts, info.plan, "steps", digits=0),
        "Differences are in steps to one score of both sides: 95% of the way from the trivial model's to the least of "
        "all their trials' bests; none where a trial is no better than the trivial model."
        if info.contrasts
        else "",
    ]


def _median(row: Mapping[str, Any]) -> str:
    """Return the median step of an arm with its range: "126 [63, 189], n = 6, 1 censored"."""
    span = f" {interval(row['low'], row['high'], 0)}" if row["n"] > 1 else ""
    counts = [f"n = {row['n']}"]
    counts += [
        f"{row[name]} {name.replace('_', ' ')}" for name in ("censored", "without_history") if row[name]
    ]
    return f"{number(row['median'], 0)}{span}, {', '.join(counts)}"


def draw_curves(info: Info) -> Figure:
    """Mean best validation score so far against steps, a panel per level of the first factor, one for other arms.

    With one factor, the core is one panel. Bands are 95% t intervals.
    """
    curves, control, lines = info.curves, info.plan.control, info.lines
    arms = info.by_arm[info.by_arm["arm"].isin(set(curves["arm"]))]
    panels = _panels(arms, info.plan)
    across = min(len(panels), 3)
    down = math.ceil(len(panels) / across)
    legend_columns, legend_rows = _legend_size({_name(arm, lines) for arm in records(arms)})
    figure = new_figure(1.0 + 2.2 * down + 0.2 * legend_rows)
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    styles = style.arm_styles(info.by_arm, lines)
    handles: dict[str, Line2D] = {}
    reference = curves[curves["arm"] == control]
    for axes, (title, of_panel) in zip(grid.flat, panels, strict=False):
        for index, arm in enumerate(records(of_panel)):
            colour, marker = styles[arm["arm"]]
            core = arm["role"] == "core" and arm["line"] in lines
            line = style.look(lines.index(arm["line"]))[2] if core else pick(LINES, index + 3 * bool(lines))
            name = plain_text(_name(arm, lines))
            _curve(axes, curves[curves["arm"] == arm["arm"]], colour, marker, line, index)
            handles.setdefault(name, Line2D([], [], color=colour, marker=marker, linestyle=line, label=name))
        if len(reference) and control not in set(of_panel["arm"]):
            axes.plot(reference["step"], reference["mean"], color="0.35", linewidth=0.9, zorder=1)
            handles.setdefault(
                CONTROL_LABEL, Line2D([], [], color="0.35", linewidth=0.9, label=CONTROL_LABEL)
            )
        axes.set_title(plain_text(title), loc="left", fontsize=10)
    for spare in grid.flat[len(panels) :]:
        spare.set_axis_off()
    for index, axes in enumerate(grid.flat[: len(panels)]):
        lowest = index + across >= len(panels)
        axes.set_ylabel(unit_below(info.score) if index % across == 0 else "")
        axes.set_xlabel(LABELS["step"], visible=lowest)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.tick_params(labelbottom=lowest)
    low, top = curves["mean"].quantile(0.02), curves["mean"].max()
    if top - low > 1e-9:  # where the means are: a band of two seeds may be wider than the scale
        grid[0, 0].set_ylim(low - 0.15 * (top - low), top + 0.3 * (top - low))
    ordered = sorted(
        handles.values(), key=lambda handle: handle is handles.get(CONTROL_LABEL)
    )  # it comes last
    band = " and 95% band" if curves["n"].max() >= MIN_N else ""
    title = f"best score so far, mean{band}, {seeds_text(curves['n'])}"
    figure.legend(
        handles=ordered, loc="outside lower center", ncols=legend_columns, title=title, frameon=False
    )
    return figure


def _legend_size(names: set[str]) -> tuple[int, int]:
    """Return columns and rows of a legend below the figure, with an entry for the control."""
    longest = max(map(len, names))
    columns = next(most for most, width in ((4, 20), (3, 28), (2, 45), (1, longest)) if longest <= width)
    return columns, math.ceil((1 + len(names)) / columns)


def _name(arm: Mapping[str, Any], lines: Sequence[str]) -> str:
    """Return what the legend calls an arm: one of the core by its line."""
    return str(arm["line"] if arm["role"] == "core" and arm["line"] in lines else arm["arm"])


def _panels(arms: pd.DataFrame, plan: Plan) -> list[tuple[str, pd.DataFrame]]:
    """Return title and arms of each panel: the core by its first factor, then all others, six at most in one."""
    core = tables.core(arms, plan)
    along = cell_names(core, plan.factors[:1]) if len(plan.factors) > 1 else ["arms"] * len(core)
    panels = [(level, core[[cell == level for cell in along]]) for level in dict.fromkeys(along)]
    rest = arms[~arms["arm"].isin(core["arm"])]
    for start in range(0, len(rest), PER_PANEL):
        part = (
            f", {start // PER_PANEL + 1} of {math.ceil(len(rest) / PER_PANEL)}"
            if len(rest) > PER_PANEL
            else ""
        )
        panels.append((f"{REST if len(core) else 'arms'}{part}", rest.iloc[start : start + PER_PANEL]))
    return panels


def _curve(axes: Axes, rows: pd.DataFrame, colour: str, marker: str, line: object, index: int) -> None:
    apart = max(1, len(rows) // 5)
    axes.plot(
        rows["step"],
        rows["mean"],
        color=colour,
        linestyle=line,
        marker=marker,
        markevery=(index * apart // 3 % apart, apart),  # lines that coincide show each other's markers
        markersize=5,
        linewidth=1.4,
        zorder=3,
    )
    step, low, high = (rows[name].to_numpy(dtype=float) for name in ("step", "low", "high"))
    axes.fill_between(step, low, high, color=colour, alpha=0.15, linewidth=0, zorder=2)


PART = Part("Convergence", info, section, {"learning_curves": draw_curves})
