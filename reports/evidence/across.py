"""What the cases of a study (its backbones and datasets) allow one to claim together.

Cases of the same flags are compared in three ways, each of what the last analysis of its cases sees: the mean of an
effect over the cases that measure it alike; how far that effect differs between a case and the first; and the score of
a backbone against that of the first one on the same data. Arms of one case are paired by seed, and so is a mean over
cases: of seeds that make cases vary together, it would vary more than independent cases do. Two cases are compared with
all seeds that each has, as if those of the two were independent (`holm.unpaired`).

Those of the same flags are one family, judged once, as the cases stand: by seeds that the last analysis of each covers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from adalayers.comparisons import FIRST, Comparison
from adalayers.results.interim_analyses import PLANNED
from adalayers.results.study_file import RequestRecord, StudyFile
from adalayers.storage.to_json import JsonObject
from reports.evidence.claims import Claim, differences, judged
from reports.evidence.evidence import Evidence
from reports.evidence.holm import paired, unpaired

ALL = "all"
"""The `case` of a mean over cases."""

What = Literal["mean effect", "difference of effects", "score"]
MEAN: What = "mean effect"
DIFFERENCE: What = "difference of effects"
SCORE: What = "score"

UNSET = "not set"
OF_THE_CASE = ("backbone", "dataset", "text_column", "label_column")
"""How the flags begin that may differ between cases that are compared."""


@dataclass(frozen=True)
class Case:
    """One case; link: the way to its folder.

    Its name is that of its folder, which a study set aside by `--fresh` does not share with its successor.
    """

    name: str
    evidence: Evidence

    @property
    def request(self) -> RequestRecord:
        return self.evidence.request

    @property
    def study(self) -> StudyFile:
        return self.evidence.loaded.study

    @property
    def sort(self) -> tuple[str, str]:
        """Metric and split: what cases must share for their effects to be of one kind."""
        return self.request.metric, self.evidence.split

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

    def seen(self, weights: Mapping[str, float]) -> Claim:
        """Return what the last analysis of the case sees of a comparison of its arms; without one, all there is."""
        metric, split = self.sort
        claim = Claim(weights=dict(weights), metric=metric, split=split)
        analyses = self.evidence.analyses
        return self.evidence.family.seen(claim, analyses[-1] if analyses else None)


@dataclass(frozen=True)
class Across:
    """What was found across cases.

    Attributes:
        groups: Those compared with each other, the reference first.
        left_out: Those that are not, with the reason.
        claims: One for each comparison.
    """

    groups: Sequence[Sequence[Case]]
    left_out: Sequence[tuple[str, str]]
    claims: Sequence[AcrossClaim]

    @property
    def cases(self) -> list[Case]:
        return [case for group in self.groups for case in group]


@dataclass(frozen=True, kw_only=True)
class AcrossClaim(Claim):
    """A comparison across cases and what is claimed of it.

    Attributes:
        what: The mean of an effect over cases, the difference of an effect between two cases, or of their scores.
        case, reference: The two cases; `ALL` and "" for a mean.
        cases: All that it is of.
        by_case: Of a mean, what each of them has on the seeds that all have.
    """

    what: What
    case: str
    reference: str
    cases: tuple[str, ...]
    by_case: tuple[float, ...] = ()

    def as_json(self) -> JsonObject:
        """Return the fields of the file format: those of a claim, and of which cases it is."""
        about = {"case": self.case, "reference": self.reference, "cases": list(self.cases), "what": self.what}
        return {**super().as_json(), "kind": "across", **about}


def across(cases: Iterable[Case]) -> Across:
    """Return what can be claimed across cases: of all that were run alike, in the order in which they began."""
    groups, left_out = run_alike(cases)
    claims = list[AcrossClaim]()
    for group in groups:
        seen = [*_effects(group), *_scores(group)]
        primary = {place: claim for place, claim in enumerate(seen) if claim.primary}
        claims += judged(seen, [(PLANNED, primary)], PLANNED)
    return Across(groups, left_out, claims)


def run_alike(cases: Iterable[Case]) -> tuple[list[list[Case]], list[tuple[str, str]]]:
    """Return the groups of cases that were run alike, as they began, and the others with the first flag that differs.

    The group of most cases is the first; where no two are alike it is one case. Each of the others is told from the
    group that it is most like.
    """
    groups: list[tuple[JsonObject, list[Case]]] = []
    for case in sorted(cases, key=lambda case: case.began):
        flags: JsonObject = {
            name: value
            for name, value in case.study.identity.items()
            if value not in (None, []) and not name.startswith(OF_THE_CASE)
        }
        alike = next((group for own, group in groups if own == flags), [])
        if not alike:
            groups.append((flags, alike))
        alike.append(case)
    groups.sort(key=lambda group: -len(group[1]))
    compared = [one for place, one in enumerate(groups) if place == 0 or len(one[1]) > 1]
    left_out = []
    for own, (case, *others) in groups[1:]:
        if not others:
            wanted, (reference, *_) = min(compared, key=lambda group: len(_unlike(group[0], own)))
            flag = _unlike(wanted, own)[0]
            why = f"{flag} is {own.get(flag, UNSET)} there and {wanted.get(flag, UNSET)} in {reference.name}"
            left_out.append((case.name, why))
    return [group for _, group in compared], left_out


def _unlike(flags: JsonObject, others: JsonObject) -> list[str]:
    return [flag for flag in {**flags, **others} if flags.get(flag) != others.get(flag)]


def _effects(cases: Sequence[Case]) -> list[AcrossClaim]:
    """Return the primary comparisons that all cases of one sort share: their means, then their differences."""
    means, differences = [], []
    for of_sort in _groups(cases, lambda case: case.sort):
        planned = [{item.key: item for item in case.request.comparisons if item.primary} for case in of_sort]
        for key in planned[0]:
            if all(key in own for own in planned):
                effects = [(case, own[key]) for case, own in zip(of_sort, planned, strict=True)]
                means.append(_seen(MEAN, effects, [1 / len(effects)] * len(effects)))
                differences += [_seen(DIFFERENCE, [effects[0], other], [-1.0, 1.0]) for other in effects[1:]]
    return [*means, *differences]


def _scores(cases: Sequence[Case]) -> list[AcrossClaim]:
    """Return each backbone's score against the first one's on the same data: the control's, then other common arms'."""
    seen = []
    named = [case for case in cases if case.trained_on[1]]
    for first, *others in _groups(named, lambda case: (case.trained_on[1], case.sort)):
        for case in others:
            if case.trained_on == first.trained_on:
                continue
            control, own = case.request.control, {arm.name for arm in case.request.arms}
            pairs = {control: first.request.control}
            pairs |= {arm.name: arm.name for arm in first.request.arms if arm.name in own - {control}}
            for arm, other in pairs.items():
                if arm and other:
                    score = Comparison(arm=arm, control=other, weights={arm: 1.0}, primary=arm == control)
                    of_first = replace(score, weights={other: 1.0})
                    seen.append(_seen(SCORE, [(first, of_first), (case, score)], [-1.0, 1.0]))
    return seen


def _seen(what: What, parts: Sequence[tuple[Case, Comparison]], factors: Sequence[float]) -> AcrossClaim:
    """Return what there is of a comparison across cases: of a mean by seed, of two cases all that each has.

    Args:
        what: It is.
        parts: The cases, the reference first, and what is compared in each; it is named as in the last one.
        factors: What each is multiplied with; their sum is what is compared.
    """
    cases, comparisons = zip(*parts, strict=True)
    metric, split = cases[0].sort
    weights, scores, seen = dict[str, float](), [], []
    for (case, comparison), factor in zip(parts, factors, strict=True):
        own = {arm: factor * weight for arm, weight in comparison.weights.items()}
        seen.append(case.seen(own))
        weights |= {f"{case.name}/{arm}": weight for arm, weight in own.items()}
        scores += [abs(score) for arm in own for score in case.evidence.scores.get(arm, {}).values()]
    by_case = {case.name: one.values for case, one in zip(cases, seen, strict=True)}
    values = differences(by_case, dict.fromkeys(by_case, 1.0)) if what == MEAN else {}
    samples = [[*own.values()] for own in ([values] if what == MEAN else by_case.values())]
    n, withheld = min(map(len, samples)), any(one.withheld for one in seen)
    estimate, effects = None, [case.request.smallest_effect for case in cases]
    if n >= FIRST and not withheld and all(case.evidence.analyses for case in cases):
        smallest, scale = None if None in effects else min(filter(None, effects), default=0.0), max(scores)
        estimate = (
            paired(samples[0], smallest, scale=scale)
            if what == MEAN
            else unpaired(samples, smallest, scale=scale)
        )
    of_cells = replace(comparisons[-1], weights=weights)
    return AcrossClaim(
        **vars(of_cells if what != DIFFERENCE else replace(of_cells, primary=False)),
        metric=metric,
        split=split,
        n=n,
        difference=sum(map(fmean, samples)) if n else None,
        estimate=estimate,
        values=values,
        tie=what == MEAN and all(one.tie for one in seen),
        withheld=withheld,
        what=what,
        case=ALL if what == MEAN else cases[-1].name,
        reference="" if what == MEAN else cases[0].name,
        cases=tuple(case.name for case in cases),
        by_case=tuple(len(seen) * fmean(one.values[seed] for seed in values) for one in seen if values),
    )


def _groups(cases: Iterable[Case], key: Callable[[Case], Hashable]) -> list[list[Case]]:
    """Return the groups of at least two cases with one key, in order."""
    groups: dict[Hashable, list[Case]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return [group for group in groups.values() if len(group) > 1]
