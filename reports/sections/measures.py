"""What was measured of the backbone and the data without training, and by layer next to the learned mix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from adalayers.results.measures import Measured, measured
from reports.cells import summary, table_of
from reports.evidence.evidence import Evidence
from reports.section import Section, Table
from reports.tables import layers
from reports.tables.mix import WEIGHT, state_name
from reports.words.text import NONE, number

VARIABILITY = "variability"


@dataclass(frozen=True)
class Frames:
    """by_layer: a row per layer: layer, nu, and mean, low, high, n of its weight in the best learned mix."""

    measures: Sequence[Measured]
    by_layer: pd.DataFrame


def frames(evidence: Evidence) -> Frames | None:
    measures = measured(evidence.loaded.folder)
    sample = measures.get(VARIABILITY)
    nu = sample.by_layer if sample else {}
    weights = evidence.profile
    shares = {name: weights[column] / max(1, len(weights)) for name, column in layers.SHARES.items()}
    names = pd.Series([state_name(f"{WEIGHT}{key}") for key in nu], dtype=object)
    nus = pd.DataFrame({"layer": names, "nu": [*nu.values()]})
    by_layer = nus.merge(weights[["layer", "n"]].assign(**shares), on="layer", how="left")
    return Frames(list(measures.values()), by_layer) if measures else None


def tables(frames: Frames) -> Sequence[Table]:
    rows = [
        [
            measure.title,
            f"none: {measure.why}" if measure.value is None else number(measure.value),
            number(measure.nothing),
            measure.unit,
            f"{measure.n:,} {measure.counted}" if measure.n else NONE,
            measure.how,
        ]
        for measure in frames.measures
    ]
    heads = {"layer": "layer", "variability ν": "nu", "weight p̃ in the best learned mix": _weight}
    measures = Table(["measure", "value", "baseline", "unit", "n", "how"], rows)
    return [measures, table_of(frames.by_layer, heads)]


def _weight(row: dict[str, float]) -> str:
    return NONE if pd.isna(row["mean"]) else summary(row)


SECTION = Section("Measured without training", frames, tables)
