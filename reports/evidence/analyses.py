"""Interim analyses of the confirmed trials: what each covered and decided, worked out again from the files.

An interim analysis is a run of the study after which new confirmed trials could be read. Rebuilding a report from
unchanged files shows nothing new: that is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from adalayers.results.study_file import Run
from reports.evidence.claims import BETTER, WORSE, Claim, claims
from reports.reading.load import Plan


@dataclass(frozen=True)
class Analysis:
    """One interim analysis.

    ended: when its run ended, as `study.json` says; "" where it does not
    seeds: arm -> the seeds it had by then; None where `study.json` does not say
    claims: what it claimed; None where that cannot be worked out again
    """

    number: int
    ended: str
    seeds: Mapping[str, frozenset[int]] | None
    claims: tuple[Claim, ...] | None = None


def analyses(runs: Sequence[Run], trials: pd.DataFrame, plan: Plan) -> list[Analysis]:
    """Return the analyses that `study.json` records, each with its claims at its own part of the 5%.

    Empty where the record disagrees with the number of analyses: then nothing is known of any single one.
    """
    found = recorded(runs)
    if len(found) != plan.looks:
        return []
    return [one if one.seeds is None else _decided(one, one.seeds, trials, plan) for one in found]


def recorded(runs: Sequence[Run]) -> list[Analysis]:
    """Return the runs that added confirmed trials, without their claims."""
    found: list[Analysis] = []
    seeds: dict[str, frozenset[int]] | None = {}
    for run in runs:
        if not run.confirmed:
            continue
        added = {arm: frozenset(of_arm) for arm, of_arm in run.seeds.items()}
        if seeds is not None:
            seeds = {
                arm: seeds.get(arm, frozenset()) | added.get(arm, frozenset()) for arm in {**seeds, **added}
            }
        if not added:  # written before seeds were noted: from here on it is not known who had which
            seeds = None
        found.append(Analysis(len(found) + 1, run.ended, seeds))
    return found


def changed(analysis: Analysis, now: Sequence[Claim]) -> list[str]:
    """Return the arms that `analysis` called better or worse and that `now` does not call so."""
    verdicts = {claim.arm: claim.verdict for claim in now}
    return [
        claim.arm
        for claim in analysis.claims or ()
        if claim.verdict in (BETTER, WORSE) and verdicts.get(claim.arm) != claim.verdict
    ]


def _decided(
    analysis: Analysis, seeds: Mapping[str, frozenset[int]], trials: pd.DataFrame, plan: Plan
) -> Analysis:
    keys = zip(trials["stage"], trials["arm"], trials["seed"], strict=True)
    seen = [
        stage == "confirm" and not pd.isna(seed) and int(seed) in seeds.get(arm, ())
        for stage, arm, seed in keys
    ]
    then = replace(plan, looks=analysis.number, arms=tuple(arm for arm in plan.arms if arm.name in seeds))
    return replace(analysis, claims=tuple(claims(trials[seen], then)))
