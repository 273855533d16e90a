"""What the cases of a study (its backbones and datasets) allow one to claim together.

Three kinds of comparison, all of them contrasts over cells, a cell being one arm in one case ("minilm-cola/uniform"):
the mean of an effect over the cases that measure it alike; how far that effect differs between a case and the first;
and the score of a backbone against that of the first one on the same data. Arms of one case are paired by seed, and so
is a mean over cases: of seeds that make cases vary together, it would vary more than independent cases do. Two cases
are compared with all seeds that each has, as if those of the two were independent (`holm.unpaired`).

All of them are one family, judged once, as the cases stand: by seeds that the last analysis of each covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

import pandas as pd

from adalayers.comparisons import FIRST, Comparison
from adalayers.results.interim_analyses import PLANNED, InterimAnalysis
from reports.evidence import prediction_hashes, tables
from reports.evidence.claims import Claim, Family, Seen, judged
from reports.evidence.evidence import Evidence
from reports.evidence.holm import unpaired
from reports.reading.load import Plan

ALL = "all"
"""The `case` of a mean over cases."""

What = Literal["mean effect", "difference of effects", "score"]
MEAN: What = "mean effect"
DIFFERENCE: What = "difference of effects"
SCORE: What = "score"

OF_THE_CASE = ("backbone ", "dataset ", "text_column", "label_column")
"""How the flags begin that may differ between cases that are compared."""

MetricKey = tuple[str, str]
"""Metric and split: what cases must share for their effects to be of one kind."""


@dataclass(frozen=True, kw_only=True)
class CaseEvidence:
    """One case as claims across cases need it.

    dataset: fingerprint of its data, "" where unknown; backbone: its id
    flags:   all that makes it another study, by name
    learned_nothing: whether its control gives one answer to all
    """

    name: str
    plan: Plan
    trials: pd.DataFrame
    split: str
    started: str = ""
    analyses: tuple[InterimAnalysis, ...] = ()
    backbone: str = ""
    dataset: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)
    answers: prediction_hashes.PredictionHashes = field(default_factory=dict)
    smoke: bool = False
    learned_nothing: bool = False

    @property
    def sort(self) -> MetricKey:
        return self.plan.metric, self.split

    @property
    def began(self) -> tuple[bool, str, str]:
        """What cases are ordered by: when they began, smoke runs last."""
        return self.smoke, self.started, self.name

    def cell(self, arm: str) -> str:
        return f"{self.name}/{arm}"


@dataclass(frozen=True)
class Across:
    """What was found across cases.

    cases:    those compared, the reference first; left_out: those that are not, with the reason
    claims:   one for each comparison
    """

    cases: tuple[CaseEvidence, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    claims: tuple[AcrossClaim, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AcrossClaim:
    """A comparison across cases and what is claimed of it.

    what:      the mean of an effect over cases, the difference of an effect between two cases, or of their scores
    case, reference: the two cases; `ALL` and "" for a mean
    cases:     all that it is of
    """

    what: What
    case: str
    reference: str
    cases: tuple[str, ...]
    claim: Claim

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the file format: those of a claim, and of which cases it is."""
        about = {"case": self.case, "reference": self.reference, "cases": list(self.cases), "what": self.what}
        return {**self.claim.as_json(), "kind": "across", **about}


def case_of(name: str, evidence: Evidence) -> CaseEvidence:
    """Return a case from what its folder holds."""
    study = evidence.loaded.study
    return CaseEvidence(
        name=name,
        plan=evidence.plan,
        trials=evidence.trials,
        split=evidence.split,
        started=study.runs.history[0].started if study.runs.history else "",
        analyses=tuple(evidence.analyses),
        backbone=study.environment.backbone.id,
        dataset=study.environment.dataset.fingerprint,
        flags=study.request.flags,
        answers=evidence.answers,
        smoke=study.runs.smoke,
        learned_nothing=evidence.plan.control in evidence.learned_nothing,
    )


def across(cases: Iterable[CaseEvidence]) -> Across:
    """Return what can be claimed across cases: of the most that were run alike, in the order in which they began."""
    alike, left_out = run_alike(cases)
    planned = [*_effects(alike), *_scores(alike)]
    cells = Family(
        {
            case.cell(arm): by_seed
            for case in alike
            for arm, by_seed in tables.values(case.trials, f"{case.split}/{case.plan.metric}").items()
        },
        None,
        {
            case.cell(arm): seeds
            for case in alike
            for arm, seeds in tables.without_score(case.trials, case.plan).items()
        },
        {
            # Equal predictions on other data are not the same.
            (case.cell(arm), seed): f"{case.dataset} {digest}"
            for case in alike
            for (arm, seed), digest in case.answers.items()
        },
    )
    covered = {cell: [*by_seed] for cell, by_seed in cells.values.items()} | {
        case.cell(arm): seeds
        for case in alike
        if case.analyses
        for arm, seeds in case.analyses[-1].covered.items()
    }
    end = InterimAnalysis(level=PLANNED, covered=covered)
    latest = [_seen(item, cells, end, alike) for item in planned]
    looks = {place: seen for place, seen in enumerate(latest) if planned[place].claim.primary}
    claims = judged([item.claim for item in planned], [(PLANNED, looks)], latest, PLANNED)
    found = (replace(item, claim=claim) for item, claim in zip(planned, claims, strict=True))
    return Across(tuple(alike), tuple(left_out), tuple(found))


