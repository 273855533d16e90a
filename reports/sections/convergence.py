"""How fast arms learn: the best validation score so far over training steps, and the step of convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from reports.cells import named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import GREY, Look, curves, legend, looks_of, panels, seeds_text
from reports.reading.factors import cell_names
from reports.reading.frames import records
from reports.render import markdown
from reports.section import Section, Table
from reports.tables import arms as tables_of_arms
from reports.tables.convergence import convergence_by_arm
from reports.tables.curves import learning_curves, milestones
from reports.words.labels import LABELS
from reports.words.text import NONE, interval, number

PER_PANEL = 6
"""Most arms outside the core in one panel."""


@dataclass(frozen=True)
class Frames:
    """curves: as from `curves.learning_curves`; by_arm: as from `convergence.convergence_by_arm`."""

    evidence: Evidence
    curves: pd.DataFrame
    by_arm: pd.DataFrame


def frames(evidence: Evidence) -> Frames | None:
    over_steps = learning_curves(evidence.trials, evidence.history, evidence.plan)
    if over_steps.empty:
        return None
    return Frames(evidence, over_steps, convergence_by_arm(evidence.convergence, evidence.arms))


def tables(frames: Frames) -> Sequence[Table]:
    at_step = milestones(frames.curves)
    scores = {(row["arm"], row["at"]): summary(row) for row in records(at_step)}
    heads: dict[str, Any] = {"arm": lambda row: named(row["arm"])}
    for step in dict.fromkeys(at_step["at"]):
        heads[f"best score at step {step:,.0f}"] = lambda row, step=step: scores.get((row["arm"], step), NONE)
    heads["step of convergence"] = _median
    caption = (
        "Step of convergence: the first evaluation with 95% of a trial's own gain over the trivial model; median "
        "[earliest, latest]; censored: never above that model."
    )
    return [table_of(frames.by_arm, heads, caption)]


def _median(row: Mapping[str, Any]) -> str:
    span = f" {interval(row['low'], row['high'], 0)}" if row["n"] > 1 else ""
    counts = [
        f"{row[name]} {name.replace('_', ' ')}" for name in ("censored", "without_history") if row[name]
    ]
    counts = [f"n = {row['n']}", *counts]
    return markdown(f"{number(row['median'], 0)}{span}, {', '.join(counts)}")


def draw(frames: Frames) -> Figure:
    """Best score so far against steps: the core by its first factor, six other arms in a panel, the control grey."""
    control, plan, lines = frames.evidence.plan.control, frames.evidence.plan, frames.evidence.lines
    arms = frames.by_arm[frames.by_arm["arm"].isin(set(frames.curves["arm"]))]
    core = tables_of_arms.core(arms, plan)
    along = cell_names(core, plan.factors[:1]) if len(plan.factors) > 1 else ["arms"] * len(core)
    shown = {level: core[[cell == level for cell in along]] for level in dict.fromkeys(along)}
    rest = arms[~arms["arm"].isin(core["arm"])]
    for start in range(0, len(rest), PER_PANEL):
        shown[f"{'other ' * bool(len(core))}arms{f', from {start + 1}' * bool(start)}"] = rest.iloc[
            start : start + PER_PANEL
        ]
    series = {
        row["arm"]: row["line"] if row["arm"] in set(core["arm"]) and row["line"] else row["arm"]
        for row in records(arms)
    }
    looks = looks_of([*lines, *series.values()])
    figure, axes = panels(list(shown), 2.2, x=LABELS["step"], y=str(frames.evidence.chosen))
    reference = frames.curves[frames.curves["arm"] == control]
    for panel, own in zip(axes, shown.values(), strict=True):
        rows = frames.curves[frames.curves["arm"].isin(own["arm"])]
        if control not in set(own["arm"]):
            panel.plot(reference["step"], reference["mean"], color=GREY, linewidth=0.9, zorder=1)
        curves(rows.assign(series=rows["arm"].map(series)), panel, looks=looks)
    low, top = frames.curves["mean"].quantile(0.02), frames.curves["mean"].max()
    if top - low > 1e-9:  # where the means are: a band of two seeds may be wider than the scale
        axes[0].set_ylim(low - 0.15 * (top - low), top + 0.3 * (top - low))
    entries = {name: looks[name] for name in dict.fromkeys(series.values())}
    if len(shown) > 1 and len(reference):
        entries["control"] = Look(GREY, "")
    legend(figure, entries, f"best score so far, mean and 95% band, {seeds_text(frames.curves['n'])}")
    return figure


SECTION = Section(
    "Convergence",
    frames,
    tables,
    {"learning_curves": draw},
    "Best validation score so far over training steps, by arm",
)
