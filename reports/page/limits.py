"""What limits a study's findings: rules in the order in which they matter, each with its size where it applies.

A rule returns what its sentence is made of, or None; `templates/limits.md.j2` has a macro of the rule's name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from scipy import special

from adalayers.comparisons import FIRST
from adalayers.escaping import prose
from adalayers.results.other_studies import UNCOMMITTED
from adalayers.results.trial_row import TAKEN_COMMIT, TAKEN_FROM
from reports import names
from reports.evidence.claims import Claim, differences
from reports.evidence.evidence import Evidence, once
from reports.evidence.planning import chance, resolution
from reports.page.finding import finding, majority, under_trained
from reports.reading import space
from reports.reading.factors import column
from reports.reading.frames import numbers, texts
from reports.render import markdown
from reports.tables import arms as tables
from reports.words import number

POWER = 0.8
"""Chance of finding a difference of one standard deviation below which seeds are few."""
TRUNCATED_SHARE = 0.05
"""Share of a split's examples cut to the maximum length above which that is said."""
UNEVEN = 0.8
"""Share of one class above which accuracy counts little else."""
LATE = 0.8
"""Share of an arm's trials whose best epoch is the last one allowed, from which on that is said."""
HEAVY, RARE = 0.5, 0.01
"""Share of a comparison's variance that one seed holds above which that is said, where normal differences show as
large a share as seldom as the second says: of six, the largest holds more than half of it in 42% of samples."""
UNEQUAL = 1.2
"""Times the trained weights of another arm above which that is said."""

Rows = Mapping[str, Any]


@once
def limits(evidence: Evidence) -> list[tuple[str, Rows]]:
    """Return the rules that apply, what matters most first, each with what its sentence says."""
    found = [(rule.__name__, rule(evidence)) for rule in RULES]
    return [(name, rows) for name, rows in found if rows is not None]


def _named(claims: Sequence[Claim], evidence: Evidence) -> list[str]:
    return [names.compared(claim, evidence.request) for claim in claims]


def _arms(arms: Iterable[Any], evidence: Evidence) -> list[str]:
    return [names.arm(str(arm), evidence.request) for arm in dict.fromkeys(arms) if arm]


def withheld(evidence: Evidence) -> Rows | None:
    trials = evidence.loaded.withheld
    return {"trials": sorted(trials.items())} if trials else None


def without_result(evidence: Evidence) -> Rows | None:
    confirmed = evidence.trials[evidence.trials["stage"] == "confirm"]
    lost = confirmed[confirmed["status"].isin(["failed", "diverged"])]
    left = int((confirmed["status"] == "unfinished").sum())
    if not len(lost) and not left:
        return None
    statuses = {status: int((lost["status"] == status).sum()) for status in ("failed", "diverged")}
    return {"lost": statuses, "arms": _arms(lost["arm"], evidence), "unfinished": left}


def validation(evidence: Evidence) -> Rows | None:
    tested = "test" in evidence.environment.dataset.examples
    return {} if evidence.claims and not tested and evidence.split != "test" else None


def late(evidence: Evidence) -> Rows | None:
    """Some arms were best at the last epoch allowed, others before: the order of arms may change."""
    rows = tables.at_last_epoch(evidence.trials, evidence.request)
    last = rows["last"].groupby(rows["arm"]).mean()
    arms = list(last.index[last >= LATE])
    if not arms or last.min() >= LATE / 2 or under_trained(evidence):  # all alike
        return None
    return {
        "arms": _arms(arms, evidence),
        "share": last.min(),
        "other": names.arm(str(last.idxmin()), evidence.request),
    }


def _undecided(evidence: Evidence) -> list[Claim]:
    """Return the planned comparisons that are open though all their rows are believed."""
    return [claim for claim in evidence.planned if not (claim.decided or claim.withheld)]


