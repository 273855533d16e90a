"""What a study found, as objects that its sentences are made of: the headline, factors, what differs, what is open.

Which verdicts are told, in which order and with which numbers, is decided here; `finding.md.j2` has the words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from scipy import stats

from adalayers.comparisons import FIRST
from adalayers.results.study_file import DatasetRecord, RequestRecord
from adalayers.tasks.metrics import bounds, smallest_effect
from reports import names, words
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence, once
from reports.evidence.holm import BETTER, OPEN, WORSE
from reports.evidence.omnibus import MATTERS
from reports.reading.factors import known
from reports.reading.frames import numbers
from reports.tables import arms as tables

NEAR_FLOOR = 0.2
"""Share of the gap from a trivial model to a perfect score, closed by the best arm, below which that comes first."""
OF_ANSWERS = ("matthews", "f1_macro")
"""Scores of answers other than accuracy: one that ranks may be good where no answer changes."""
ALL = 0.9
"""Share of the confirmed trials whose best epoch is the last one allowed, from which on all are under-trained."""
UNIFORM_SHARE = 0.995
"""Share of the uniform mix's entropy from which on a mix has stayed uniform."""
GROUPS = {"single": "single layer"}
"""Role -> what an arm of it is called."""
GOES_WITH = 0.6
"""Size of a rank correlation over the cells from which on scores are said to go with the entropy of the mix."""


@dataclass(frozen=True)
class Found:
    """A comparison as it is told.

    Attributes:
        claim: What is claimed of it.
        name: What it is called; of two arms, the one that is compared with the reference.
        reference: The other arm; "" where levels of factors are compared.
        verdict: `BETTER`, `WORSE`, `SAME`, `TIE` or `OPEN`.
        scores: Mean scores of its two sides, over the seeds that all arms share.
        group: What the arm is the best of, on validation ("single layer"); "" for an arm that is named.
    """

    claim: Claim
    name: str
    reference: str
    verdict: str
    scores: tuple[float, float] | None = None
    group: str = ""

    @property
    def size(self) -> float:
        return abs(self.claim.difference or 0.0)


@dataclass(frozen=True)
class Finding:
    """What the first paragraph says.

    Attributes:
        score: What scores are called: "test entity F1".
        control: The arm that others are compared with, in words.
        fewest, pairs: The fewest and the most seeds that a comparison rests on.
        delta: The smallest difference of interest.
        floor, under_trained, nothing: What comes before all else: scores at the floor; the share of trials whose best
            epoch is the last, where it is nearly all; arms that learned nothing, in words.
        uniform: Whether the mix that the control learns stayed uniform.
        headline: What the study is about: the comparisons that it names.
        wholes: Factors as wholes, of a complete factorial, and those of which two may depend on each other (of_two):
            name, symbols, verdict (None where nothing says), p_adjusted.
        factors: The levels of factors that are compared, by factor.
        rest: Other planned comparisons of arms.
        with_entropy: Rank correlation, over the cells, of the score with the entropy of the mix, where it is large.
        halves: Of a study of what trained models can do without: the first arm and the last, and what they lose without
            either half of the layers, in per cent of its score.
    """

    request: RequestRecord
    score: str
    control: str
    fewest: int
    pairs: int
    delta: float | None
    floor: Mapping[str, Any] | None
    under_trained: float | None
    nothing: tuple[str, ...]
    arms: int
    uniform: bool
    headline: tuple[Found, ...]
    wholes: tuple[Mapping[str, Any], ...]
    factors: dict[str, tuple[Found, ...]]
    rest: tuple[Found, ...]
    with_entropy: float | None = None
    learned: bool = False
    halves: tuple[tuple[str, Mapping[str, float]], ...] = ()

    @property
    def all(self) -> tuple[Found, ...]:
        """All planned comparisons."""
        return (*self.headline, *(found for level in self.factors.values() for found in level), *self.rest)

    @property
    def few(self) -> bool:
        """Whether there are too few seeds for any verdict."""
        return 0 < self.pairs < FIRST

    @property
    def some_matters(self) -> bool:
        """Whether some factor matters as a whole."""
        return any(effect["verdict"] == MATTERS for effect in self.wholes)

    @property
    def factors_differ(self) -> bool:
        """Whether some level of a factor differs from its reference."""
        return any(found.verdict in (BETTER, WORSE) for level in self.factors.values() for found in level)

    @property
    def mostly_nothing(self) -> bool:
        """Whether the control, or half of the arms, learned nothing: then that comes first."""
        return self.control in self.nothing or 2 * len(self.nothing) >= self.arms > 0

    @property
    def decided(self) -> int:
        return sum(found.verdict != OPEN for found in self.all)

    @property
    def differing(self) -> int:
        return sum(found.verdict in (BETTER, WORSE) for found in self.all)

    def of(self, verdict: str) -> list[Found]:
        """Return what has a verdict, outside the headline, the largest first."""
        others = self.all[len(self.headline) :]
        return sorted((found for found in others if found.verdict == verdict), key=lambda found: -found.size)

    def phrases(self, founds: Sequence[Found]) -> list[str]:
        """Return what comparisons are called, the levels of a factor that share a reference in one phrase."""
        groups: dict[object, list[Found]] = {}
        for found in founds:
            change = found.claim.changes[0] if len(found.claim.changes) == 1 and not found.reference else None
            key = (change.factor, str(change.reference)) if change else found.claim.key
            groups.setdefault(key, []).append(found)
        phrases = []
        for own in groups.values():
            own.sort(key=self.all.index)  # as planned
            changes = [found.claim.changes[0] for found in own] if len(own) > 1 else []
            against = "" if own[0].reference in ("", self.control) else f" against {own[0].reference}"
            phrases.append(names.alternatives(changes, self.request) if changes else own[0].name + against)
        return phrases


