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
    found = measured(evidence.loaded.results.folder)
    return Info(tuple(found.values()), bool(of_trials(evidence.trials))) if found else None


def section(info: Info) -> list[str]:
    rows = [
        [
            escape(of.title),
            number(of.value, 0 if of.by_layer else 3) if of.value is not None else f"none: {escape(of.why)}",
            number(of.nothing),
            escape(of.unit),
            f"{of.n:,} {escape(of.of)}" if of.n else NONE,
        ]
        for of in info.measures
    ]
    heads = ["measure", "value", "where there is nothing to find", "unit", "n"]
    return [
        table(heads, rows),
        *(f"*{escape(of.title)}*: {escape(of.how, 1000)}.{_by_layer(of)}" for of in info.measures if of.how),
        "This is of a sample. Over all training examples, as trials measured it that chose a layer by it, it may put "
        "layers in another order: see *Variability by layer*."
        if info.chosen and any(of.by_layer for of in info.measures)
        else "",
    ]


def _by_layer(of: Measured) -> str:
    if not of.by_layer:
        return ""
    return f" By layer: {', '.join(f'{layer_name(name)} {number(value)}' for name, value in of.by_layer.items())}."


PART = Part("Measured without training", info, section)
