"""What the cases of a study (its backbones and datasets) allow one to claim together.

Three kinds of comparison, all of them contrasts over cells, a cell being one arm in one case ("minilm-cola/uniform"):
the mean of an effect over the cases that measure it alike; how far that effect differs between a case and the first;
and the score of a backbone against that of the first one on the same data. Arms of one case are paired by seed, and so
is a mean over cases: of seeds that make cases vary together, it would vary more than independent cases do. Two cases
are compared with all seeds that each has, as if those of the two were independent (`holm.unpaired`).

All of them are one family, judged once, as the cases stand: by seeds that the last analysis of each covers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from adalayers.comparisons import FIRST, Comparison
from adalayers.results.interim_analyses import PLANNED, InterimAnalysis
from adalayers.results.study_file import StudyFile
from reports.evidence.claims import Claim, Family, judged
from reports.evidence.evidence import Evidence
from reports.evidence.holm import unpaired
from reports.reading.load import Plan
from reports.tables import arms as tables

ALL = "all"
"""The `case` of a mean over cases."""

What = Literal["mean effect", "difference of effects", "score"]
MEAN: What = "mean effect"
DIFFERENCE: What = "difference of effects"
SCORE: What = "score"

OF_THE_CASE = ("backbone ", "dataset ", "text_column", "label_column")
"""How the flags begin that may differ between cases that are compared."""


@dataclass(frozen=True)
class Case:
    """One case, by the name of its folder."""

    name: str
    evidence: Evidence

    @property
    def plan(self) -> Plan:
        return self.evidence.plan

    @property
    def study(self) -> StudyFile:
        return self.evidence.loaded.study

    @property
    def sort(self) -> tuple[str, str]:
        """Metric and split: what cases must share for their effects to be of one kind."""
        return self.plan.metric, self.evidence.split

    @property
    def began(self) -> tuple[bool, str, str]:
        """What cases are ordered by: when they began, smoke runs last."""
        runs = self.study.runs
        return runs.smoke, runs.history[0].started if runs.history else "", self.name

    @property
    def trained_on(self) -> tuple[str, str]:
        """The backbone's id, and the fingerprint of the data, "" where that is not known."""
        environment = self.study.environment
        return environment.backbone.id, environment.dataset.fingerprint

    def cell(self, arm: str) -> str:
        return f"{self.name}/{arm}"

    def cells(self, weights: Mapping[str, float], times: float = 1.0) -> dict[str, float]:
        """Return a comparison of its arms as one of its cells."""
        return {self.cell(arm): times * weight for arm, weight in weights.items()}


@dataclass(frozen=True)
class Across:
    """What was found across cases.

    cases:    those compared, the reference first; left_out: those that are not, with the reason
    claims:   one for each comparison
    """

    cases: tuple[Case, ...] = ()
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


def across(cases: Iterable[Case]) -> Across:
    """Return what can be claimed across cases: of the most that were run alike, in the order in which they began."""
    alike, left_out = run_alike(cases)
    planned = [*_effects(alike), *_scores(alike)]
    values: dict[str, dict[int, float]] = {}
    untestable: dict[str, frozenset[int]] = {}
    answers: dict[tuple[str, int], str] = {}
    covered: dict[str, list[int]] = {}
    for case in alike:
        evidence, (_, data) = case.evidence, case.trained_on
        last = evidence.analyses[-1].covered if evidence.analyses else evidence.scores
        values |= {case.cell(arm): by_seed for arm, by_seed in evidence.scores.items()}
        covered |= {case.cell(arm): [*seeds] for arm, seeds in last.items()}
        lost = tables.without_score(evidence.trials, case.plan)
        untestable |= {case.cell(arm): seeds for arm, seeds in lost.items()}
        # Equal predictions on other data are not the same.
        answers |= {
            (case.cell(arm), seed): f"{data} {text}" for (arm, seed), text in evidence.answers.items()
        }
    end, cells = InterimAnalysis(covered=covered), Family(values, None, untestable, answers)
    latest = [_seen(item, cells, end, alike) for item in planned]
    looks = {place: claim for place, claim in enumerate(latest) if claim.primary}
    claims = judged(latest, [(PLANNED, looks)], PLANNED)
    found = (replace(item, claim=claim) for item, claim in zip(planned, claims, strict=True))
    return Across(tuple(alike), tuple(left_out), tuple(found))


