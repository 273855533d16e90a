"""What was measured of the backbone and the data without training."""

from __future__ import annotations

from dataclasses import dataclass

from adalayers.results.measures import Measured, measured
from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.parts.variability import of_trials
from reports.words.labels import layer_name
from reports.words.text import NONE, escape, number, table


@dataclass(frozen=True)
class Info:
    """chosen: whether trials measured variability themselves, over all training examples."""

    measures: tuple[Measured, ...]
    chosen: bool = False


def info(evidence: Evidence) -> Info | None:
    measures = measured(evidence.loaded.results.folder)
    return Info(tuple(measures.values()), bool(of_trials(evidence.trials))) if measures else None


def section(info: Info) -> list[str]:
    rows = [
        [
            escape(measure.title),
            number(measure.value, 0 if measure.by_layer else 3)
            if measure.value is not None
            else f"none: {escape(measure.why)}",
            number(measure.nothing),
            escape(measure.unit),
            f"{measure.n:,} {escape(measure.counted)}" if measure.n else NONE,
        ]
        for measure in info.measures
    ]
    heads = ["measure", "value", "baseline", "unit", "n"]
    return [
        table(heads, rows),
        *(
            f"*{escape(measure.title)}*: {escape(measure.how, 1000)}.{_by_layer(measure)}"
            for measure in info.measures
            if measure.how
        ),
        "Measured on a sample. Trials that select a layer by it measure it on all training examples, which may order "
        "layers differently: see *Variability by layer*."
        if info.chosen and any(measure.by_layer for measure in info.measures)
        else "",
    ]


def _by_layer(measure: Measured) -> str:
    if not measure.by_layer:
        return ""
    return f" By layer: {', '.join(f'{layer_name(name)} {number(value)}' for name, value in measure.by_layer.items())}."


PART = Part("Measured without training", info, section)
