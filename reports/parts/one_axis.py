"""Whether alpha and the mix's learning rate are one axis: curves of two arms with the same product."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from reports.evidence.evidence import Evidence
from reports.evidence.layer_weights import weight_columns
from reports.evidence.tables import confirmed
from reports.parts.part import Part
from reports.reading.frames import numbers
from reports.words.labels import short
from reports.words.text import code, count, number


@dataclass(frozen=True)
class Info:
    """score, weights: the largest gap of validation score, and of a mix weight, at the same epoch and seed.

    end: the largest gap of the published score; seeds: those that both arms have
    """

    twin: str
    cell: str
    score: float
    weights: float
    end: float
    seeds: int
    metric: str


def info(evidence: Evidence) -> Info | None:
    twin = next((arm.name for arm in evidence.plan.arms if arm.role == "twin"), None)
    claim = next((claim for claim in evidence.claims if claim.arm == twin), None)
    if twin is None or claim is None:
        return None
    rows = confirmed(evidence.trials)
    first, second = (rows[rows["arm"] == arm].set_index("seed")["trial_id"] for arm in (twin, claim.control))
    seeds = sorted(set(first.index) & set(second.index))
    if not seeds:
        return None
    columns = [f"val/{evidence.plan.metric}", *weight_columns(evidence.history)]
    gaps = pd.concat([_gaps(evidence.history, first[seed], second[seed], columns) for seed in seeds])
    scores = evidence.scores[twin].loc[seeds] - evidence.scores[claim.control].loc[seeds]
    return Info(
        twin,
        claim.control,
        float(gaps[columns[0]].max()),
        float(gaps[columns[1:]].max().max()),
        float(scores.abs().max()),
        len(seeds),
        evidence.plan.metric,
    )


def _gaps(history: pd.DataFrame, first: str, second: str, columns: list[str]) -> pd.DataFrame:
    """Return the absolute differences of two trials at the epochs that both have."""
    frames = []
    for trial_id in (first, second):
        rows = history[history["trial_id"] == trial_id]
        frame = pd.DataFrame({column: numbers(rows, column) for column in columns})
        frames.append(frame.set_axis(numbers(rows, "epoch")).groupby(level=0).last())
    return (frames[0] - frames[1]).abs()


def section(info: Info) -> list[str]:
    return [
        f"{code(info.twin)} and {code(info.cell)} have the same product of α and the rate of p. On the "
        f"{count(info.seeds, 'seed')} that both have, their curves differ at no epoch by more than "
        f"{number(info.score)} in validation {short(info.metric)} and {number(info.weights)} in any mix weight; their "
        f"final scores by at most {number(info.end)}."
    ]


PART = Part("One axis", info, section)
