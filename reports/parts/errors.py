"""What was taken for what, and the surest wrong predictions by index, without texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reports.drawing import style
from reports.drawing.pieces import heat_map
from reports.drawing.style import new_figure, plain_text
from reports.evidence.evidence import Evidence
from reports.parts.part import BEST_TRIAL, MAX_ROWS, Part, figure_link
from reports.reading.frames import records
from reports.tables import arms as tables
from reports.tables import errors as predicted
from reports.tables.errors import differing_words
from reports.words.labels import SPLITS
from reports.words.text import code, count, escape, folded, number, table


@dataclass(frozen=True)
class Info:
    """confusion: as from `predicted.confusion` or `predicted.span_confusion`, of the best arm on validation.

    misclassified: as from `predicted.misclassified`, of the confirmed trial that is best on validation
    tokens, words: whether labels are of entities, or of single words
    """

    confusion: pd.DataFrame
    misclassified: pd.DataFrame
    tokens: bool
    words: bool
    arm: str | None
    trial: str | None
    split: str


def info(evidence: Evidence) -> Info | None:
    """None where labels are numbers, and without predictions."""
    if evidence.numeric:
        return None
    rows, best = evidence.predictions, evidence.best_arm
    of_best = rows[rows["trial_id"].map(evidence.shown_arms) == best]
    if evidence.tokens:
        confusion = predicted.span_confusion(of_best, evidence.scheme)
    else:
        of_best = predicted.by_word(of_best) if evidence.words else of_best
        confusion = predicted.confusion(of_best, evidence.loaded.study.environment.dataset.labels)
    if confusion["mean"].sum() == 0:
        return None
    trial = tables.best_trial(tables.confirmed(evidence.trials), evidence.plan)
    of_trial = predicted.rows_of(
        evidence.loaded.results.predictions, [trial] if trial else [], evidence.split
    )
    return Info(
        confusion,
        predicted.misclassified(of_trial),
        evidence.tokens,
        evidence.words,
        best,
        trial,
        evidence.split,
    )


def section(info: Info) -> list[str]:
    split = SPLITS[info.split]
    what = "entities by type" if info.tokens else f"{_items(info)} by class"
    explained = (
        " *Other boundaries*: an entity found with other words. *No entity there*: one that overlaps no true entity."
        if info.tokens
        else ""
    )
    return [
        f"Mean counts of {what} on {split} over the {count(int(info.confusion['n'].iloc[0]), 'seed')} of "
        f"{code(info.arm)}, the best arm on validation.{explained}",
        figure_link("confusion", "True against predicted classes"),
        *_wrong(info, split),
    ]


def _grid(info: Info) -> pd.DataFrame:
    """Return the mean counts, true classes by predicted ones, in their order."""
    true, predicted_as = (info.confusion[name].unique() for name in ("label", "prediction"))
    return info.confusion.pivot(index="label", columns="prediction", values="mean").loc[true, predicted_as]


def _items(info: Info) -> str:
    return "entities" if info.tokens else "words" if info.words else "examples"


def _wrong(info: Info, split: str) -> list[str]:
    if info.misclassified.empty:
        return [f"Trial {code(info.trial)}, the best confirmed one on validation, left no wrong prediction."]
    shown = info.misclassified.head(MAX_ROWS)
    rows = []
    for row in records(shown):
        label, predicted_as = row["label"], row["prediction"]
        if info.tokens or info.words:
            label, predicted_as = differing_words(label, predicted_as)
        rows.append([escape(row["index"]), escape(label), escape(predicted_as), number(row["score"])])
    heads = ["index", "label", "prediction", "score"]
    if info.tokens or info.words:
        heads = ["index", "tags of the words that differ", "as predicted", "score"]
    total = len(info.misclassified)
    return [
        f"{count(total, 'example')} misclassified on {split} by trial {code(info.trial)} (n = 1), {BEST_TRIAL}",
        folded(f"The {len(rows)} surest of {total}", len(rows), table(heads, rows)),
    ]


def draw(info: Info) -> Figure:
    """Mean counts by true and predicted class, shaded by the share of the row."""
    grid, n = _grid(info), int(info.confusion["n"].iloc[0])
    figure = new_figure(1.7 + 0.5 * max(len(grid), 3))
    axes = figure.add_subplot()
    counts = grid.to_numpy(dtype=float)
    shares = counts / np.maximum(np.nansum(counts, axis=1, keepdims=True), 1e-12)
    whole = np.allclose(counts, np.round(counts), equal_nan=True)
    texts = [
        ["" if np.isnan(count) else f"{count:,.{0 if whole or not count else 1}f}" for count in line]
        for line in counts
    ]
    image = heat_map(axes, shares, texts, 0.0, 1.0)
    style.name_ticks(axes, [_broken(name) for name in grid.columns], axis="x")
    style.name_ticks(axes, grid.index, axis="y")
    axes.set_xlabel(f"predicted ({_items(info)}, mean count over n = {n} seed{'s' * (n != 1)})")
    axes.set_ylabel("true")
    bar = figure.colorbar(image, ax=axes)
    bar.set_label("share of the row (0 to 1)")
    return figure


def _broken(name: str) -> str:
    return plain_text(name).replace(" ", "\n") if len(name) > 8 else name


PART = Part("Errors", info, section, {"confusion": draw})