def _seen(item: AcrossClaim, cells: Family, end: InterimAnalysis, cases: Sequence[CaseEvidence]) -> Seen:
    """Return what there is of a comparison: of a mean by seed, of two cases all that each has."""
    claim, own = item.claim, [case for case in cases if case.name in item.cases]
    effects = [case.plan.smallest_effect for case in own]
    known = [effect for effect in effects if effect is not None]
    cells = replace(cells, smallest=min(known) if len(known) == len(effects) else None)
    ended = all(case.analyses for case in own)
    if item.what == MEAN:
        seen = cells.seen(claim, end)
        return replace(seen, estimate=seen.estimate if ended else None)
    names = [{case.cell(arm.name) for arm in case.plan.arms} & claim.arms for case in own]
    parts = [
        cells.seen(replace(claim, weights={cell: claim.weights[cell] for cell in of_case}), end)
        for of_case in names
    ]
    samples = [[*part.values.values()] for part in parts]
    n, withheld = min(map(len, samples)), any(part.withheld for part in parts)
    scale = max(
        (abs(value) for cell in claim.arms for value in cells.values.get(cell, {}).values()), default=0
    )
    return Seen(
        n,
        sum(map(fmean, samples)) if n else None,
        unpaired(samples, cells.smallest, scale=scale) if ended and n >= FIRST and not withheld else None,
        withheld=withheld,
    )


def run_alike(cases: Iterable[CaseEvidence]) -> tuple[list[CaseEvidence], list[tuple[str, str]]]:
    """Return the most cases that were run alike, as they began, and the others with the first flag that differs."""
    cases = sorted(cases, key=lambda case: case.began)
    if not cases:
        return [], []
    reference = max(cases, key=lambda case: sum(_differs(case, other) is None for other in cases))
    alike, others = [], []
    for case in cases:
        flag = _differs(reference, case)
        if flag is None:
            alike.append(case)
        else:
            had, has = (side.flags.get(flag) for side in (reference, case))
            others.append((case.name, f"{flag} is {has} there and {had} in {reference.name}"))
    return alike, others


def _differs(reference: CaseEvidence, case: CaseEvidence) -> str | None:
    """Return the first flag that is no case's own and that the two were run with otherwise."""
    both = {**reference.flags, **case.flags}
    own = (name for name in both if not name.startswith(OF_THE_CASE))
    return next((name for name in own if reference.flags.get(name) != case.flags.get(name)), None)


def _effects(cases: Sequence[CaseEvidence]) -> list[AcrossClaim]:
    """Plan the primary comparisons that all cases of one sort share: their means, then their differences."""
    means, differences = [], []
    for sort, of_sort in _groups(cases, lambda case: case.sort).items():
        reference, *others = of_sort
        shared = [{claim.key: claim for claim in case.plan.comparisons if claim.primary} for case in of_sort]
        for key, effect in shared[0].items():
            if not all(key in of_case for of_case in shared):
                continue
            of_case = {
                case.name: {case.cell(arm): weight for arm, weight in effects[key].weights.items()}
                for case, effects in zip(of_sort, shared, strict=True)
            }
            averaged = {
                cell: weight / len(of_sort)
                for weights in of_case.values()
                for cell, weight in weights.items()
            }
            means.append(
                AcrossClaim(
                    what=MEAN,
                    case=ALL,
                    reference="",
                    cases=tuple(of_case),
                    claim=_named(replace(effect, weights=averaged), sort),
                )
            )
            minus = {cell: -weight for cell, weight in of_case[reference.name].items()}
            differences += [
                AcrossClaim(
                    what=DIFFERENCE,
                    case=case.name,
                    reference=reference.name,
                    cases=(reference.name, case.name),
                    claim=_named(
                        replace(effect, weights={**of_case[case.name], **minus}, primary=False), sort
                    ),
                )
                for case in others
            ]
    return [*means, *differences]


def _scores(cases: Sequence[CaseEvidence]) -> list[AcrossClaim]:
    """Plan each backbone's score against the first one's on the same data: the control's, then other common arms'."""
    planned = []
    named = [case for case in cases if case.dataset]
    for (_, sort), of_data in _groups(named, lambda case: (case.dataset, case.sort)).items():
        reference, *others = of_data
        for case in others:
            if case.backbone == reference.backbone:
                continue
            pairs = {case.plan.control: reference.plan.control}
            common = {arm.name for arm in case.plan.arms}
            pairs |= {arm.name: arm.name for arm in reference.plan.arms if arm.name in common - pairs.keys()}
            for arm, counterpart in pairs.items():
                if arm and counterpart:
                    weights = {case.cell(arm): 1.0, reference.cell(counterpart): -1.0}
                    primary = arm == case.plan.control
                    score = Comparison(arm=arm, control=counterpart, weights=weights, primary=primary)
                    planned.append(
                        AcrossClaim(
                            what=SCORE,
                            case=case.name,
                            reference=reference.name,
                            cases=(reference.name, case.name),
                            claim=_named(score, sort),
                        )
                    )
    return planned


def _named(comparison: Comparison, sort: MetricKey) -> Claim:
    return Claim(**vars(comparison), metric=sort[0], split=sort[1])


def _groups(cases: Iterable[CaseEvidence], key: Any) -> dict[Any, list[CaseEvidence]]:
    """Return the groups of at least two cases with one key, in order."""
    groups: dict[Any, list[CaseEvidence]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return {shared: group for shared, group in groups.items() if len(group) > 1}
