"""Cut a results folder down to what a repository should hold: `python -m reports.publish FOLDER...`.

What stays is the page with the figures that it shows, the claims, and the files that both are rebuilt from;
`adalayers report FOLDER` writes the rest again. The folder's own trained model and unfinished trials go too: publish
a copy.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_float_dtype

from adalayers.results.files import BEST, EXAMPLES, HISTORY, PREDICTIONS, REPORT, STUDY, WORK, read_rows
from adalayers.storage.folder import Folder
from adalayers.tasks.metrics import RankMetric, metric
from reports.section import DETAILS, FIGURES
from reports.write import CONTRASTS

SMALL: dict[str, Any] = {"compression": "zstd", "compression_level": 19}
"""How published parquet files are compressed: slow to write, as quick to read."""

LONG = 10_000
"""Rows of a history beyond which those between evaluations are left out."""


def publish(folder: Path) -> None:
    """Remove from a study's folder, or that of its cover, all that the page does not need."""
    page = (folder / REPORT).read_text(encoding="utf-8")
    for name in (DETAILS, CONTRASTS, EXAMPLES, "optuna.journal"):
        (folder / name).unlink(missing_ok=True)
    for name in (BEST, WORK):
        shutil.rmtree(folder / name, ignore_errors=True)
    if (folder / HISTORY).exists():
        _keep_evaluations(folder / HISTORY)
    if (folder / STUDY).exists():
        document = json.loads((folder / STUDY).read_text(encoding="utf-8"))
        selects = metric(document["request"]["metric"])
        for record in (document["environment"]["dataset"], document["environment"]["backbone"]):
            record["path"] = Path(record.get("path", "")).name  # of no use on another machine
        document["runs"]["published"] = True
        (folder / STUDY).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        if (folder / PREDICTIONS).exists():
            _keep_compared_split(folder, scores=isinstance(selects, RankMetric))
    for figure in (folder / FIGURES).glob("*"):
        if f"({FIGURES}/{figure.name})" not in page:
            figure.unlink()


def _keep_compared_split(folder: Path, *, scores: bool) -> None:
    """Keep the predictions of test, or of validation where that is all.

    scores: keep all of theirs, from which a score of ranks follows; else of wrong ones, two decimals
    """
    predictions = read_rows(Folder(folder), PREDICTIONS)
    compared = "test" if "test" in set(predictions["split"]) else "val"
    kept = predictions[predictions["split"] == compared]
    if not scores:
        kept = kept.round({"score": 2})
        kept["score"] = kept["score"].where(kept["prediction"] != kept["label"])
    # What trials say of one example is much the same, and takes half the place next to each other.
    kept.sort_values("index", kind="stable").to_parquet(folder / PREDICTIONS, index=False, **SMALL)


def _keep_evaluations(path: Path) -> None:
    """Keep the rows of evaluations and, in a history of at most LONG rows, the layer mix's weights between them."""
    history = pd.read_parquet(path)
    read = [name for name in history if str(name).startswith(("val/", "mix/")[: 1 + (len(history) <= LONG)])]
    # Of numbers, bytes of one place next to each other.
    split = [name for name in history if is_float_dtype(history[name])]
    history[history[read].notna().any(axis=1)].to_parquet(
        path, index=False, use_byte_stream_split=split, use_dictionary=[*history.columns.drop(split)], **SMALL
    )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        publish(Path(argument))