def power(evidence: Evidence) -> Rows | None:
    """Seeds are few for what is open."""
    undecided = _undecided(evidence)
    spreads = [claim.sd for claim in undecided if claim.sd]
    if not spreads:
        return None
    middle = sorted(undecided, key=lambda claim: claim.n)[(len(undecided) - 1) // 2]
    if not middle.level or middle.n < FIRST:
        return None
    found = chance(middle.n, 1.0, middle.level)
    return {"n": middle.n, "size": median(spreads), "chance": found} if found < POWER else None


def too_coarse(evidence: Evidence) -> dict[tuple[object, ...], float]:
    """Return the comparisons that no number of seeds decides for other examples, by key, each with its resolution.

    That is what the choice of test examples alone leaves open, where it is more than the smallest effect.
    """
    variances = evidence.example_variances
    halves = {
        claim.key: resolution(variances[claim.key], claim.level)
        for claim in _undecided(evidence)
        if claim.level and claim.key in variances
    }
    return {
        key: half for key, half in halves.items() if half > (evidence.request.smallest_effect or math.inf)
    }


def examples(evidence: Evidence) -> Rows | None:
    """Decided on these test examples alone, or too few of them for what is open."""
    here = [claim for claim in evidence.planned if claim.on_these_examples]
    halves, effect = list(too_coarse(evidence).values()), evidence.request.smallest_effect or 0.0
    if not here and not halves:
        return None
    return {
        "split": evidence.split_name,
        "n": evidence.environment.dataset.examples.get(evidence.split_name, 0),
        "here": _named(here, evidence),
        "halves": (min(halves), max(halves)) if halves else None,
        "many": len(halves),
        "effect": effect,
        "times": math.ceil((max(halves) / effect) ** 2) if halves and effect else 0,
    }


def without_examples(evidence: Evidence) -> Rows | None:
    """Some intervals do not cover the choice of examples."""
    why = evidence.resampled[1]
    return {"split": evidence.split_name, "why": [markdown(prose(one)) for one in why]} if why else None


def shared(evidence: Evidence) -> Rows | None:
    """Examples that also stand in train, and the first difference that the page tells without them."""
    dataset, split = evidence.environment.dataset, evidence.split_name
    if not (n := dataset.shared.get(split)):
        return None
    found, resampled = finding(evidence), evidence.resampled[0] if evidence.shared else {}
    told = [*found.headline, *sorted(found.all, key=lambda one: -one.size)]
    first = next((one for one in told if one.claim.key in resampled and not one.claim.tie), None)
    difference = resampled[first.claim.key].without if first else None
    changed = first is not None and number(difference) != number(first.claim.difference)
    rows = {"n": n, "of": dataset.examples.get(split), "split": split}
    return rows | {"first": first, "difference": difference, "changed": changed}


def parameters(evidence: Evidence) -> Rows | None:
    """Arms train unequal numbers of weights."""
    rows = tables.confirmed(evidence.trials)
    size = numbers(rows, "parameters").groupby(rows["arm"]).mean().dropna()
    if len(size) < 2 or size.max() <= UNEQUAL * size.min():
        return None
    least, most = _arms([size.idxmin(), size.idxmax()], evidence)
    return {"low": size.min(), "low_arm": least, "high": size.max(), "high_arm": most}


def rate(evidence: Evidence) -> Rows | None:
    """One learning rate for all arms, that nothing tuned, but for those whose rate a search chose."""
    request, rows = evidence.request, tables.confirmed(evidence.trials)
    if len(evidence.rates) or request.rate is None or len(request.arms) < 2:
        return None
    rates = numbers(rows, column("lr"))
    searched = rows.loc[rates.notna() & (rates != request.rate), "arm"]
    return {"set": "lr" in request.set, "searched": _arms(searched, evidence)}


def own_rates(evidence: Evidence) -> Rows | None:
    """Arms that were trained with other rates than others, each chosen on one seed."""
    kept = evidence.rates[evidence.rates["kept"].astype(bool)]
    by_rate = [(rate, _arms(arms, evidence)) for rate, arms in kept.groupby("lr")["arm"]]
    return {"by_rate": by_rate} if len(by_rate) > 1 else None


def edge_of_rates(evidence: Evidence) -> Rows | None:
    """Arms whose rate lies at an end of those that were tried."""
    rows = evidence.rates
    at_end = rows.loc[rows["edge"] != "", "arm"]
    return {"arms": _arms(at_end, evidence), "of": rows["arm"].nunique()} if len(at_end) else None


def taken(evidence: Evidence) -> Rows | None:
    """Trials that other studies trained: what these found and what is found here rest on the same."""
    rows = tables.confirmed(evidence.trials)
    sources = Counter(filter(None, texts(rows, TAKEN_FROM)))
    return {"sources": sources.most_common(), "of": len(rows)} if sources else None


def heavy(evidence: Evidence) -> Rows | None:
    """Comparisons whose variance is mostly that of one seed (Grubbs' test, as the share of that seed)."""
    found = []
    for claim in evidence.planned:
        if claim.n < FIRST or not claim.sd or claim.arms & {*evidence.learned_nothing}:
            continue
        mean = fmean(claim.values.values())
        squares = {seed: (value - mean) ** 2 for seed, value in claim.values.items()}
        seed = max(squares, key=squares.__getitem__)
        share, n = squares[seed] / sum(squares.values()), claim.n
        t = float(special.stdtrit(n - 2, 1 - RARE / (2 * n)))
        if share > max(HEAVY, (n - 1) / n * t**2 / (n - 2 + t**2)):
            found.append((names.compared(claim, evidence.request), seed, share))
    return {"found": found} if found else None


def code(evidence: Evidence) -> Rows | None:
    """Confirmed trials of several commits or machines, or of code that nobody can have again."""
    study = evidence.loaded.study
    runs = [run for run in study.runs.history if run.confirmed]
    commits = [text for text in texts(evidence.trials, TAKEN_COMMIT) if text]
    dirty = any(run.dirty for run in runs) or any(UNCOMMITTED in text for text in commits)
    known = {run.commit for run in runs if run.commit}
    known |= {text.partition(" ")[0] for text in commits if not text.startswith("unknown")}
    machines = sorted({run.machine for run in runs if run.machine})
    mixed = {"commits": len(known), "machines": machines if len(machines) > 1 else []}
    return {"dirty": dirty, **mixed} if dirty or len(known) > 1 or len(machines) > 1 else None


def stopped_early(evidence: Evidence) -> Rows | None:
    """Seeds were added until comparisons were decided."""
    return {} if any(run.until_decided for run in evidence.loaded.study.runs.history) else None


def after_decision(evidence: Evidence) -> Rows | None:
    """Seeds that were run after a comparison was decided put its mean outside the interval of its claim."""
    found = []
    for claim in evidence.planned:
        by_seed = differences(evidence.scores, claim.weights).values()
        if claim.decided and by_seed and claim.low is not None and claim.high is not None:
            mean = fmean(by_seed)
            found += [] if claim.low <= mean <= claim.high else [claim]
    return {"names": _named(found, evidence)} if found else None


def classes(evidence: Evidence) -> Rows | None:
    """Accuracy is mostly that on one class."""
    label, share = majority(evidence.environment.dataset, evidence.split_name)
    if evidence.request.metric != "accuracy" or share <= UNEVEN:
        return None
    return {"label": label, "share": share, "split": evidence.split_name}


def truncated(evidence: Evidence) -> Rows | None:
    """Splits many of whose examples were cut to the maximum length; of unknown size any cut is one of all."""
    dataset = evidence.environment.dataset
    shares = {
        split: cut.get("examples", 0) / (dataset.examples.get(split) or cut.get("examples") or 1)
        for split, cut in dataset.truncated.items()
    }
    shown = {split: share for split, share in shares.items() if share > TRUNCATED_SHARE}
    return {"shares": shown, "length": evidence.request.data.max_length} if shown else None


def as_read(evidence: Evidence) -> Rows | None:
    """What a reader may not expect of how the data was read."""
    notes = evidence.environment.dataset.notes
    return {"notes": notes} if notes else None


def edges(evidence: Evidence) -> Rows | None:
    """What the best trial of a search has at an end of what was tried."""
    found = space.edges(evidence.trials, evidence.loaded.study)
    return {"edges": found} if found else None


RULES: tuple[Callable[[Evidence], Rows | None], ...] = (
    withheld,
    without_result,
    validation,
    late,
    own_rates,
    examples,
    power,
    code,
    rate,
    shared,
    parameters,
    edge_of_rates,
    heavy,
    taken,
    after_decision,
    edges,
    classes,
    truncated,
    as_read,
    without_examples,
    stopped_early,
)
"""In the order in which they matter; the page shows the first few that apply."""
