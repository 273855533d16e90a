"""What each component contributes: the differences to the whole method, largest loss first.

The figure stands where components were also tuned, next to each other; without that, it would be the figure of
`quality` once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.drawing import style
from reports.drawing.pieces import legend_right
from reports.drawing.style import COLOURS, new_figure, plain_text, styled
from reports.evidence.claims import BETTER, Claim
from reports.evidence.evidence import Evidence
from reports.parts.cells import difference
from reports.parts.part import Part, figure_link
from reports.words.labels import Label
from reports.words.text import NONE, code, folded, several, table


@dataclass(frozen=True)
class Info:
    """kept, tuned: component -> its claim against the whole, with hyperparameters kept, and where both were tuned."""

    kept: dict[str, Claim]
    tuned: dict[str, Claim]
    score: Label
    control: str
    smallest: float | None


def info(evidence: Evidence) -> Info | None:
    found = {claim.arm: claim for claim in evidence.claims if claim.difference is not None}
    arms = [arm for arm in evidence.plan.arms if arm.name in found]
    kept = {arm.name: found[arm.name] for arm in arms if arm.role == "component"}
    tuned = {name: found[arm.name] for arm in arms for name in arm.tunes if arm.role == "tuned"}
    if not kept:
        return None
    ordered = dict(sorted(kept.items(), key=lambda item: item[1].difference or 0.0))
    return Info(ordered, tuned, evidence.scored, evidence.plan.control, evidence.plan.smallest_effect)


def section(info: Info) -> list[str]:
    scored = info.score.name
    heads = ["changed", f"{scored}, difference to {info.control} [corrected interval]", "verdict"]
    heads += ["both tuned again: difference", "verdict"] if info.tuned else []
    rows = []
    for name, claim in info.kept.items():
        row = [code(name), difference(claim), claim.verdict]
        if info.tuned:
            again = info.tuned.get(name)
            row += [difference(again), again.verdict] if again else [NONE, NONE]
        rows.append(row)
    tuned = (
        " *Tuned* compares the best of a search for each component with the best of an equal search for the whole."
        if info.tuned
        else " Hyperparameters are kept: `--trials N` also tunes each component again."
    )
    return [
        f"One component of {code(info.control)} is changed at a time; below 0 the change costs quality.{tuned}",
        figure_link("ablation", f"Difference of {scored} when one component is changed")
        if info.tuned
        else "",
        folded("Every component", len(rows), table(heads, rows)),
    ]


@styled
def draw(info: Info) -> Figure | None:
    """Two bars per component from 0, the largest loss on top, with corrected intervals and seeds as dots."""
    if not info.tuned:
        return None
    names = list(info.kept)
    figure = new_figure(1.5 + 0.34 * len(names))
    axes = figure.add_subplot()
    handles: list[Line2D | Patch] = []
    kinds = [
        ("hyperparameters kept", info.kept, COLOURS[0], -0.2),
        ("both tuned", info.tuned, COLOURS[1], 0.2),
    ]
    for label, claims, colour, shift in kinds:
        handles.append(Patch(color=colour, alpha=0.45, label=label))
        for place, name in enumerate(names):
            claim = claims.get(name)
            if claim is None or claim.difference is None:
                continue
            y = place + shift
            axes.barh(y, claim.difference, height=0.36, color=colour, alpha=0.45, zorder=1)
            if claim.low is not None and claim.high is not None:
                axes.plot([claim.low, claim.high], [y, y], color=colour, linewidth=1.4, zorder=3)
            seeds = list(claim.values.values())
            axes.plot(seeds, [y] * len(seeds), ".", color="0.25", markersize=3.5, zorder=4)
    if info.smallest is not None:
        axes.axvspan(-info.smallest, info.smallest, color="0.9", zorder=0)
        handles.append(Patch(color="0.9", label=f"within ±{info.smallest:g}"))
    handles.append(Line2D([], [], color="0.25", marker=".", linestyle="none", label="one seed"))
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    style.name_ticks(axes, names, axis="y")
    axes.invert_yaxis()
    axes.set_xlabel(plain_text(f"difference of {info.score}"))
    legend_right(figure, handles, f"against\n{plain_text(info.control)}")
    return figure


def answer(info: Info) -> list[str]:
    """Name the largest loss and the largest gain."""
    lossy = [
        f"{code(name)} {difference(claim)}"
        for name, claim in list(info.kept.items())[:3]
        if (claim.difference or 0) < 0
    ]
    helps = [
        f"{code(name)} {difference(claim)}" for name, claim in info.kept.items() if claim.verdict == BETTER
    ]
    scored = info.score.name
    parts = [f"most is lost by {several(lossy)}" if lossy else "no change costs anything"]
    parts += [f"the method is better with {several(helps)}"] if helps else []
    return [f"**Components** (change of {scored}): {'; '.join(parts)}."]


PART = Part("What each component contributes", info, section, {"ablation": draw}, answer)