@once
def finding(evidence: Evidence) -> Finding:
    request = evidence.request
    planned = evidence.planned
    arms = [claim for claim in planned if names.sides(claim, request)]
    headline = [] if evidence.grid_factors else _headline(evidence)
    told = {found.claim.key for found in headline}
    factors: dict[str, list[Found]] = {}
    for claim in planned:
        if claim not in arms:
            symbol = names.symbol(claim.changes[0].factor, request)
            factors.setdefault(symbol, []).append(found_of(claim, evidence))
    return Finding(
        request=request,
        score=f"{evidence.split_name} {words.short(request.metric)}",
        control=names.arm(request.control, request),
        pairs=max((claim.n for claim in planned), default=0),
        fewest=min((claim.n for claim in planned if claim.n), default=0),
        delta=request.smallest_effect,
        floor=floor(evidence),
        under_trained=under_trained(evidence),
        nothing=tuple(names.arm(arm, request) for arm in evidence.learned_nothing),
        arms=len(evidence.scores),
        uniform=stayed_uniform(evidence),
        learned=request.control in evidence.learned,
        headline=tuple(headline),
        wholes=tuple(_wholes(evidence)),
        factors={name: tuple(own) for name, own in factors.items()},
        rest=tuple(found_of(claim, evidence) for claim in arms if claim.key not in told),
        with_entropy=_with_entropy(evidence),
        halves=tuple(_halves(evidence)),
    )


def found_of(claim: Claim, evidence: Evidence, group: str = "") -> Found:
    request, scores = evidence.request, evidence.sides_of(claim)
    if arms := names.sides(claim, request):
        name, reference = (names.arm(arm, request) for arm in arms)
    else:
        name, reference = names.compared(claim, request), ""
    return Found(claim, name, reference, claim.told, scores, group)


def _headline(evidence: Evidence) -> list[Found]:
    """Return the comparisons that the study names, by arm or by role; without, the best other arm on validation."""
    request, roles = evidence.request, {arm.name: arm.role for arm in evidence.request.arms}
    sides = [(names.sides(claim, request), claim) for claim in evidence.planned]
    by_arm = {both[0]: claim for both, claim in sides if both and both[1] == request.control}
    means = evidence.arms.set_index("arm")["val_mean"].dropna()
    chosen = {str(arm): float(mean) for arm, mean in means.items() if arm in by_arm}
    named = [
        (GROUPS.get(wanted, wanted), [arm for arm in chosen if wanted in (arm, roles[arm])])
        for wanted in request.headline
    ]
    groups = [(group, own) for group, own in named if own] or [(f"of {len(chosen)} other arms", [*chosen])]
    best = [(max(own, key=chosen.__getitem__), group if len(own) > 1 else "") for group, own in groups if own]
    return [found_of(by_arm[arm], evidence, group) for arm, group in best]


