"""Quality on the page: the primary differences with their intervals, the seeds as dots."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.drawing import style
from reports.drawing.pieces import point, unit_below
from reports.drawing.style import COLOURS, MARKERS, new_figure, plain_text
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.parts.cells import compared
from reports.parts.part import Part, figure_link
from reports.reading.load import Plan
from reports.words.labels import AxisLabel
from reports.words.text import code, number

STYLES = {BETTER: (COLOURS[2], MARKERS[1]), WORSE: (COLOURS[1], MARKERS[4]), SAME: (COLOURS[0], MARKERS[0])}
"""Verdict -> colour and marker; what is not decided is grey."""
UNDECIDED = ("#777777", "d")
ROW_CHARACTERS = 44
"""Most characters of a line that names a row."""


@dataclass(frozen=True)
class Info:
    """What the section says.

    Attributes:
        claims: The primary ones that have paired seeds.
        best: The arm that the search found best.
        searched: Its score in the search, on validation.
        confirmed: Its mean over seeds, on validation.
        tested: Its mean over seeds, on `split`.
    """

    claims: tuple[Claim, ...]
    plan: Plan
    score: AxisLabel
    split: str
    best: str
    searched: float | None
    confirmed: float | None
    tested: float | None


def info(evidence: Evidence) -> Info | None:
    claims = tuple(claim for claim in evidence.claims if claim.primary and claim.n)
    if not claims:
        return None
    best = next((arm for arm in evidence.plan.arms if arm.role == "best"), None)
    row = evidence.row_of(best.name) if best else None
    search = evidence.search
    done = search.loc[search["status"] == "completed", "score"].dropna()
    top = float(done.iloc[done.argmax()]) if len(done) else None
    return Info(
        claims,
        evidence.plan,
        evidence.scored,
        evidence.split_name,
        best.name if best else "",
        top if row else None,
        float(row["val_mean"]) if row and row["val_n"] else None,
        float(row["mean"]) if row and row["n"] else None,
    )


def section(info: Info) -> list[str]:
    small = info.plan.smallest_effect
    zone = f" Grey, ±{small:g}: too small to matter." if small is not None else ""
    return [
        "Dots are seeds, bars intervals, each at the level of its own test. Left of 0: worse than its reference, by "
        f"default the control.{zone}",
        figure_link("quality", "Differences of the primary comparisons, with intervals and seeds"),
        _curse(info),
    ]


def _curse(info: Info) -> str:
    """Return the search's best by its search score and by its confirmed one: the winner's curse."""
    if info.searched is None or info.confirmed is None or info.tested is None:
        return ""
    tested = "" if info.split == "validation" else f", and {number(info.tested)} on {info.split}"
    return (
        f"{code(info.best)} won the search with {number(info.searched)} on validation; confirmed with fresh seeds it "
        f"has {number(info.confirmed)} there{tested}."
    )


def draw(info: Info) -> Figure:
    """A row per primary comparison: its difference by seed, their mean and its interval, over the smallest effect."""
    shown = info.claims
    figure = new_figure(1.5 + 0.36 * max(len(shown), 3))
    axes = figure.add_subplot()
    small = info.plan.smallest_effect or 0.0
    if small:
        axes.axvspan(-small, small, color="0.9", zorder=0)
    axes.axvline(0, color="0.3", linewidth=1, zorder=1)
    drawn: list[tuple[float, int, str]] = []
    for position, claim in enumerate(shown):
        colour, marker = STYLES.get(claim.shown, UNDECIDED)
        values = list(claim.values.values())
        apart = np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else [0.0]
        axes.plot(values, position + np.asarray(apart), ".", color=colour, alpha=0.45, markersize=5, zorder=2)
        low, high = (np.nan if end is None else end for end in (claim.low, claim.high))
        point(axes, claim.difference or 0.0, position, low, high, colour, marker, along="x")
        drawn += [(end, position, colour) for end in (low, high) if np.isfinite(end)]
    most = sum(claim.kind == "arm" and claim.control == info.plan.control for claim in shown) > len(shown) / 2
    names = [_name(claim, info.plan, full=not most) for claim in shown]
    style.name_ticks(axes, names, axis="y")
    axes.set_ylim(len(shown) - 0.4, -0.6)
    differences = [value for claim in shown for value in claim.values.values()]
    ends = [
        end for claim in shown if claim.verdict != OPEN for end in (claim.low, claim.high) if end is not None
    ]
    left, right = min([-2 * small, -1e-9, *differences, *ends]), max([2 * small, 1e-9, *differences, *ends])
    margin = 0.1 * (right - left)
    left, right = left - margin, right + margin
    axes.set_xlim(left, right)
    for end, position, colour in drawn:  # intervals of what is not decided may run out of the picture
        if not left <= end <= right:
            edge, marker = (right, ">") if end > right else (left, "<")
            axes.plot(edge, position, marker, color=colour, clip_on=False, zorder=4)
    axes.set_xlabel(plain_text(f"difference in {info.score.name}"))
    axes.set_ylabel(unit_below("comparison (n = pairs of seeds)"))
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="-", label=verdict)
        for verdict, (colour, marker) in {**STYLES, OPEN: UNDECIDED}.items()
        if any(claim.verdict == verdict for claim in shown)
    ]
    if small:
        handles.append(Patch(color="0.9", label=f"within ±{small:g}"))  # type: ignore[arg-type]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def _name(claim: Claim, plan: Plan, full: bool) -> str:
    """Return what a row is called, on several lines where it is long; full: that it is against the control."""
    control = (
        " instead of the control" if full and claim.kind == "arm" and claim.control == plan.control else ""
    )
    lines = textwrap.wrap(f"{compared(claim, plan)}{control} (n\u00a0=\u00a0{claim.n})", ROW_CHARACTERS)
    return "\n".join(line.replace("\u00a0", " ") for line in lines)


PART = Part("Quality", info, section, {"quality": draw})
