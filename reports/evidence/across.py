"""What the cases of a study (its backbones and datasets) allow one to claim together.

Three kinds of comparison, all of them contrasts over cells, a cell being one arm in one case ("minilm-cola/uniform"):
the mean of an effect over the cases that measure it alike; how far that effect differs between a case and the first;
and the score of a backbone against that of the first one on the same data. Arms of one case are paired by seed. Two
cases are compared with all seeds that each has, unpaired (`statistics.unpaired_p`), as if the seeds of the two were
independent: a negative correlation would make such an interval too narrow. A mean keeps its pairs: of seeds that make
cases vary together, it would vary more than independent cases do.

All of them are one family with an error of 5%, spent like a case's own (`spending`). An analysis is made where a run
of any case made one, from the run on that brings the second case: up to then there was nothing to compare. Seeds that
a case gained later, and cases that joined, are extensions. What was claimed before a case joined keeps its claim. So
everything follows from the cases' files alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from adalayers.comparisons import Comparison, PlannedArm
from adalayers.results.study_file import Run
from reports.evidence import prediction_hashes, tables
from reports.evidence.analyses import Analysis, analyses
from reports.evidence.claims import Claim, ComparisonFamily, of_scores, with_wins
from reports.evidence.evidence import Evidence
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
    runs: tuple[Run, ...] = ()
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
        return self.smoke, self.runs[0].started if self.runs else "", self.name

    def cell(self, arm: str) -> str:
        return f"{self.name}/{arm}"


@dataclass(frozen=True)
class Across:
    """What was found across cases.

    cases:    those compared, the reference first; left_out: those that are not, with the reason
    claims:   one for each comparison; analyses: when they were made
    """

    cases: tuple[CaseEvidence, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    claims: tuple[AcrossClaim, ...] = ()
    analyses: tuple[Analysis, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Planned:
    """A comparison across cases, before any score is seen.

    what:      the mean of an effect over cases, the difference of an effect between two cases, or of their scores
    case, reference: the two cases; `ALL` and "" for a mean
    cases:     all that it is of
    """

    what: What
    case: str
    reference: str
    cases: tuple[str, ...]
    sort: MetricKey
    comparison: Comparison

    @property
    def paired(self) -> bool:
        return self.what == MEAN


@dataclass(frozen=True, kw_only=True)
class AcrossClaim(_Planned):
    """What is claimed of one."""

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
        runs=study.runs.history,
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
    runs = study_runs(alike)
    planned = _planned(alike, runs)
    if not planned:
        return Across(tuple(alike), tuple(left_out))
    plan = replace(
        alike[0].plan, arms=tuple(PlannedArm(case.cell(arm.name)) for case in alike for arm in case.plan.arms)
    )
    steps = analyses(runs, _cells(alike), plan)
    answers = {
        # Equal predictions on other data are not the same.
        (case.cell(arm), seed): f"{case.dataset} {digest}"
        for case in alike
        for (arm, seed), digest in case.answers.items()
    }
    claims_by_sort: dict[tuple[MetricKey, bool], Iterator[Claim]] = {}
    for sort, paired in itertools.product(dict.fromkeys(item.sort for item in planned), (True, False)):
        metric, split = sort
        of_sort = [case for case in alike if case.sort == sort]
        values = {
            case.cell(arm): by_seed
            for case in of_sort
            for arm, by_seed in tables.values(case.trials, f"{split}/{metric}").items()
        }
        case_of = {case.cell(arm.name): case.name for case in of_sort for arm in case.plan.arms}
        verdict = of_scores(_smallest(of_sort))
        family = ComparisonFamily(metric, split, verdict, answers, case_of={} if paired else case_of)
        claims = family.claims(
            [item.comparison for item in planned if item.sort == sort and item.paired == paired],
            values,
            steps,
            {
                case.cell(arm): seeds
                for case in of_sort
                for arm, seeds in tables.without_score(case.trials, case.plan).items()
            },
            sharing=[item.comparison for item in planned],
        )
        claims_by_sort[sort, paired] = iter(with_wins(claims) if paired else claims)
    claimed = [
        AcrossClaim(**vars(item), claim=next(claims_by_sort[item.sort, item.paired])) for item in planned
    ]
    return Across(tuple(alike), tuple(left_out), tuple(claimed), tuple(steps))


def undecided(result: Across) -> dict[str, frozenset[str]]:
    """Return case -> the arms that open primary comparisons need more seeds of.

    Of the cases of a comparison, those with the fewest seeds: pairs are as many as these have, and two samples of one
    size tell most.
    """
    seeds = {
        case.name: max((after for run in case.runs for after in run.analyses), default=0)
        for case in result.cases
    }
    wanted: dict[str, set[str]] = {}
    for item in result.claims:
        if item.claim.primary and item.claim.n and not item.claim.decided:
            fewest = min(seeds[name] for name in item.cases)
            for case in result.cases:
                if case.name in item.cases and seeds[case.name] == fewest:
                    arms = {arm.name for arm in case.plan.arms if case.cell(arm.name) in item.claim.weights}
                    wanted.setdefault(case.name, set()).update(arms)
    return {name: frozenset(arms) for name, arms in wanted.items()}


def _planned(cases: Sequence[CaseEvidence], runs: Sequence[Run]) -> list[_Planned]:
    """Return all comparisons: those of the cases that there were at each run, then those of all cases.

    A mean over the cases that there were before another one joined was claimed then: it keeps its claim, and its share
    of the error.
    """
    planned: dict[tuple[object, ...], _Planned] = {}
    case_of_cell = {case.cell(arm): case.name for case in cases for run in case.runs for arm in run.seeds}
    seen: set[str] = set()
    for names in (
        *({case_of_cell[cell] for cell in run.seeds} for run in runs),
        {case.name for case in cases},
    ):
        seen |= names
        there = [case for case in cases if case.name in seen]
        for item in (*_effects(there), *_scores(there)):
            planned.setdefault((item.what, item.case, item.reference, item.cases, *item.comparison.key), item)
    return list(planned.values())


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


def _effects(cases: Sequence[CaseEvidence]) -> list[_Planned]:
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
                _Planned(
                    what=MEAN,
                    case=ALL,
                    reference="",
                    cases=tuple(of_case),
                    sort=sort,
                    comparison=replace(effect, weights=averaged),
                )
            )
            minus = {cell: -weight for cell, weight in of_case[reference.name].items()}
            differences += [
                _Planned(
                    what=DIFFERENCE,
                    case=case.name,
                    reference=reference.name,
                    cases=(reference.name, case.name),
                    sort=sort,
                    comparison=replace(effect, weights={**of_case[case.name], **minus}, primary=False),
                )
                for case in others
            ]
    return [*means, *differences]


def _scores(cases: Sequence[CaseEvidence]) -> list[_Planned]:
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
            planned += [
                _Planned(
                    what=SCORE,
                    case=case.name,
                    reference=reference.name,
                    cases=(reference.name, case.name),
                    sort=sort,
                    comparison=Comparison(
                        arm=arm,
                        control=counterpart,
                        weights={case.cell(arm): 1.0, reference.cell(counterpart): -1.0},
                        primary=arm == case.plan.control,
                    ),
                )
                for arm, counterpart in pairs.items()
                if arm and counterpart
            ]
    return planned


def study_runs(cases: Sequence[CaseEvidence]) -> list[Run]:
    """Return the runs of the cases as runs of one study, whose arms are the cells.

    Runs whose times overlap are one command's. Those before the second case has any seeds belong to the run that
    brings it, and the plan is that run's: its seeds are those first planned.
    """
    commands: list[list[tuple[CaseEvidence, Run]]] = []
    ended = ""
    case_runs = [(case, run) for case in cases for run in case.runs]
    for case, run in sorted(case_runs, key=lambda case_run: case_run[1].started):
        if commands and run.started <= ended:
            commands[-1].append((case, run))
        else:
            commands.append([(case, run)])
        ended = max(ended, run.ended)
    together: list[Run] = []
    waiting: list[tuple[CaseEvidence, Run]] = []
    covered: dict[str, set[int]] = {}
    seen: set[str] = set()
    for command in commands:
        waiting += command
        seen |= {case.name for case, run in command if run.confirmed}
        for case, run in command:
            # Those that diverged are among what analyses cover alone: they count with the trivial model's score.
            for of_arms in (run.seeds, *run.covered):
                for arm, seeds in of_arms.items():
                    covered.setdefault(case.cell(arm), set()).update(seeds)
        if len(seen) > 1:
            together.append(_together(waiting, max(run.planned for _, run in command), covered))
            waiting = []
    return together


def _together(runs: Sequence[tuple[CaseEvidence, Run]], planned: int, covered: Mapping[str, set[int]]) -> Run:
    """Return runs of several cases as one; covered: cell -> all its seeds by then."""
    analyses = sorted({after for _, run in runs for after in run.analyses if after <= planned})
    seeds = {cell: sorted(of_cell) for cell, of_cell in covered.items()}
    return Run(
        started=min(run.started for _, run in runs),
        ended=max(run.ended for _, run in runs),
        confirmed=sum(run.confirmed for _, run in runs),
        seeds=seeds,
        planned=planned,
        analyses=tuple(analyses),
        covered=(seeds,) * len(analyses),
    )


def _cells(cases: Sequence[CaseEvidence]) -> pd.DataFrame:
    """Return the confirmed trials of all cases, their arms called by their cells."""
    frames = []
    for case in cases:
        rows = tables.confirmed(case.trials)[["stage", "status", "arm", "seed", "trial_id"]]
        frames.append(rows.assign(arm=[case.cell(arm) for arm in rows["arm"]]))
    return pd.concat(frames, ignore_index=True)


def _smallest(cases: Sequence[CaseEvidence]) -> float | None:
    """Return the smallest effect of interest of all cases, None where one has none."""
    effects = [case.plan.smallest_effect for case in cases]
    return None if None in effects else min(effect for effect in effects if effect is not None)


def _groups(cases: Iterable[CaseEvidence], key: Any) -> dict[Any, list[CaseEvidence]]:
    """Return the groups of at least two cases with one key, in order."""
    groups: dict[Any, list[CaseEvidence]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return {shared: group for shared, group in groups.items() if len(group) > 1}