def _wholes(evidence: Evidence) -> Iterable[Mapping[str, Any]]:
    request = evidence.request
    for effect in evidence.omnibus:
        symbols = " and ".join(names.symbol(name, request) for name in effect.factors)
        of_two, meaning = len(effect.factors) > 1, known(effect.factors[0], request.factors).meaning
        name = symbols if of_two or not meaning else f"{symbols} ({meaning})"
        told = {"verdict": effect.verdict, "p_adjusted": effect.p_adjusted or 0.0, "of_two": of_two}
        yield {"name": name, "symbols": symbols, **told}


def _halves(evidence: Evidence) -> Sequence[tuple[str, Mapping[str, float]]]:
    """Return what the first arm and the last lose without either half of their layers."""
    request, changes = evidence.request, evidence.variants
    spans = {variant.without: name for name, variant in request.variants.items() if variant.renormalise}
    layers = sorted({layer for span in spans for layer in span})
    middle = len(layers) // 2
    halves = [span for span in (tuple(layers[:middle]), tuple(layers[middle:])) if span in spans]
    if "layer_spans" not in request.parts or len(halves) < 2:
        return []
    found = []
    for arm, own in changes.groupby("arm", sort=False):
        change = own.set_index("variant")["mean"]
        lost = {f"{span[0]} to {span[-1]}": -100 * float(change[spans[span]]) for span in halves}
        found.append((names.arm(str(arm), evidence.request), lost))
    return found[:: max(1, len(found) - 1)]


def _with_entropy(evidence: Evidence) -> float | None:
    cells = evidence.grid.dropna(subset=["mean", "entropy"])
    alike = cells["entropy"].max() - cells["entropy"].min() < 0.1 * math.log(2) or cells["mean"].nunique() < 2
    if len(cells) < FIRST or alike:
        return None
    correlation = float(stats.spearmanr(cells["mean"], cells["entropy"]).statistic)
    return correlation if abs(correlation) >= GOES_WITH else None


def stayed_uniform(evidence: Evidence) -> bool:
    """Whether the control learns its mix, and that mix is the uniform one but in name."""
    control, states = evidence.request.control, evidence.environment.hidden_states
    if control not in evidence.learned or len(states) < 2:
        return False
    rows = tables.confirmed(evidence.trials)
    entropy = float(numbers(rows[rows["arm"] == control], "mix/entropy").mean())
    return entropy >= UNIFORM_SHARE * math.log(len(states))


def floor(evidence: Evidence) -> Mapping[str, Any] | None:
    """Return how near the best arm is to a trivial model, where it is: what helps once a task is learned may differ.

    closed: the share of the way from a trivial model to a perfect score; trivial: the former's score
    accuracies: least and largest mean of an arm, where another score of answers selects; most: of one answer
    """
    dataset, metric = evidence.environment.dataset, evidence.request.metric
    trivial = dataset.baseline.get(evidence.split)
    means = evidence.arms["mean"].dropna()
    closed = share_of_the_way(None if means.empty else float(means.max()), trivial, metric)
    if closed is None:
        return None
    _, most = majority(dataset, evidence.split_name)
    by_arm = tables.values(evidence.trials, f"{evidence.split}/accuracy").values()
    own = [fmean(by_seed.values()) for by_seed in by_arm] if metric in OF_ANSWERS and most else []
    told = {"closed": closed, "trivial": trivial, "accuracies": (min(own), max(own)) if own else None}
    # Where one class is nearly all, a tenth of what it leaves.
    at_floor = bool(own) and max(own) < most + min(smallest_effect("accuracy"), 0.1 * (1 - most))
    return {**told, "most": most} if closed < NEAR_FLOOR or at_floor else None


def majority(dataset: DatasetRecord, split: str) -> tuple[str, float]:
    """Return the most frequent class of a split and its share; ("", 0) where no class is known."""
    counts = dataset.distribution.get(split, {}) if dataset.labels else {}
    if not sum(counts.values()):
        return "", 0.0
    most = max(counts, key=counts.__getitem__)
    return most, counts[most] / sum(counts.values())


def share_of_the_way(score: float | None, trivial: float | None, metric: str) -> float | None:
    """Return (score - trivial) / (best - trivial); None where it is not tested, or the trivial model is perfect."""
    limits = bounds(metric)
    if score is None or trivial is None or limits is None or limits[1] <= trivial:
        return None
    return (score - trivial) / (limits[1] - trivial)


def under_trained(evidence: Evidence) -> float | None:
    """Return the share of trials whose best epoch is the last allowed, where it is nearly all."""
    rows = tables.at_last_epoch(evidence.trials, evidence.request)
    share = float(rows["last"].mean()) if len(rows) else 0.0
    return share if share >= ALL else None
