"""What was measured of the backbone and the data without training."""

from __future__ import annotations

from collections.abc import Sequence

from adalayers.results.measures import Measured, measured
from reports.evidence.evidence import Evidence
from reports.section import Section, Table
from reports.words.labels import layer_name
from reports.words.text import NONE, number


def frames(evidence: Evidence) -> list[Measured] | None:
    return list(measured(evidence.loaded.results.folder).values()) or None


def tables(measures: list[Measured]) -> Sequence[Table]:
    rows = [
        [
            measure.title,
            f"none: {measure.why}"
            if measure.value is None
            else number(measure.value, 0 if measure.by_layer else 3),
            number(measure.nothing),
            measure.unit,
            f"{measure.n:,} {measure.counted}" if measure.n else NONE,
            measure.how,
        ]
        for measure in measures
    ]
    shown = [Table(["measure", "value", "baseline", "unit", "n", "how"], rows)]
    for measure in measures:
        if measure.by_layer:
            heads = [layer_name(name) for name in measure.by_layer]
            shown.append(
                Table(heads, [[number(value) for value in measure.by_layer.values()]], f"{measure.title}.")
            )
    return shown


SECTION = Section("Measured without training", frames, tables)
