"""Methods with the base model frozen and fine-tuned, by data size (ElNokrashy et al. 2024, figure 6)."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.drawing import style
from reports.drawing.pieces import point, seeds_text, unit_below
from reports.drawing.style import COLOURS, MARKERS, new_figure, pick, say_empty, styled
from reports.evidence.claims import BETTER, WORSE, Claim
from reports.evidence.evidence import Evidence
from reports.evidence.methods import FROZEN, by_method, under_both
from reports.evidence.statistics import FEW, LEVEL
from reports.parts.cells import difference, interval_text, summary
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.words.labels import Label
from reports.words.text import NONE, count, escape, folded, number, several, table

NO_SCORES = "Nothing to draw: no scores of confirmed arms."


@dataclass(frozen=True)
class Info:
    """What is shown of arms whose base model is trained.

    scores: as from `methods.by_method`: these arms, and the frozen ones of as many examples and epochs
    gains:  arm -> the claim on it against its frozen method
    beyond: arm -> the claim on it against another method fine-tuned, the plainest one
    score:  on the split that arms are compared on; chosen: on validation
    """

    scores: pd.DataFrame
    gains: dict[str, Claim]
    beyond: dict[str, Claim]
    plainest: str
    score: str
    chosen: Label

    @property
    def trained(self) -> pd.DataFrame:
        """The rows of arms whose base model is trained."""
        return self.scores[self.scores["base_model"] != FROZEN]


def info(evidence: Evidence) -> Info | None:
    if not under_both(evidence.plan):
        return None
    scores = by_method(evidence.arms, evidence.plan)
    trained = scores[scores["base_model"] != FROZEN]
    if trained.empty:
        return None
    cells = set(zip(trained["examples"], trained["epochs"], strict=True))
    same = [cell in cells for cell in zip(scores["examples"], scores["epochs"], strict=True)]
    base = dict(zip(scores["arm"], scores["base_model"], strict=True))
    claims = [
        claim
        for claim in evidence.claims
        if claim.kind == "arm" and claim.n and base.get(claim.arm, FROZEN) != FROZEN
    ]
    beyond = [claim for claim in claims if base.get(claim.control, FROZEN) != FROZEN]
    method = dict(zip(scores["arm"], scores["method"], strict=True))
    return Info(
        scores[same],
        {claim.arm: claim for claim in claims if base.get(claim.control) == FROZEN},
        {claim.arm: claim for claim in beyond},
        next((method[claim.control] for claim in beyond), ""),
        evidence.scored.name,
        evidence.chosen,
    )


def section(info: Info) -> list[str]:
    chosen = info.chosen.name
    frozen = info.scores[info.scores["base_model"] == FROZEN].set_index(["method", "examples", "epochs"])
    rows = []
    for row in records(info.trained.sort_values("examples", kind="stable")):
        key = (row["method"], row["examples"], row["epochs"])
        before = summary(records(frozen.loc[[key]])[0], "val_") if key in frozen.index else NONE
        claims = (info.gains.get(row["arm"]), info.beyond.get(row["arm"]))
        told = [NONE if claim is None else f"{difference(claim)}, {claim.verdict}" for claim in claims]
        rows.append(
            [escape(row["method"]), f"{row['examples']:,.0f}", before, summary(row, "val_"), *told],
        )
    heads = ["method", "training examples", f"frozen: best {chosen}", f"fine-tuned: best {chosen}"]
    gains = [
        f"fine-tuned instead of frozen, {info.score}",
        f"instead of {escape(info.plainest) or NONE}, both fine-tuned, {info.score}",
    ]
    epochs = several([count(int(of), "epoch") for of in sorted(info.trained["epochs"].unique())])
    return [
        f"The same methods with the base model trained along, for {epochs}: the best {chosen} of each training, "
        f"mean over seeds, and from {FEW} seeds on {LEVEL:.0%} t intervals, not corrected. Those of the table's "
        "differences are: they hold together with the intervals of all comparisons.",
        figure_link("fine_tuning", f"Best {chosen} by method, base model frozen and fine-tuned"),
        folded("Fine-tuning as a table", len(rows), table([*heads, *gains], rows)),
    ]


@styled
def draw(info: Info) -> Figure:
    """Best validation scores of each method, frozen and fine-tuned: a panel per number of examples."""
    rows, known = info.scores, info.scores.dropna(subset=["val_mean"])
    figure = new_figure(3.4)
    if known.empty:
        say_empty(figure.add_subplot(), NO_SCORES)
        return figure
    methods = list(dict.fromkeys(rows["method"]))
    kinds = list(dict.fromkeys([FROZEN, *rows["base_model"]]))
    sizes = sorted(rows["examples"].unique())
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axes, size in zip(panels, sizes, strict=True):
        for row in records(rows[rows["examples"] == size]):
            kind = kinds.index(row["base_model"])
            at = methods.index(row["method"]) + 0.2 * (kind - (len(kinds) - 1) / 2)
            ends = (row["val_mean"], row["val_low"], row["val_high"])
            point(axes, at, *ends, pick(COLOURS, kind), pick(MARKERS, kind), along="y")
        style.name_ticks(axes, [name.replace("-", "-\n") for name in methods], axis="x")
        axes.set_xlim(-0.5, len(methods) - 0.5)
        axes.set_title(f"{size:,.0f} examples", loc="left", fontsize=10)
        axes.set_xlabel("method")
    panels[0].set_ylabel(unit_below(f"best {info.chosen}"))
    handles = [
        Line2D([], [], color=pick(COLOURS, kind), marker=pick(MARKERS, kind), linestyle="none", label=name)
        for kind, name in enumerate(kinds)
    ]
    title = f"base model; {interval_text(known['val_n'])}, {seeds_text(known['val_n'])}"
    figure.legend(handles=handles, loc="outside lower center", ncols=len(kinds), title=title, frameon=False)
    return figure


def answer(info: Info) -> list[str]:
    parts = []
    for size in sorted(info.trained["examples"].unique()):
        arms = info.trained[info.trained["examples"] == size]
        names = [
            f"{escape(row['method'])} {number(claim.difference, signed=True)}"
            f"{f' (**{claim.verdict}**)' if claim.verdict in (BETTER, WORSE) else ''}"
            for row in records(arms)
            if (claim := info.gains.get(row["arm"])) is not None
        ]
        if names:
            parts.append(f"with {size:,.0f} examples, {several(names, 6)}")
    if not parts:
        return []
    return [
        f"**Fine-tuned instead of frozen** ({info.score}; without a verdict: not decided): {'; '.join(parts)}."
    ]


PART = Part("Fine-tuned next to frozen", info, section, {"fine_tuning": draw}, answer)
