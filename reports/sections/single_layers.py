"""Hidden states one by one: the score of each alone, its variability before training, its weight in the learned mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.measures import measured
from reports.cells import INTERVAL, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import COLOURS, LINES, Look, legend, marked, panels, points, seeds_text, single
from reports.reading.frames import records
from reports.section import Section, Table
from reports.tables import layers
from reports.tables.arms import is_learned
from reports.tables.mix import WEIGHT, state_name
from reports.tables.rank_agreement import critical, spearman
from reports.words.labels import LABELS
from reports.words.text import number

PROJECTION = {
    True: ("projection trained", Look(COLOURS[1], "s", ":")),
    False: ("projection untrained", Look(COLOURS[3], "D", ":")),
}
LOGARITHMIC_RANGE = 30.0
"""A range of nu, largest over smallest, that wants a logarithmic axis."""


@dataclass(frozen=True)
class Frames:
    """single: as from `layers.single_layers`; mixes: name -> row of an arm that mixes all layers.

    by_layer: a row per layer: layer, nu, mean, low, high, n of the weight that the arm `learned` gives it
    """

    single: pd.DataFrame
    by_layer: pd.DataFrame
    mixes: Mapping[str, Mapping[str, Any]]
    learned: str
    agreement: Sequence[float]
    score: str


def frames(evidence: Evidence) -> Frames | None:
    trials, plan = evidence.trials, evidence.plan
    alone = layers.single_layers(trials, plan, evidence.split).dropna(subset=["mean"])
    sample = measured(evidence.loaded.results.folder).get("variability")
    nu = layers.variability(trials) or dict(sample.by_layer if sample else {})
    control = evidence.row_of(plan.control)
    mix = control if control and is_learned(control["mix"], control["fusion"]) else None
    mix = (mix if len(alone) else None) or evidence.row_of(evidence.learned_arm)
    if alone.empty and not (nu and mix):
        return None
    untrained = (
        evidence.row_of(arm.name)
        for arm in plan.arms
        if arm.config.get("train_projections") is False and arm.config.get("mix", "learned") == "learned"
    )
    mixes = {"learned mix": mix, "learned mix, untrained projections": next(untrained, None)}
    name = mix["arm"] if mix else ""
    weights = layers.profile(trials, evidence.history, {}, name)
    shares = weights.assign(
        **{end: weights[end] / len(weights) for end in ("low", "high")} if len(weights) else {}
    )
    shares = shares.assign(mean=weights["relative"] / max(1, len(weights)))
    nus = pd.DataFrame({"layer": [state_name(f"{WEIGHT}{key}") for key in nu], "nu": [*nu.values()]})
    both = nus.merge(shares[["layer", "mean", "low", "high", "n"]], on="layer", how="outer", sort=False)
    return Frames(
        alone,
        both,
        {key: row for key, row in mixes.items() if row and not pd.isna(row["mean"])},
        name,
        layers.agreement(trials, evidence.history, name, nu) if nu else [],
        evidence.scored,
    )


def tables(frames: Frames) -> Sequence[Table]:
    names = dict.fromkeys([*frames.single["layer"], *frames.by_layer["layer"]])
    alone = {(row["layer"], row["trained"]): summary(row) for row in records(frames.single)}
    weights = {row["layer"]: row for row in records(frames.by_layer)}
    heads: dict[str, Any] = {"layer": "layer"}
    for kind, (name, _) in PROJECTION.items():
        if kind in set(frames.single["trained"]):
            heads[f"{frames.score}, {name}, {INTERVAL}"] = lambda row, kind=kind: alone.get(
                (row["layer"], kind), ""
            )
    if frames.by_layer["mean"].notna().any():
        heads[f"weight p̃ learned by {frames.learned}"] = lambda row: (
            summary(weights[row["layer"]]) if row["layer"] in weights else ""
        )
    if frames.by_layer["nu"].notna().any():
        heads["variability ν"] = lambda row: weights[row["layer"]]["nu"] if row["layer"] in weights else ""
    shown = [table_of(pd.DataFrame({"layer": [*names]}), heads)]
    rows = [[name, summary(row)] for name, row in frames.mixes.items() if len(frames.single)]
    shown += [Table(["mix of all layers", f"{frames.score}, {INTERVAL}"], rows)] if rows else []
    return [*shown, *_agreement(frames)]


def _agreement(frames: Frames) -> Sequence[Table]:
    """Return how the order of layers by ν goes with that by learned weight and by score."""
    scores = frames.single[frames.single["trained"].astype(bool)].merge(
        frames.by_layer[["layer", "nu"]], on="layer"
    )
    alone = spearman(-scores["nu"], scores["mean"])
    pairs = {"learned p̃": frames.agreement, "score of the layer alone": [] if alone is None else [alone]}
    n = int(frames.by_layer["nu"].notna().sum())
    rows = [
        [what, n, sum(rs) / len(rs), min(rs), max(rs), len(rs), number(critical(n), 2)]
        for what, rs in pairs.items()
        if rs
    ]
    heads = ["−ν with", "layers", "Spearman's r, mean", "least", "most", "seeds", "by chance below (5%)"]
    return [Table(heads, rows)] if rows else []


def draw_single(frames: Frames) -> Figure | None:
    """Score of each single layer with its interval, against the line and band of the learned mix."""
    if frames.single.empty:
        return None
    figure, axes = single(3.2, str(LABELS["layer"]), frames.score)
    looks = dict(PROJECTION.values())
    series = frames.single["trained"].map({kind: name for kind, (name, _) in PROJECTION.items()})
    frame = frames.single.assign(x=frames.single["layer"].map(brief), series=series)
    ordered = frame.sort_values("state", kind="stable")
    whole = (
        frames.single["state"].nunique() == np.ptp(frames.single["state"]) + 1
    )  # else the line would skip some
    points(ordered, axes, joined=bool(whole), looks=looks)
    entries = {name: how for name, how in looks.items() if name in set(series)}
    for place, (name, mix) in enumerate(frames.mixes.items()):
        how = Look(COLOURS[3 * place], "", LINES[place])
        axes.axhline(mix["mean"], color=how.colour, linestyle=how.line, zorder=1)
        if not pd.isna(mix["low"]):
            axes.axhspan(mix["low"], mix["high"], color=how.colour, alpha=0.15, linewidth=0, zorder=0)
        entries[name] = how
    legend(figure, entries, f"mean and 95% interval, {seeds_text(frames.single['n'])}")
    return figure


def draw_variability(frames: Frames) -> Figure | None:
    """ν by layer on the left, learned weights by layer on the right."""
    rows = frames.by_layer.assign(x=frames.by_layer["layer"].map(brief), series="")
    nu = rows["nu"].dropna()
    if nu.empty or rows["mean"].isna().all():
        return None
    titles = ["variability ν (low: classes lie apart)", f"weight p̃ in {frames.learned}"]
    figure, (left, right) = panels(titles, 2.8, x="layer", share=False)
    points(rows.assign(mean=rows["nu"], low=rows["nu"], high=rows["nu"]).dropna(subset=["nu"]), left)
    if nu.min() > 0 and nu.max() > LOGARITHMIC_RANGE * nu.min():
        left.set_yscale("log")
    points(rows, right, joined=False)
    marked(right, 1 / rows["mean"].notna().sum(), "uniform mix")
    return figure


def brief(layer: str) -> str:
    """Return a layer's name as short as a tick wants it."""
    return layer.removeprefix("layer ").replace("embeddings", "emb.")


SECTION = Section(
    "Layers",
    frames,
    tables,
    {"single_layers": draw_single, "variability": draw_variability},
    "Score of each single layer against the learned mix of all",
)
