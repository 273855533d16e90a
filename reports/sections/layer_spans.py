"""What a trained mix loses without layers i to j, not trained again."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from reports.cells import INTERVAL, named, relative, table_of
from reports.evidence.evidence import Evidence
from reports.plots import colour_bar, heatmap, panels
from reports.section import Section, Table

MAX_ARMS = 4
"""Most arms drawn, in the order of the plan."""
PALE = 5.0
"""Per cent that the colours reach at least, so that noise stays pale."""
TEXTS = 12
"""Layers above which cells carry no numbers: they would not be read."""


def frames(evidence: Evidence) -> pd.DataFrame | None:
    """Return `variants.score_changes` of spans, with first, last and renormalised."""
    spans = {name: how for name, how in evidence.loaded.study.request.variants.items() if how.without}
    changes = evidence.variants[evidence.variants["variant"].isin(spans)]
    if changes.empty:
        return None
    of = [spans[name] for name in changes["variant"]]
    return changes.assign(
        first=[span.without[0] for span in of],
        last=[span.without[-1] for span in of],
        renormalised=[span.renormalise for span in of],
    )


def tables(changes: pd.DataFrame) -> Sequence[Table]:
    heads = {
        "arm": lambda row: named(row["arm"]),
        "layers taken away": lambda row: (
            str(row["first"]) if row["first"] == row["last"] else f"{row['first']} to {row['last']}"
        ),
        "weights of the rest": lambda row: "scaled to 1" if row["renormalised"] else "as they are",
        f"change in % of the whole model's score, {INTERVAL}": relative,
    }
    return [table_of(changes, heads)]


def draw(changes: pd.DataFrame) -> Figure | None:
    """A heat map per arm: from the first layer taken away (down) to the last (across)."""
    shown = changes[changes["renormalised"]] if changes["renormalised"].any() else changes
    arms = list(dict.fromkeys(shown["arm"]))[:MAX_ARMS]
    layers = sorted({*shown["first"], *shown["last"]})
    x, y = "last layer taken away", "first layer taken away"
    figure, axes = panels(arms, 3.2, x=x, y=y, most=2, share=False)
    loss = -100 * shown["mean"].clip(upper=0)
    for panel, arm in zip(axes, arms, strict=True):
        own = shown.assign(loss=loss)[shown["arm"] == arm]
        grid = own.pivot_table(index="first", columns="last", values="loss").reindex(
            index=layers, columns=layers
        )
        texts = grid.map(_text) if len(layers) <= TEXTS else grid.map(lambda _: "")
        small = 9 if len(layers) * min(len(arms), 2) <= 8 else 7
        heatmap(grid, panel, texts=texts, low=0.0, high=max(PALE, float(loss.max())), fontsize=small)
    colour_bar(figure, axes, "loss (% of the whole model's score)")
    return figure


def _text(loss: float) -> str:
    return "" if pd.isna(loss) else f"{-loss:.0f}".replace("-0", "0")


SECTION = Section(
    "Layers",
    frames,
    tables,
    {"layer_spans": draw},
    "Loss without layers i to j of a trained mix, not trained again",
)
