"""Trained models with something taken away, not trained again: spans of layers, small weights."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from adalayers.results.study_file import Variant
from reports import names, plots
from reports.evidence.evidence import Evidence
from reports.section import INTERVAL, Section, named, relative, table_of

MAX_ARMS = 4
"""Most arms drawn, in the order of the request."""
PALE = 5.0
"""Per cent that the colours reach at least, so that noise stays pale."""
TEXTS = 12
"""Layers above which cells carry no numbers: they would not be read."""


def section(evidence: Evidence) -> Section | None:
    known, changes = evidence.request.variants, evidence.variants
    changes = changes[changes["variant"].isin(known)]
    if changes.empty:
        return None
    variants = [known[name] for name in changes["variant"]]
    spans = [variant.without if variant.renormalise and variant.without else (None,) for variant in variants]
    changes = changes.assign(
        name=[names.arm(str(arm), evidence.request) for arm in changes["arm"]],
        done=[_words(variant) for variant in variants],
        first=pd.Series([span[0] for span in spans], index=changes.index, dtype=float),
        last=pd.Series([span[-1] for span in spans], index=changes.index, dtype=float),
    )
    change = f"change in % of the whole model's score, {INTERVAL}"
    heads = {"arm": lambda row: named(row["arm"]), "trained model": "done", change: relative}
    caption = "Not trained again; the weights of the rest scaled to sum to 1."
    of_spans = changes.dropna(subset=["first"]).astype({"first": int, "last": int})
    tables = [table_of(changes, heads, caption)]
    figures = {"layer_spans": draw(of_spans)} if len(of_spans) else {}
    return Section(
        "Layers", tables, figures, "Loss without layers i to j of a trained mix, not trained again"
    )


def _words(variant: Variant) -> str:
    if not variant.without:
        return f"cutoff {variant.cutoff:g}"
    ends = sorted({variant.without[0], variant.without[-1]})
    return f"without {' to '.join(map(str, ends))}{'' if variant.renormalise else ', weights as they are'}"


def draw(spans: pd.DataFrame) -> Figure:
    """A heat map per arm: from the first layer taken away (down) to the last (across)."""
    arms, layers = list(dict.fromkeys(spans["name"]))[:MAX_ARMS], sorted({*spans["first"], *spans["last"]})
    x, y = "last layer taken away", "first layer taken away"
    figure, axes = plots.panels(arms, 3.2, x=x, y=y, most=2, share=False)
    spans = spans.assign(loss=(-100 * spans["mean"]).clip(lower=0))
    high, small = max(PALE, float(spans["loss"].max())), 9 if len(layers) * min(len(arms), 2) <= 8 else 7
    for panel, arm in zip(axes, arms, strict=True):
        own = spans[spans["name"] == arm].pivot_table(index="first", columns="last", values="loss")
        grid = own.reindex(index=layers, columns=layers)
        texts = grid.map(lambda loss: "" if pd.isna(loss) or len(layers) > TEXTS else f"{loss:.0f}")
        plots.heatmap(grid, panel, texts=texts, high=high, fontsize=small)
    figure.colorbar(axes[0].images[0], ax=axes).set_label("loss\n(% of the whole model's score)")
    plots.legend(figure, {}, "hatched: no such span, or no layer left")
    return figure
