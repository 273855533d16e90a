"""Score against the number of training examples, by epochs where a study compares under both; fine-tuned beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.cells import INTERVAL, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import curves, legend, looks_of, panels, points, seeds_text
from reports.section import Section, Table
from reports.tables.curves import learning_curves
from reports.tables.sizes import FROZEN, by_size
from reports.words.labels import LABELS
from reports.words.text import count

BEST = "best "


@dataclass(frozen=True)
class Frames:
    """sizes: as from `sizes.by_size`."""

    evidence: Evidence
    sizes: pd.DataFrame

    @property
    def frozen(self) -> pd.DataFrame:
        return self.sizes[self.sizes["base_model"] == FROZEN]

    @property
    def crossed(self) -> bool:
        return bool(self.sizes["epochs"].notna().any())


def frames(evidence: Evidence) -> Frames | None:
    sizes = by_size(evidence.arms, evidence.trials, evidence.plan)
    return Frames(evidence, sizes) if len(sizes) else None


def tables(frames: Frames) -> Sequence[Table]:
    evidence, tested = frames.evidence, frames.evidence.split != "val"
    heads = {
        "arm": "series",
        **({"base model": "base_model"} if len(frames.frozen) < len(frames.sizes) else {}),
        "training examples": lambda row: int(row["examples"]),
        **({"epochs": lambda row: int(row["epochs"])} if frames.crossed else {}),
        **({f"{evidence.scored.name}, {INTERVAL}": summary} if tested else {}),
        f"best {evidence.chosen.name}": lambda row: summary(row, "val_"),
    }
    pool = evidence.loaded.study.environment.dataset.examples.get("train", 0)
    near = sorted({int(size) for size in frames.sizes["examples"] if pool and size > pool / 2})
    caption = (
        f"Each seed draws its own examples from {pool:,}; draws of {', '.join(f'{size:,}' for size in near)} overlap "
        "in most of them."
        if near
        else ""
    )
    order = frames.sizes.sort_values(["examples", "epochs"], kind="stable")
    return [table_of(order, heads, caption)]


def draw_scores(frames: Frames) -> Figure:
    """Scores against the number of examples: a column of panels per number of epochs, a line per arm."""
    evidence, rows = frames.evidence, frames.frozen
    epochs = sorted(rows["epochs"].dropna().unique())
    looks, splits = looks_of(rows["series"]), {str(evidence.scored): ""}
    if frames.crossed and evidence.split != "val":
        splits = {f"{BEST}{evidence.chosen}": "val_", str(evidence.scored): ""}
    titles = [f"{count(int(most), 'epoch')}" for most in epochs] or [""]
    x = "training examples (count), log scale"
    figure, axes = panels(titles * len(splits), 2.4, x=x, y=str(evidence.scored), most=len(titles))
    for place, panel in enumerate(axes):
        label, prefix = list(splits.items())[place // len(titles)]
        own = rows[rows["epochs"] == epochs[place % len(titles)]] if epochs else rows
        ends = {name: own[f"{prefix}{name}"] for name in ("mean", "low", "high")}
        points(own.assign(x=own["examples"], **ends), panel, scale="log", looks=looks)
        if place % len(titles) == 0:
            panel.set_ylabel(label.replace(" (", "\n("))
    legend(figure, looks, f"mean and 95% interval, {seeds_text(rows['n'])}")
    return figure


def draw_curves(frames: Frames) -> Figure | None:
    """Validation scores over steps, with the fewest and the most examples, for the middle number of epochs."""
    evidence, rows = frames.evidence, frames.frozen
    if not frames.crossed:
        return None
    epochs = sorted(rows["epochs"].unique())
    rows = rows[rows["epochs"] == epochs[(len(epochs) - 1) // 2]]
    ends = sorted({rows["examples"].min(), rows["examples"].max()})
    shown = evidence.trials[evidence.trials["arm"].isin(rows["arm"])]
    over_steps = learning_curves(shown, evidence.history, evidence.plan, so_far=False)
    own = rows[["arm", "series", "examples"]].merge(over_steps, on="arm")
    if own.empty:
        return None
    looks = looks_of(rows["series"])
    titles = [f"{size:,.0f} examples" for size in ends]
    figure, axes = panels(titles, 2.6, x=LABELS["step"], y=str(evidence.chosen), share=False)
    for panel, size in zip(axes, ends, strict=True):
        curves(own[own["examples"] == size], panel, looks=looks)
    legend(figure, looks, f"mean and 95% band, {seeds_text(own['n'])}")
    return figure


def draw_fine_tuning(frames: Frames) -> Figure | None:
    """Validation scores of each method, frozen and fine-tuned: a panel per number of examples."""
    trained = frames.sizes[frames.sizes["base_model"] != FROZEN]
    if trained.empty:
        return None
    beside = frames.sizes.merge(trained[["examples", "epochs"]].drop_duplicates(), on=["examples", "epochs"])
    sizes = sorted(beside["examples"].unique())
    looks = looks_of([FROZEN, *beside["base_model"]])
    titles = [f"{size:,.0f} examples" for size in sizes]
    figure, axes = panels(titles, 2.8, x="method", y=f"{BEST}{frames.evidence.chosen}")
    beside = beside.assign(x=beside["series"], series=beside["base_model"])
    beside = beside.assign(**{name: beside[f"val_{name}"] for name in ("mean", "low", "high")})
    for panel, size in zip(axes, sizes, strict=True):
        points(beside[beside["examples"] == size], panel, joined=False, looks=looks)
    legend(figure, looks, f"base model; mean and 95% interval, {seeds_text(beside['val_n'])}", lines=False)
    return figure


SECTION = Section(
    "Score against data size",
    frames,
    tables,
    {"score_by_size": draw_scores, "few_shot_curves": draw_curves, "fine_tuning": draw_fine_tuning},
    "Score against the number of training examples",
)
