"""Methods by number of training examples and epochs, and step by step (ElNokrashy et al. 2024, figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from adalayers.comparisons import At
from reports.drawing.pieces import point, seeds_text, unit_below
from reports.drawing.style import look, new_figure, plain_text, say_empty, styled
from reports.evidence.claims import BETTER, WORSE, Claim
from reports.evidence.curves import learning_curves, milestones
from reports.evidence.evidence import Evidence
from reports.evidence.methods import CONDITIONS, EPOCHS, by_method, under_both
from reports.evidence.statistics import FEW, LEVEL
from reports.parts.cells import interval_text, named, summary
from reports.parts.part import Part, figure_link
from reports.reading.frames import records
from reports.reading.load import Plan
from reports.words.labels import LABELS, Label
from reports.words.text import count, escape, folded, number, several, table

NO_SCORES = "Nothing to draw: no scores of confirmed arms."
NO_CURVES = "Nothing to draw: no history of evaluations of confirmed arms."
CHOSEN, COMPARED = "val_", ""
"""How the columns of a summary begin: on validation, and on the split that arms are compared on."""


@dataclass(frozen=True)
class Info:
    """What is shown of a study under numbers of examples and of epochs.

    scores: as from `methods.by_method`; methods: those of the core, in order
    curves: as from `curves.learning_curves`, scores as they are, of the core's arms in `shown`
    epochs: of the curves; ends: the fewest and the most examples
    effects: the claims on methods at one number of examples or epochs
    score:  on the split that arms are compared on; chosen: on validation; tested: whether the two differ
    """

    scores: pd.DataFrame
    methods: tuple[str, ...]
    curves: pd.DataFrame
    epochs: float
    ends: tuple[float, ...]
    effects: tuple[Claim, ...]
    plan: Plan
    score: Label
    chosen: Label
    tested: bool

    @property
    def core(self) -> pd.DataFrame:
        return self.scores[self.scores["role"] == "core"]

    @property
    def shown(self) -> pd.DataFrame:
        """The core's arms whose curves are drawn."""
        return self.core[(self.core["epochs"] == self.epochs) & self.core["examples"].isin(self.ends)]


