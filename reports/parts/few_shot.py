"""Methods by number of training examples and epochs, step by step, frozen and fine-tuned.

After ElNokrashy et al. 2024, figures 3, 4 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from adalayers.comparisons import At
from adalayers.results.intervals import LEVEL, MIN_N
from reports.drawing import style
from reports.drawing.pieces import point, seeds_text, unit_below
from reports.drawing.style import look, new_figure, plain_text
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.holm import SAME
from reports.parts.cells import interval_text, named, summary
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.tables.curves import learning_curves
from reports.tables.methods import CONDITIONS, EPOCHS, FROZEN, by_method, under_both
from reports.words.labels import LABELS, AxisLabel
from reports.words.text import count, escape, folded, number, several, table

CHOSEN, COMPARED = "val_", ""
"""How the columns of a summary begin: on validation, and on the split that arms are compared on."""


@dataclass(frozen=True)
class Info:
    """What is shown of a study under numbers of examples and of epochs.

    Attributes:
        scores: As from `methods.by_method`, of arms that have a score.
        curves: As from `curves.learning_curves`, scores as they are, of the core's arms with the fewest and the most
            examples for `epochs`; with method and examples.
        effects: The claims on methods at one number of examples or epochs.
        gains: Arm whose base model is trained -> the claim on it against its frozen method.
        score: On the split that arms are compared on; `chosen`: on validation.
        tested: Whether the two differ.
    """

    scores: pd.DataFrame
    curves: pd.DataFrame
    epochs: float
    effects: tuple[Claim, ...]
    gains: dict[str, Claim]
    plan: Plan
    score: AxisLabel
    chosen: AxisLabel
    tested: bool

    @property
    def core(self) -> pd.DataFrame:
        return self.scores[self.scores["role"] == "core"]

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(self.core["method"]))

    @property
    def ends(self) -> list[float]:
        """The fewest and the most examples."""
        return sorted({self.core["examples"].min(), self.core["examples"].max()})

    @property
    def beside(self) -> pd.DataFrame:
        """The arms whose base model is trained, and those of as many examples and epochs that are frozen."""
        conditions = ["examples", "epochs"]
        trained = self.scores[self.scores["base_model"] != FROZEN]
        return self.scores.merge(trained[conditions].drop_duplicates(), on=conditions)


def info(evidence: Evidence) -> Info | None:
    plan = evidence.plan
    if not under_both(plan):
        return None
    scores = by_method(evidence.arms, plan).dropna(subset=["val_mean"])
    core = scores[scores["role"] == "core"]
    if core.empty:
        return None
    epochs = sorted(core["epochs"].unique())
    middle = float(epochs[(len(epochs) - 1) // 2])
    drawn = core[(core["epochs"] == middle) & core["examples"].isin(core["examples"].agg(["min", "max"]))]
    trials = evidence.trials[evidence.trials["arm"].isin(drawn["arm"])]
    curves = learning_curves(trials, evidence.history, plan, so_far=False)
    base = dict(zip(scores["arm"], scores["base_model"], strict=True))
    claims = [claim for claim in evidence.claims if claim.n]
    return Info(
        scores,
        drawn[["arm", "method", "examples"]].merge(curves, on="arm"),
        middle,
        tuple(claim for claim in claims if claim.at and claim.at.factor in CONDITIONS),
        {
            claim.arm: claim
            for claim in claims
            if base.get(claim.arm, FROZEN) != FROZEN and base.get(claim.control) == FROZEN
        },
        plan,
        evidence.scored,
        evidence.chosen,
        evidence.split != "val",
    )


def section(info: Info) -> list[str]:
    chosen = info.chosen.name
    tested = f", and below it the {info.score.name} of that epoch" if info.tested else ""
    paragraphs = [
        f"The best {chosen} of each training, as published{tested}: means over seeds, each with a draw of examples of "
        f"its own, and from {MIN_N} seeds on {LEVEL:.0%} t intervals, not corrected.",
        figure_link("few_shot_scores", f"Best {chosen} by method against the number of training examples"),
        _scores_table(info),
    ]
    if len(info.curves):
        sizes = several(f"{size:,.0f}" for size in info.ends)
        paragraphs += [
            f"The {chosen} after each of {count(int(info.epochs), 'epoch')}, base model frozen, with {sizes} examples.",
            figure_link("few_shot_curves", f"{_capital(chosen)} over training steps, by method"),
        ]
    if len(info.beside):
        epochs = several(count(int(most), "epoch") for most in sorted(info.beside["epochs"].unique()))
        paragraphs += [
            f"The same methods with the base model trained along, for {epochs}.",
            figure_link("fine_tuning", f"Best {chosen} by method, base model frozen and fine-tuned"),
        ]
    return paragraphs


def _scores_table(info: Info) -> str:
    heads = ["method", "base model", "training examples", "epochs", f"best {info.chosen.name}"]
    rows = [
        [
            escape(row["method"]),
            escape(row["base_model"]),
            f"{row['examples']:,.0f}",
            f"{row['epochs']:g}",
            summary(row, CHOSEN),
            *([summary(row, COMPARED)] if info.tested else []),
        ]
        for row in records(info.scores.sort_values(["examples", "epochs"], kind="stable"))
    ]
    heads += [f"{info.score.name} of that epoch"] if info.tested else []
    return folded("The scores as a table", len(rows), table(heads, rows))


def draw_scores(info: Info) -> Figure:
    """Scores against the number of examples: a column of panels per number of epochs, a line per method."""
    epochs = sorted(info.core["epochs"].unique())
    splits = [(CHOSEN, f"best {info.chosen}"), *([(COMPARED, info.score)] if info.tested else [])]
    figure = new_figure(2.9 + 2.3 * info.tested)
    grid = figure.subplots(len(splits), len(epochs), sharex=True, sharey=True, squeeze=False)
    for (prefix, label), line in zip(splits, grid, strict=True):
        line[0].set_ylabel(unit_below(label))
        for axes, most in zip(line, epochs, strict=True):
            _by_size(axes, info, info.core[info.core["epochs"] == most], prefix)
    for axes, most in zip(grid[0], epochs, strict=True):
        axes.set_title(count(int(most), "epoch"), loc="left", fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel("training examples\n(count), log scale")
    n = info.core["val_n"]
    _legend(figure, info.methods, f"{interval_text(n)}, {seeds_text(n)}", lines=True)
    return figure


def _by_size(axes: Axes, info: Info, rows: pd.DataFrame, prefix: str) -> None:
    for position, method in enumerate(info.methods):
        of_method = rows[rows["method"] == method].sort_values("examples")
        colour, marker, line = look(position)
        # Apart, so that bars do not hide each other.
        x = of_method["examples"] * 1.06 ** (position - (len(info.methods) - 1) / 2)
        axes.plot(x, of_method[f"{prefix}mean"], color=colour, linestyle=line)
        for x_point, row in zip(x, records(of_method), strict=True):
            mean, low, high = (row[f"{prefix}{name}"] for name in ("mean", "low", "high"))
            point(axes, x_point, mean, low, high, colour, marker, along="y")
    sizes = sorted(info.core["examples"].unique())
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_major_locator(FixedLocator([float(size) for size in sizes]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(sizes[0] / 1.5, sizes[-1] * 1.5)


def draw_curves(info: Info) -> Figure | None:
    """Mean validation score over steps, with its band: a panel with the fewest examples, one with the most."""
    if info.curves.empty:
        return None
    figure = new_figure(3.6)
    panels = figure.subplots(1, len(info.ends), squeeze=False)[0]
    for axes, size in zip(panels, info.ends, strict=True):
        for method, curve in info.curves[info.curves["examples"] == size].groupby("method"):
            position = info.methods.index(str(method))
            colour, marker, line = look(position)
            spacing = max(1, len(curve) // 6)
            axes.plot(
                *(curve["step"], curve["mean"]),
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=5,
                markevery=(position * spacing // 4 % spacing, spacing),
            )
            axes.fill_between(
                curve["step"], curve["low"], curve["high"], color=colour, alpha=0.15, linewidth=0
            )
        axes.set_title(f"{size:,.0f} examples", loc="left", fontsize=10)
        axes.set_xlabel(LABELS["step"])
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    panels[0].set_ylabel(unit_below(info.chosen))
    n = info.curves["n"]
    _legend(figure, info.methods, f"{interval_text(n, 'band')}, {seeds_text(n)}", lines=True)
    return figure


def draw_fine_tuning(info: Info) -> Figure | None:
    """Best validation scores of each method, frozen and fine-tuned: a panel per number of examples."""
    rows = info.beside
    if rows.empty:
        return None
    figure = new_figure(3.4)
    methods, kinds = list(dict.fromkeys(rows["method"])), list(dict.fromkeys([FROZEN, *rows["base_model"]]))
    sizes = sorted(rows["examples"].unique())
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axes, size in zip(panels, sizes, strict=True):
        for row in records(rows[rows["examples"] == size]):
            kind = kinds.index(row["base_model"])
            x = methods.index(row["method"]) + 0.2 * (kind - (len(kinds) - 1) / 2)
            point(axes, x, row["val_mean"], row["val_low"], row["val_high"], *look(kind)[:2], along="y")
        style.name_ticks(axes, [name.replace("-", "-\n") for name in methods], axis="x")
        axes.set_xlim(-0.5, len(methods) - 0.5)
        axes.set_title(f"{size:,.0f} examples", loc="left", fontsize=10)
        axes.set_xlabel("method")
    panels[0].set_ylabel(unit_below(f"best {info.chosen}"))
    n = rows["val_n"]
    _legend(figure, kinds, f"base model; {interval_text(n)}, {seeds_text(n)}", lines=False)
    return figure


def _legend(figure: Figure, names: list[str], title: str, *, lines: bool) -> None:
    handles = []
    for position, name in enumerate(names):
        colour, marker, line = look(position)
        handles.append(
            Line2D(
                [],
                [],
                color=colour,
                linestyle=line if lines else "none",
                marker=marker,
                label=plain_text(name),
            )
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=len(names), title=title, frameon=False)


def answer(info: Info) -> list[str]:
    return [_best_words(info), *_effect_words(info), *_gain_words(info)]


def _best_words(info: Info) -> str:
    """Say what each method scores in the corners: fewest and most examples, fewest and most epochs."""
    parts = []
    for size in info.ends:
        for most in sorted({info.core["epochs"].min(), info.core["epochs"].max()}):
            cell = info.core[(info.core["examples"] == size) & (info.core["epochs"] == most)]
            ordered = records(cell.iloc[(-cell["val_mean"]).argsort(kind="stable")])
            scores = ", ".join(f"{escape(row['method'])} {number(row['val_mean'])}" for row in ordered)
            parts += [f"{size:,.0f} examples, {count(int(most), 'epoch')}: {scores}"] if ordered else []
    return f"**Best {info.chosen.name}**, as published, mean over seeds. {_capital('; '.join(parts))}."


def _effect_words(info: Info) -> list[str]:
    """Say at which numbers of examples and epochs methods differ from the reference for certain."""
    parts, undecided = [], []
    for condition in sorted({claim.at for claim in info.effects if claim.at}, key=_order):
        names = [
            f"{named(replace(claim, at=None), info.plan)} "
            + ("makes **no difference**" if claim.shown == SAME else f"is **{claim.shown}**")
            + f" ({number(claim.difference, signed=True)})"
            for claim in info.effects
            if claim.at == condition and claim.decided
        ]
        where = (
            f"for {count(int(condition.level), 'epoch')}"
            if condition.factor == EPOCHS
            else f"with {condition.level:,.0f} examples"
        )
        if names:
            parts.append(f"{where}, {several(names)}")
        else:
            undecided.append(where)
    sentences = [f"{_capital('; '.join(parts))}."] if parts else []
    sentences += [f"Nothing is decided {several(undecided, 8)}."] if undecided else []
    return [f"**By examples and epochs** ({info.score.name}): {' '.join(sentences)}"] if sentences else []


def _order(condition: At) -> tuple[int, float]:
    """Return what levels are sorted by: numbers of examples, then of epochs, each rising."""
    return CONDITIONS.index(condition.factor), float(condition.level)


def _gain_words(info: Info) -> list[str]:
    """Say what fine-tuning adds to each method."""
    parts = []
    for size, arms in info.scores[info.scores["arm"].isin(info.gains)].groupby("examples"):
        gains = [(row["method"], info.gains[row["arm"]]) for row in records(arms)]
        names = (
            f"{escape(method)} {number(claim.difference, signed=True)}"
            f"{f' (**{claim.shown}**)' if claim.decided else ''}"
            for method, claim in gains
        )
        parts.append(f"with {size:,.0f} examples, {several(names, 6)}")
    told = "; ".join(parts)
    return (
        [f"**Fine-tuned instead of frozen** ({info.score.name}; without a verdict: not decided): {told}."]
        if told
        else []
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PART = Part(
    "Few examples",
    info,
    section,
    {"few_shot_scores": draw_scores, "few_shot_curves": draw_curves, "fine_tuning": draw_fine_tuning},
    answer,
)
