"""Score against the number of training examples, where it was varied."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from adalayers.results.intervals import LEVEL
from reports.drawing.pieces import legend_right, point, seeds_text, unit_below
from reports.drawing.style import look, new_figure, plain_text
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.holm import BETTER, SAME, WORSE
from reports.parts.cells import named, summary
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.tables import methods
from reports.tables.data_size import SIZE, by_size
from reports.words.labels import AxisLabel
from reports.words.text import escape, folded, several, table


@dataclass(frozen=True)
class Info:
    """sizes: as from `data_size.by_size`; pool: training examples that are drawn from, 0 where that is not known.

    effects: number of training examples -> the claims on what settings do there, by rising number
    """

    sizes: pd.DataFrame
    score: AxisLabel
    pool: int
    effects: dict[int, list[Claim]]
    plan: Plan


def info(evidence: Evidence) -> Info | None:
    if methods.under_both(evidence.plan):  # shown by `few_shot`, a panel per number of epochs
        return None
    sizes = by_size(evidence.trials, evidence.plan, evidence.split).dropna(subset=["mean"])
    if sizes.empty:
        return None
    effects: dict[int, list[Claim]] = {}
    for claim in evidence.claims:
        if claim.kind == "simple" and claim.at and claim.at.factor == SIZE and claim.n:
            effects.setdefault(int(claim.at.level), []).append(claim)
    pool = evidence.loaded.study.environment.dataset.examples.get("train", 0)
    return Info(sizes, evidence.scored, pool, dict(sorted(effects.items())), evidence.plan)


def section(info: Info) -> list[str]:
    scored = info.score.name
    rows = [[escape(row["line"]), f"{row['examples']:,.0f}", summary(row)] for row in records(info.sizes)]
    return [
        _overlap(info),
        "Intervals are t intervals over seeds, not corrected.",
        figure_link("score_by_size", f"{scored} against the number of training examples"),
        folded(
            "The scores as a table",
            len(rows),
            table(["arm", "training examples", f"{scored}, mean [{LEVEL:.0%} interval]"], rows),
        ),
    ]


def answer(info: Info) -> list[str]:
    """Say at which sizes settings differ from the control, and from which one on all are alike."""
    if not info.effects:
        return []
    parts, alike_from = [], 0
    for size, claims in info.effects.items():
        differ = [claim for claim in claims if claim.shown in (BETTER, WORSE)]
        names = (f"{named(replace(claim, at=None), info.plan)} ({claim.shown})" for claim in differ)
        parts += [f"with {size:,} examples, {several(names, 4)}"] if differ else []
        alike = all(claim.shown == SAME for claim in claims)
        alike_from = (alike_from or size) if alike else 0
    text = (
        f"Settings differ {'; '.join(parts)}."
        if parts
        else "At no number of examples do settings differ for certain."
    )
    rest = (
        f"From {alike_from:,} examples on, no effect of a setting on its reference is larger than "
        f"{info.plan.smallest_effect:g}."
        if alike_from
        else "That no setting has an effect is shown at no number of examples from which it stays so."
    )
    return [f"**By amount of data**: {text} {rest}"]


def _overlap(info: Info) -> str:
    """Say where seeds share most of their examples."""
    near = sorted({int(size) for size in info.sizes["examples"] if info.pool and size > info.pool / 2})
    if not near:
        return ""
    named_sizes = several([f"{size:,}" for size in near])
    return (
        f"Examples are drawn for each seed, from a pool of {info.pool:,}: draws of {named_sizes} overlap in most "
        "of them, so that their spread over seeds is not that over samples."
    )


def draw(info: Info) -> Figure:
    """Mean score against the number of training examples, a line per kind of arm."""
    figure = new_figure(3.9)
    axes = figure.add_subplot()
    handles = []
    by_line = list(info.sizes.groupby("line", sort=False))
    for position, (name, rows) in enumerate(by_line):
        colour, marker, line = look(position)
        # Apart, so that bars do not hide each other.
        x = rows["examples"] * 1.02 ** (position - (len(by_line) - 1) / 2)
        axes.plot(x, rows["mean"], color=colour, linestyle=line)
        for x_point, row in zip(x, records(rows), strict=True):
            point(axes, x_point, row["mean"], row["low"], row["high"], colour, marker, along="y")
        handles.append(Line2D([], [], color=colour, linestyle=line, marker=marker, label=plain_text(name)))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    sizes = sorted(info.sizes["examples"].unique())
    if len(sizes) <= 8:
        axes.set_xticks(sizes)
    axes.xaxis.set_minor_locator(NullLocator())
    legend_right(figure, handles, seeds_text(info.sizes["n"]))
    axes.set_xlabel("training examples (count), log scale")
    axes.set_ylabel(unit_below(info.score))
    return figure


PART = Part("Score against data size", info, section, {"score_by_size": draw}, answer)
