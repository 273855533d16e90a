"""Trained models with something taken away, not trained again: spans of layers, small weights."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.study_file import Variant
from reports import names, plots
from reports.cells import INTERVAL, named, relative, table_of
from reports.evidence.evidence import Evidence
from reports.section import Section, Table

MAX_ARMS = 4
"""Most arms drawn, in the order of the request."""
PALE = 5.0
"""Per cent that the colours reach at least, so that noise stays pale."""
TEXTS = 12
"""Layers above which cells carry no numbers: they would not be read."""


def frames(evidence: Evidence) -> pd.DataFrame | None:
    """Return `variants.score_changes`, with what was done, and of spans of layers with first and last."""
    known, changes = evidence.request.variants, evidence.variants
    changes = changes[changes["variant"].isin(known)]
    variants = [known[name] for name in changes["variant"]]
    spans = [variant.without if variant.renormalise and variant.without else (None,) for variant in variants]
    changes = changes.assign(
        name=[names.arm(str(arm), evidence.request) for arm in changes["arm"]],
        done=[_words(variant) for variant in variants],
        first=pd.Series([span[0] for span in spans], index=changes.index, dtype=float),
        last=pd.Series([span[-1] for span in spans], index=changes.index, dtype=float),
    )
    return changes if len(changes) else None


def _words(variant: Variant) -> str:
    if not variant.without:
        return f"cutoff {variant.cutoff:g}"
    ends = sorted({variant.without[0], variant.without[-1]})
    return f"without {' to '.join(map(str, ends))}{'' if variant.renormalise else ', weights as they are'}"


def tables(changes: pd.DataFrame) -> Sequence[Table]:
    change = f"change in % of the whole model's score, {INTERVAL}"
    heads = {"arm": lambda row: named(row["arm"]), "trained model": "done", change: relative}
    return [table_of(changes, heads, "Not trained again; the weights of the rest scaled to sum to 1.")]


def draw(changes: pd.DataFrame) -> Figure | None:
    """A heat map per arm: from the first layer taken away (down) to the last (across)."""
    shown = changes.dropna(subset=["first"])
    arms, layers = list(dict.fromkeys(shown["name"]))[:MAX_ARMS], sorted({*shown["first"], *shown["last"]})
    if not arms:
        return None
    x, y = "last layer taken away", "first layer taken away"
    figure, axes = plots.panels(arms, 3.2, x=x, y=y, most=2, share=False)
    shown = shown.assign(loss=(-100 * shown["mean"]).clip(lower=0))
    high, small = max(PALE, float(shown["loss"].max())), 9 if len(layers) * min(len(arms), 2) <= 8 else 7
    for panel, arm in zip(axes, arms, strict=True):
        own = shown[shown["name"] == arm].pivot_table(index="first", columns="last", values="loss")
        grid = own.reindex(index=layers, columns=layers).rename("{:.0f}".format, axis=0)
        grid = grid.rename("{:.0f}".format, axis=1)
        texts = grid.map(lambda loss: "" if pd.isna(loss) or len(layers) > TEXTS else f"{loss:.0f}")
        plots.heatmap(grid, panel, texts=texts, low=0.0, high=high, fontsize=small)
    plots.colour_bar(figure, axes, "loss (% of the whole model's score)")
    plots.legend(figure, {}, "hatched: no such span, or no layer left")
    return figure


ALT = "Loss without layers i to j of a trained mix, not trained again"
SECTION = Section("Layers", frames, tables, {"layer_spans": draw}, ALT)
