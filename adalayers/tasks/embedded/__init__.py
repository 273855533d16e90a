"""The embedded datasets, a parquet file each next to this module; docs/tasks.md says how they were made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(name: str) -> dict[str, Any]:
    """Return the splits of an embedded dataset, each a `datasets.Dataset`."""
    import datasets
    import pyarrow.compute
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(Path(__file__).with_name(f"{name}.parquet"))
    features = datasets.Features.from_arrow_schema(table.drop_columns("split").schema.remove_metadata())
    if names := json.loads(table.schema.metadata[b"label_names"]):
        of_words = isinstance(features["label"], datasets.List)
        classes = datasets.ClassLabel(names=names)
        features["label"] = datasets.List(classes) if of_words else classes
    splits = {}
    for split in ("train", "validation", "test"):
        rows = table.filter(pyarrow.compute.field("split") == split).drop_columns("split")
        info = datasets.DatasetInfo(features=features)
        splits[split] = datasets.Dataset(rows.replace_schema_metadata(), info=info)
    return splits
