"""What was measured of the backbone and the data without training, and by layer next to the learned mix."""

from __future__ import annotations

import pandas as pd

from adalayers.results.measures import measured
from reports.evidence.evidence import Evidence
from reports.section import Section, Table, summary, table_of
from reports.tables.mix import WEIGHT, state_name
from reports.words import NONE, number

VARIABILITY = "variability"


def section(evidence: Evidence) -> Section | None:
    measures = measured(evidence.loaded.folder)
    if not measures:
        return None
    rows = [
        [
            measure.title,
            f"none: {measure.why}" if measure.value is None else number(measure.value),
            number(measure.nothing),
            measure.unit,
            f"{measure.n:,} {measure.counted}" if measure.n else NONE,
            measure.how,
        ]
        for measure in measures.values()
    ]
    sample, weights = measures.get(VARIABILITY), evidence.profile
    nu = sample.by_layer if sample else {}
    nus = pd.DataFrame({"layer": [state_name(f"{WEIGHT}{key}") for key in nu], "nu": [*nu.values()]})
    shares = weights[["layer", "n"]].join(weights[["mean", "low", "high"]] / max(1, len(weights)))
    by_layer = nus.astype({"layer": object}).merge(shares, on="layer", how="left")
    heads = {"layer": "layer", "variability ν": "nu", "weight p̃ in the best learned mix": _weight}
    return Section(
        "Measured without training",
        [
            Table(["measure", "value", "baseline", "unit", "n", "how"], rows),
            table_of(by_layer, heads),
        ],
    )


def _weight(row: dict[str, float]) -> str:
    return NONE if pd.isna(row["mean"]) else summary(row)