def _seen(item: AcrossClaim, cells: Family, end: InterimAnalysis, cases: Sequence[Case]) -> Claim:
    """Return what there is of a comparison: of a mean by seed, of two cases all that each has."""
    own = [case for case in cases if case.name in item.cases]
    effects = [case.plan.smallest_effect for case in own]
    cells = replace(cells, smallest=None if None in effects else min(filter(None, effects), default=0.0))
    claim = cells.seen(item.claim, end)
    if item.what != MEAN:
        parts = [
            cells.seen(replace(claim, weights={cell: claim.weights[cell] for cell in of_case}), end)
            for case in own
            for of_case in [{case.cell(arm.name) for arm in case.plan.arms} & claim.arms]
        ]
        samples = [[*part.values.values()] for part in parts]
        n, withheld = min(map(len, samples)), any(part.withheld for part in parts)
        scores = (abs(value) for cell in claim.arms for value in cells.values.get(cell, {}).values())
        tested = n >= FIRST and not withheld
        claim = replace(
            item.claim,
            n=n,
            difference=sum(map(fmean, samples)) if n else None,
            estimate=unpaired(samples, cells.smallest, scale=max(scores, default=0)) if tested else None,
            withheld=withheld,
        )
    ended = all(case.evidence.analyses for case in own)
    return claim if ended else replace(claim, estimate=None)


def run_alike(cases: Iterable[Case]) -> tuple[list[Case], list[tuple[str, str]]]:
    """Return the most cases that were run alike, as they began, and the others with the first flag that differs."""
    cases = sorted(cases, key=lambda case: case.began)
    if not cases:
        return [], []
    reference = max(cases, key=lambda case: sum(_differs(case, other) is None for other in cases))
    flags = {case.name: _differs(reference, case) for case in cases}
    left_out = [
        (case.name, f"{flag} is {has} there and {had} in {reference.name}")
        for case in cases
        if (flag := flags[case.name]) is not None
        for had, has in [[side.study.request.flags.get(flag) for side in (reference, case)]]
    ]
    return [case for case in cases if flags[case.name] is None], left_out


def _differs(reference: Case, case: Case) -> str | None:
    """Return the first flag that is no case's own and that the two were run with otherwise."""
    one, other = (side.study.request.flags for side in (reference, case))
    own = (name for name in {**one, **other} if not name.startswith(OF_THE_CASE))
    return next((name for name in own if one.get(name) != other.get(name)), None)


def _effects(cases: Sequence[Case]) -> list[AcrossClaim]:
    """Plan the primary comparisons that all cases of one sort share: their means, then their differences."""
    means, differences = [], []
    for of_sort in _groups(cases, lambda case: case.sort):
        reference = of_sort[0]
        shared = [{claim.key: claim for claim in case.plan.comparisons if claim.primary} for case in of_sort]
        for key, effect in shared[0].items():
            if not all(key in of_case for of_case in shared):
                continue
            effects = [(case, of_case[key].weights) for case, of_case in zip(of_sort, shared, strict=True)]
            averaged: dict[str, float] = {}
            for case, weights in effects:
                averaged |= case.cells(weights, 1 / len(of_sort))
            means.append(_planned(MEAN, of_sort, replace(effect, weights=averaged)))
            minus = reference.cells(effects[0][1], -1.0)
            differences += [
                _planned(
                    DIFFERENCE,
                    (reference, case),
                    replace(effect, weights=case.cells(weights) | minus, primary=False),
                )
                for case, weights in effects[1:]
            ]
    return [*means, *differences]


def _scores(cases: Sequence[Case]) -> list[AcrossClaim]:
    """Plan each backbone's score against the first one's on the same data: the control's, then other common arms'."""
    planned = []
    named = [case for case in cases if case.trained_on[1]]
    for of_data in _groups(named, lambda case: (case.trained_on[1], case.sort)):
        reference, *others = of_data
        for case in others:
            if case.trained_on == reference.trained_on:
                continue
            pairs = {case.plan.control: reference.plan.control}
            common = {arm.name for arm in case.plan.arms}
            pairs |= {arm.name: arm.name for arm in reference.plan.arms if arm.name in common - pairs.keys()}
            for arm, counterpart in pairs.items():
                if arm and counterpart:
                    weights = {case.cell(arm): 1.0, reference.cell(counterpart): -1.0}
                    primary = arm == case.plan.control
                    score = Comparison(arm=arm, control=counterpart, weights=weights, primary=primary)
                    planned.append(_planned(SCORE, (reference, case), score))
    return planned


def _planned(what: What, cases: Sequence[Case], comparison: Comparison) -> AcrossClaim:
    """Return a comparison of cases, the reference first."""
    metric, split = cases[0].sort
    return AcrossClaim(
        what=what,
        case=ALL if what == MEAN else cases[-1].name,
        reference="" if what == MEAN else cases[0].name,
        cases=tuple(case.name for case in cases),
        claim=Claim(**vars(comparison), metric=metric, split=split),
    )


def _groups(cases: Iterable[Case], key: Callable[[Case], Hashable]) -> list[list[Case]]:
    """Return the groups of at least two cases with one key, in order."""
    groups: dict[Hashable, list[Case]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return [group for group in groups.values() if len(group) > 1]
