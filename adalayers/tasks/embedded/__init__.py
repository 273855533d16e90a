"""The embedded datasets, a parquet file each next to this module; docs/tasks.md says how they were made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from adalayers.tasks.kind import Labels


def read(name: str) -> tuple[dict[str, tuple[list[Any], Labels]], tuple[str, ...], str]:
    """Read an embedded dataset.

    Returns:
        Inputs and labels by split: n texts, pairs of texts or lists of words; labels [n] of int64 (classes) or float32
        (numbers), or n arrays [words]. Then the names of the classes, and the name of the kind of task.
    """
    import pyarrow.compute
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(Path(__file__).with_name(f"{name}.parquet"))
    columns = [column for column in table.column_names if column not in ("split", "label")]
    splits: dict[str, tuple[list[Any], Labels]] = {}
    for split in ("train", "validation", "test"):
        rows = table.filter(pyarrow.compute.field("split") == split)
        texts = [rows[column].to_pylist() for column in columns]
        labels = rows["label"].to_numpy()
        splits[split] = (
            texts[0] if len(texts) == 1 else list(zip(*texts, strict=True)),
            [np.array(words) for words in labels] if labels.dtype == object else np.array(labels),
        )
    metadata = {key.decode(): json.loads(value) for key, value in table.schema.metadata.items()}
    return splits, tuple(metadata["label_names"]), metadata["kind"]