def info(evidence: Evidence) -> Info | None:
    plan = evidence.plan
    if not under_both(plan):
        return None
    scores = by_method(evidence.arms, plan)
    core = scores[scores["role"] == "core"]
    if core.empty:
        return None
    sizes, epochs = sorted(core["examples"].unique()), sorted(core["epochs"].unique())
    middle = float(epochs[(len(epochs) - 1) // 2])
    ends = tuple(float(size) for size in dict.fromkeys((sizes[0], sizes[-1])))
    arms = core[(core["epochs"] == middle) & core["examples"].isin(ends)]["arm"]
    drawn = evidence.trials[evidence.trials["arm"].isin(arms)]
    return Info(
        scores,
        tuple(dict.fromkeys(core["method"])),
        learning_curves(drawn, evidence.history, plan, so_far=False),
        middle,
        ends,
        tuple(
            claim
            for claim in evidence.claims
            if claim.kind == "simple" and claim.n and claim.at and claim.at.factor in CONDITIONS
        ),
        plan,
        evidence.scored,
        evidence.chosen,
        evidence.split != "val",
    )


def section(info: Info) -> list[str]:
    chosen, scored = info.chosen.name, info.score.name
    return [
        f"The best {chosen} of each training, as published"
        + (f", and below it the {scored} of that epoch" if info.tested else "")
        + ": means over seeds, each with a draw of examples of its own, and "
        f"from {FEW} seeds on {LEVEL:.0%} t intervals, not corrected.",
        figure_link("few_shot_scores", f"Best {chosen} by method against the number of training examples"),
        _scores_table(info),
        f"The {chosen} after each of {count(int(info.epochs), 'epoch')}, base model frozen, with {_sizes(info.ends)} "
        "examples.",
        figure_link("few_shot_curves", f"{_capital(chosen)} over training steps, by method"),
        _curves_table(info),
    ]


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
    return folded(
        "The scores as a table",
        len(rows),
        table([*heads, *([f"{info.score.name} of that epoch"] if info.tested else [])], rows),
    )


def _curves_table(info: Info) -> str:
    if info.curves.empty:
        return ""
    rows = []
    for size in info.ends:
        arms = info.shown[info.shown["examples"] == size]
        found = milestones(info.curves[info.curves["arm"].isin(arms["arm"])])
        method = dict(zip(arms["arm"], arms["method"], strict=True))
        rows += [
            [f"{size:,.0f}", escape(method[row["arm"]]), f"{row['step']:,.0f}", summary(row)]
            for row in records(found)
        ]
    heads = ["training examples", "method", "step", f"{info.chosen.name}, mean [{LEVEL:.0%} interval]"]
    return folded("The curves as a table", len(rows), table(heads, rows))


@styled
def draw_scores(info: Info) -> Figure:
    """Scores against the number of examples: a column of panels per number of epochs, a line per method."""
    known = info.core.dropna(subset=["val_mean"])
    figure = new_figure(2.9 + 2.3 * info.tested)
    if known.empty:
        say_empty(figure.add_subplot(), NO_SCORES)
        return figure
    epochs = sorted(info.core["epochs"].unique())
    splits = [(CHOSEN, f"best {info.chosen}"), *([(COMPARED, info.score)] if info.tested else [])]
    grid = figure.subplots(len(splits), len(epochs), sharex=True, sharey=True, squeeze=False)
    for line, (prefix, label) in enumerate(splits):
        for place, most in enumerate(epochs):
            axes = grid[line, place]
            _by_size(axes, info, info.core[info.core["epochs"] == most], prefix)
            if line == 0:
                axes.set_title(count(int(most), "epoch"), loc="left", fontsize=10)
            if place == 0:
                axes.set_ylabel(unit_below(label))
            if line == len(splits) - 1:
                axes.set_xlabel("training examples\n(count), log scale")
    _legend(figure, info, f"{interval_text(known['val_n'])}, {seeds_text(known['val_n'])}")
    return figure


def _by_size(axes: Axes, info: Info, rows: pd.DataFrame, prefix: str) -> None:
    for place, method in enumerate(info.methods):
        of = rows[rows["method"] == method].sort_values("examples")
        colour, marker, line = _look(info, method)
        # Apart, so that bars do not hide each other.
        x = of["examples"] * 1.06 ** (place - (len(info.methods) - 1) / 2)
        axes.plot(x, of[f"{prefix}mean"], color=colour, linestyle=line)
        for at, row in zip(x, records(of), strict=True):
            mean, low, high = (row[f"{prefix}{name}"] for name in ("mean", "low", "high"))
            point(axes, at, mean, low, high, colour, marker, along="y")
    sizes = sorted(info.core["examples"].unique())
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_major_locator(FixedLocator([float(size) for size in sizes]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(sizes[0] / 1.5, sizes[-1] * 1.5)


@styled
def draw_curves(info: Info) -> Figure:
    """Mean validation score over steps, with its band: a panel with the fewest examples, one with the most."""
    figure = new_figure(3.6)
    if info.curves.empty:
        say_empty(figure.add_subplot(), NO_CURVES)
        return figure
    panels = figure.subplots(1, len(info.ends), squeeze=False)[0]
    for axes, size in zip(panels, info.ends, strict=True):
        arms = info.shown[info.shown["examples"] == size]
        for row in records(arms):
            colour, marker, line = _look(info, row["method"])
            curve = info.curves[info.curves["arm"] == row["arm"]]
            every = max(1, len(curve) // 6)
            axes.plot(
                *(curve["step"], curve["mean"]),
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=5,
                markevery=(info.methods.index(row["method"]) * every // 4 % every, every),
            )
            ends = [curve[name].to_numpy(dtype=float) for name in ("step", "low", "high")]
            axes.fill_between(*ends, color=colour, alpha=0.15, linewidth=0)
        axes.set_title(f"{size:,.0f} examples", loc="left", fontsize=10)
        axes.set_xlabel(LABELS["step"])
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    panels[0].set_ylabel(unit_below(info.chosen))
    _legend(figure, info, f"{interval_text(info.curves['n'], 'band')}, {seeds_text(info.curves['n'])}")
    return figure


def _look(info: Info, method: str) -> tuple[str, str, object]:
    return look(info.methods.index(method))


def _legend(figure: Figure, info: Info, title: str) -> None:
    handles = []
    for method in info.methods:
        colour, marker, line = _look(info, method)
        label = plain_text(method)
        handles.append(Line2D([], [], color=colour, linestyle=line, marker=marker, label=label))  # type: ignore[arg-type]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(info.methods), title=title, frameon=False
    )


def answer(info: Info) -> list[str]:
    return [*_best_words(info), *_effect_words(info)]


def _best_words(info: Info) -> list[str]:
    """Say what each method scores in the corners: fewest and most examples, fewest and most epochs."""
    core = info.core.dropna(subset=["val_mean"])
    if core.empty:
        return []
    epochs = [core["epochs"].min(), core["epochs"].max()]
    parts = []
    for size in info.ends:
        for most in dict.fromkeys(epochs):
            cell = core[(core["examples"] == size) & (core["epochs"] == most)]
            ordered = records(cell.iloc[(-info.plan.better(cell["val_mean"])).argsort(kind="stable")])
            told = ", ".join(f"{escape(row['method'])} {number(row['val_mean'])}" for row in ordered)
            if told:
                parts.append(f"{size:,.0f} examples, {count(int(most), 'epoch')}: {told}")
    return [f"**Best {info.chosen.name}**, as published, mean over seeds. {_capital('; '.join(parts))}."]


def _effect_words(info: Info) -> list[str]:
    """Say at which numbers of examples and epochs methods differ from the reference for certain."""
    parts, open_ = [], []
    for at in sorted({claim.at for claim in info.effects if claim.at}, key=_order):
        here = [claim for claim in info.effects if claim.at == at]
        sure = [claim for claim in here if claim.verdict in (BETTER, WORSE)]
        where = _where(at)
        if sure:
            names = (
                f"{named(replace(claim, at=None), info.plan)} is **{claim.verdict}** "
                f"({number(claim.difference, signed=True)})"
                for claim in sure
            )
            parts.append(f"{where}, {several(names)}")
        else:
            open_.append(where)
    if not parts and not open_:
        return []
    told = f"{_capital('; '.join(parts))}. " if parts else ""
    rest = f"Nothing is decided {several(open_, 8)}." if open_ else ""
    return [f"**By examples and epochs** ({info.score.name}): {told}{rest}".rstrip()]


def _order(at: At) -> tuple[int, float]:
    """Return what levels are sorted by: numbers of examples, then of epochs, each rising."""
    return CONDITIONS.index(at.factor), float(at.level)


def _where(at: At) -> str:
    """Return a level in words: "with 32 examples", "for 25 epochs"."""
    if at.factor == EPOCHS:
        return f"for {count(int(at.level), 'epoch')}"
    return f"with {at.level:,.0f} examples"


def _sizes(sizes: Iterable[float]) -> str:
    return several([f"{size:,.0f}" for size in sizes])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PART = Part(
    "Few examples",
    info,
    section,
    {"few_shot_scores": draw_scores, "few_shot_curves": draw_curves},
    answer,
)
