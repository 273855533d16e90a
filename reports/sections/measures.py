"""What was measured of the backbone and the data without training."""

from __future__ import annotations

from adalayers.results.measures import measured
from reports.evidence.evidence import Evidence
from reports.section import Section, Table
from reports.tables.mix import WEIGHT, state_name
from reports.words import NONE, number


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
    heads = ["measure", "value", "baseline", "unit", "n", "how"]
    by_layer = [
        [measure.title, state_name(f"{WEIGHT}{key}"), number(value)]
        for measure in measures.values()
        for key, value in measure.by_layer.items()
    ]
    tables = [Table(heads, rows), Table(["measure", "layer", "value"], by_layer)]
    return Section("Measured without training", tables)
