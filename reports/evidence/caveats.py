"""The report judges itself: caveats that the files give reason for, and what to do about each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import pandas as pd
from scipy import special

from adalayers.comparisons import FIRST
from adalayers.results.other_studies import TAKEN_COMMIT, UNCOMMITTED
from adalayers.tasks.metrics import smallest_effect
from reports.evidence.claims import Claim, differences
from reports.evidence.evidence import Evidence
from reports.evidence.holm import BETTER, WORSE
from reports.evidence.planning import chance
from reports.evidence.resampling import NEIGHBOURS
from reports.reading.data import cuts, shared
from reports.reading.factors import column, levels, numeric
from reports.reading.frames import numbers, texts
from reports.tables import arms as tables
from reports.tables.distances import share_of_the_way
from reports.words.labels import SPLITS
from reports.words.text import code, count, escape, number, several

SERIOUS, CAUTION, NOTE = "serious", "caution", "note"
POWER = 0.8
"""Chance of finding a difference of one SD below which a study has too few seeds."""
TRUNCATED_SHARE = 0.05
"""Share of a split's examples cut to the maximum length above which it is said."""
UNEVEN = 0.8
"""Share of one class above which accuracy counts little else."""
NEAR_BASELINE = 0.2
"""Share of the gap from a trivial model to a perfect score, closed by the best arm, below which that is said."""
OF_ANSWERS = ("matthews", "f1_macro")
"""Scores of answers other than accuracy: one that ranks may be good where no answer changes."""
LATE = 0.8
"""Share of an arm's trials whose best epoch is the last one allowed, from which on that is said."""
UNIFORM_ENTROPY_SHARE = 0.995
"""Share of the uniform mix's entropy from which on a mix is effectively uniform."""
HEAVY, RARE = 0.5, 0.01
"""Share of a comparison's variance that one seed holds above which that is said, where normal differences show as
large a share as seldom as the second says: of six, the largest holds more than half of it in 42% of samples."""
WIDER = 1.2
"""Times the standard error over sentences drawn one by one of that over blocks of neighbours above which that is said,
where independent sentences show as much as seldom as `RARE` says, over all comparisons."""
UNEQUAL = 1.5
"""Times the budget of another arm above which that is said."""


@dataclass(frozen=True)
class Caveat:
    """One caveat: how much it matters, what was found and what to do about it, as Markdown.

    on_top: whether the page says it above everything else
    """

    severity: str
    finding: str
    advice: str
    on_top: bool = False


def name(claim: Claim) -> str:
    """Return what a comparison is called, as code."""
    arm, _, condition = claim.names
    return code(f"{arm} at {condition}" if condition else arm)


def _contradicted(claim: Claim, scores: Mapping[str, Mapping[int, float]]) -> bool:
    """Whether the mean over all seeds that there are lies outside a claim's interval."""
    by_seed = differences(scores, claim.weights).values()
    if not by_seed or claim.low is None or claim.high is None:
        return False
    return not claim.low <= sum(by_seed) / len(by_seed) <= claim.high


def caveats(evidence: Evidence) -> list[Caveat]:
    """Return all that the checks find, the most serious first."""
    order = (SERIOUS, CAUTION, NOTE)
    return sorted(
        (caveat for check in CHECKS for caveat in check(evidence)),
        key=lambda caveat: order.index(caveat.severity),
    )


def _state(evidence: Evidence) -> Iterable[Caveat]:
    runs = evidence.loaded.study.runs
    if runs.smoke:
        yield Caveat(
            SERIOUS,
            "A smoke run: a few trials and examples.",
            "Run the study without `--smoke`.",
            on_top=True,
        )
    if runs.state != "finished":
        yield Caveat(
            SERIOUS,
            "The study is not known to have finished, so arms or seeds may be missing.",
            "Run the same command again: it goes on.",
            on_top=True,
        )


def _code(evidence: Evidence) -> Iterable[Caveat]:
    study = evidence.loaded.study
    runs = [run for run in study.runs.history if run.confirmed]
    taken = [text for text in texts(evidence.trials, TAKEN_COMMIT) if text]
    commits = {run.commit for run in runs if run.commit} | {
        text.partition(" ")[0] for text in taken if not text.startswith("unknown")
    }
    if (
        study.environment.git.dirty
        or any(run.dirty for run in runs)
        or any(UNCOMMITTED in text for text in taken)
    ):
        yield Caveat(
            SERIOUS,
            "Code with uncommitted changes made some or all results: nobody can repeat them exactly.",
            "Commit, and run the study again with `--fresh`.",
            on_top=bool(study.environment.git.dirty),
        )
    if len(commits) > 1:
        named = several([code(commit[:10]) for commit in sorted(commits)])
        yield Caveat(
            CAUTION,
            f"Confirmed trials of {len(commits)} commits are mixed ({named}): a difference may be one of code.",
            "See what changed between them, or run it again with `--fresh`.",
        )
    machines = sorted({run.machine for run in runs if run.machine})
    if len(machines) > 1:
        named = escape("; ".join(machines))
        yield Caveat(
            CAUTION,
            f"Confirmed trials of {len(machines)} machines are mixed ({named}): dropout draws other numbers there, so "
            "that pairs of one seed may be less alike.",
            "Run it again with `--fresh` on one of them.",
        )


def _scores(evidence: Evidence) -> Iterable[Caveat]:
    """Warn of rows that are not believed."""
    if withheld := evidence.loaded.withheld:
        named = several([f"{code(trial_id)}: {escape(why)}" for trial_id, why in sorted(withheld.items())])
        yield Caveat(
            SERIOUS,
            f"{count(len(withheld), 'confirmed trial')} {'is' if len(withheld) == 1 else 'are'} not believed, and "
            f"{'its' if len(withheld) == 1 else 'their'} comparisons withheld ({named}).",
            "Restore the files from a copy, or run the study again with `--fresh`.",
            on_top=True,
        )


def _seeds(evidence: Evidence) -> Iterable[Caveat]:
    claims = [claim for claim in evidence.claims if claim.primary]
    if undecided := [claim for claim in claims if not (claim.decided or claim.withheld)]:
        middle = sorted(undecided, key=lambda claim: claim.n)[(len(undecided) - 1) // 2]
        n, level = middle.n, middle.level
        found = chance(n, 1.0, level) if level and n >= FIRST else 0.0
        spreads = [claim.sd for claim in undecided if claim.sd]
        size = f" (here about {number(median(spreads), 2)})" if spreads else ""
        if n < FIRST:
            yield Caveat(
                SERIOUS,
                f"Too few seeds for what is open: a verdict takes {FIRST}, here are {n}.",
                "See the next run.",
            )
        elif found < POWER:
            yield Caveat(
                SERIOUS if found < POWER / 2 else CAUTION,
                f"Few seeds for what is open: {n} find a true difference of one standard "
                f"deviation over seeds{size} {found:.0%} of the time.",
                "See the next run.",
            )
    contradicted = [claim for claim in claims if claim.decided and _contradicted(claim, evidence.scores)]
    if contradicted:
        yield Caveat(
            CAUTION,
            f"Seeds run after a comparison was decided put its mean outside the interval of its claim: "
            f"{several(map(name, contradicted))}.",
            "Rare outcomes of training may have been missed; look at its seeds one by one.",
        )
    alike = [claim for claim in claims if claim.n > 1 and claim.sd == 0 and not claim.tie]
    if alike:
        yield Caveat(
            CAUTION,
            f"The same difference on every seed, so no interval: {several(map(name, alike))}.",
            "More seeds, or more examples, for scores that can differ.",
        )
    searched = set(numbers(_stage(evidence, "search"), "seed").dropna())
    both = searched & set(numbers(_stage(evidence, "confirm"), "seed").dropna())
    if both:
        yield Caveat(
            SERIOUS,
            f"Seed {several(f'{seed:.0f}' for seed in sorted(both))} of the search also confirms: the search's best "
            "was chosen for it.",
            "Confirm with fresh seeds.",
        )


def _pairs(evidence: Evidence) -> Iterable[Caveat]:
    confirmed = _stage(evidence, "confirm")
    # Primary ones alone: under `--until-decided`, arms that they need no more are given no more seeds.
    primary = [claim for claim in evidence.claims if claim.primary]
    most = max((claim.n for claim in primary), default=0)
    short = [claim for claim in primary if claim.n < most and not claim.decided]
    lost = confirmed[confirmed["status"].isin(["failed", "diverged"])]
    if left := int((confirmed["status"] == "unfinished").sum()):
        yield Caveat(
            CAUTION,
            f"{count(left, 'confirmed trial')} {'is' if left == 1 else 'are'} unfinished.",
            "The same command goes on with them.",
        )
    if len(lost):
        arms = several([code(arm) for arm in dict.fromkeys(lost["arm"]) if arm])
        yield Caveat(
            CAUTION,
            f"{count(len(lost), 'confirmed trial')} failed or diverged ({arms}): diverged ones have the trivial "
            "score, failed ones withhold verdicts.",
            "The same command tries them again.",
        )
    if short:
        yield Caveat(
            CAUTION,
            f"Not all comparisons have {most} pairs of seeds; fewer have {several(map(name, short))}.",
            "Run the same command again to fill them.",
        )


def _test(evidence: Evidence) -> Iterable[Caveat]:
    if evidence.claims and evidence.split != "test":
        yield Caveat(
            CAUTION,
            "Arms are compared on validation, on which each trial also chose its best epoch.",
            "Use a dataset with a test split.",
        )


def _data(evidence: Evidence) -> Iterable[Caveat]:
    dataset = evidence.loaded.study.environment.dataset
    truncated = cuts(dataset, above=TRUNCATED_SHARE)
    if truncated:
        yield Caveat(
            CAUTION,
            f"Many examples were cut to the maximum length: {several(truncated)}.",
            "Raise `--max-length`, or say that scores are of the start of texts.",
        )
    if dataset.notes:
        yield Caveat(
            CAUTION,
            f"How the data was read: {escape('; '.join(dataset.notes), 600)}.",
            "Change the files where that is not what was meant.",
        )
    duplicates = shared(dataset)
    if duplicates:
        yield Caveat(
            CAUTION,
            f"Some examples are also in the training data: {several(duplicates)}.",
            "Take them out of the data; a difference may lie in what models have memorised.",
        )


def _counts(evidence: Evidence) -> dict[str, float]:
    """Return how often each label stands in the split that arms are compared on; nothing where there are none."""
    dataset = evidence.loaded.study.environment.dataset
    return dict(dataset.distribution.get(evidence.split_name, {})) if dataset.labels else {}


def _classes(evidence: Evidence) -> Iterable[Caveat]:
    """Warn where accuracy is mostly that on one class."""
    counts = _counts(evidence)
    if evidence.plan.metric != "accuracy" or not sum(counts.values()):
        return
    most = max(counts, key=counts.__getitem__)
    share = counts[most] / sum(counts.values())
    if share > UNEVEN:
        yield Caveat(
            CAUTION,
            f"Classes are uneven: {share:.0%} of the labels of {SPLITS[evidence.split]} are {code(most)}, so accuracy "
            "says little of the others.",
            "Choose by `--metric f1_macro`, or weigh classes: `--set class_weights=balanced`.",
        )


def _near_baseline(evidence: Evidence) -> Iterable[Caveat]:
    """Warn where even the best arm is near the baseline: what helps once a task is learned may be another thing."""
    trivial = evidence.loaded.study.environment.dataset.baseline.get(evidence.split)
    means = evidence.arms["mean"].dropna()
    best = None if means.empty else float(means.max())
    closed = share_of_the_way(best, trivial, evidence.plan.metric)
    accuracies, most = _accuracies(evidence)
    on_floor = bool(accuracies) and max(accuracies) < most + smallest_effect("accuracy")
    if closed is not None and (closed < NEAR_BASELINE or on_floor):
        yield Caveat(
            SERIOUS,
            f"Near the baseline: the best arm closes {max(0.0, closed):.0%} of the gap from a trivial model "
            f"({number(trivial)}) to a perfect score.{_accuracy(accuracies, most)}",
            "More examples or epochs; what matters once the task is learned may be another thing.",
            on_top=True,
        )


def _accuracies(evidence: Evidence) -> tuple[list[float], float]:
    """Return the arms' mean accuracies and that of one answer to all, where another score of answers selects."""
    counts = _counts(evidence)
    accuracies = tables.values(evidence.trials, f"{evidence.split}/accuracy")
    if evidence.plan.metric not in OF_ANSWERS or not sum(counts.values()):
        return [], 0.0
    means = [fmean(by_seed.values()) for by_seed in accuracies.values()]
    return means, max(counts.values()) / sum(counts.values())


def _accuracy(means: Sequence[float], most: float) -> str:
    if not means:
        return ""
    floor = f"the {number(most)} of one answer to all, the most frequent class"
    return (
        f" Accuracy: {number(min(means))} to {number(max(means))} by arm, "
        f"{'next to' if max(means) > most else 'none above'} {floor}."
    )


def _examples(evidence: Evidence) -> Iterable[Caveat]:
    split = SPLITS[evidence.split]
    here = [claim for claim in evidence.claims if claim.on_these_examples]
    if here:
        yield Caveat(
            CAUTION,
            f"Decided on these {split} examples, but not beyond the chance of having drawn them: "
            f"{several(map(name, here))}.",
            f"More {split} examples; more seeds do not help here.",
        )
    if evidence.without_examples:
        yield Caveat(
            NOTE,
            f"Some intervals do not cover the choice of {split} examples: {several(evidence.without_examples)}.",
            "Read them as said of these examples only.",
        )


def _heavy(evidence: Evidence) -> Iterable[Caveat]:
    """Warn of comparisons whose variance is mostly that of one seed (Grubbs' test, as the share of that seed)."""
    found = []
    for claim in evidence.claims:
        if (
            not claim.primary
            or claim.n < FIRST
            or not claim.sd
            or claim.arms & evidence.learned_nothing.keys()
        ):
            continue
        mean = fmean(claim.values.values())
        squares = {seed: (value - mean) ** 2 for seed, value in claim.values.items()}
        seed = max(squares, key=squares.__getitem__)
        share, n = squares[seed] / sum(squares.values()), claim.n
        t = float(special.stdtrit(n - 2, 1 - RARE / (2 * n)))
        if share > max(HEAVY, (n - 1) / n * t**2 / (n - 2 + t**2)):
            found.append(f"{name(claim)} (seed {seed}, {share:.0%} of n = {n})")
    if found:
        yield Caveat(
            CAUTION,
            f"One seed holds most of the variance: {several(found)}. Normal differences do so in less than {RARE:.0%} "
            "of samples, and intervals assume these.",
            "Look at that seed's trials: a rare outcome of training is a finding of its own, and more seeds tell how "
            "rare.",
        )


def _documents(evidence: Evidence) -> Iterable[Caveat]:
    """Warn where neighbouring sentences, as of one document, are right and wrong together."""
    ratios = evidence.widths_by_block
    wider = [
        f"{name(claim)} ({ratio:.2f} times)"
        for claim, ratio, blocks in ratios
        if ratio > max(WIDER, math.sqrt(special.chdtri(blocks - 1, RARE / len(ratios)) / (blocks - 1)))
    ]
    if wider:
        yield Caveat(
            CAUTION,
            f"Neighbouring sentences are not independent: by blocks of {NEIGHBOURS}, the standard error over examples "
            f"is larger for {several(wider)}.",
            "Take intervals over examples as too narrow there: fewer documents were drawn than sentences.",
        )


def _nothing_learned(evidence: Evidence) -> Iterable[Caveat]:
    """Warn of arms that give one answer to all on most seeds: what is decided of them says which arm was trained."""
    nothing = evidence.learned_nothing
    if not nothing:
        return
    signs = [
        (claim, {claim.weights[arm] > 0 for arm in claim.arms & nothing.keys()}) for claim in evidence.claims
    ]
    empty = [claim for claim, sides in signs if claim.kind == "factor" and len(sides) == 2]
    decided = [claim for claim, sides in signs if len(sides) == 1 and claim.verdict in (BETTER, WORSE)]
    arms = [f"{code(arm)} (on {seeds} of {n} seeds)" for arm, (seeds, n) in nothing.items()]
    finding = f"Nothing learned, one answer to all examples or a score of exactly 0: {several(arms)}."
    if decided:
        finding += (
            f" These verdicts say which arm was trained, not which is better: {several(map(name, decided))}."
        )
    if empty:
        finding += f" Between them nothing can differ, and averages say so: {several(map(name, empty))}."
    yield Caveat(
        SERIOUS if decided or empty else CAUTION,
        finding,
        "Another `lr`, more `patience`, epochs or examples, and compare again.",
        on_top=evidence.plan.control in nothing,
    )


def _epochs(evidence: Evidence) -> Iterable[Caveat]:
    """Warn of arms whose best epoch is mostly the last one allowed, where others were done before."""
    if any(factor.condition and factor.name == "epochs" for factor in evidence.plan.factors):
        return
    rows = tables.confirmed(evidence.trials)
    allowed, best = numbers(rows, "config/epochs"), numbers(rows, "best_epoch")
    last = (best == allowed)[allowed.notna() & best.notna()].groupby(rows["arm"]).mean()
    late = list(last.index[last >= LATE])
    if not late or last.min() >= LATE / 2:  # all alike: the order of arms may stay
        return
    of_late = allowed[rows["arm"].isin(late)]
    most = " to ".join(dict.fromkeys((f"{of_late.min():.0f}", f"{of_late.max():.0f}")))
    yield Caveat(
        CAUTION,
        f"Possibly under-trained: the best epoch is the last of {most} in at least {LATE:.0%} of the "
        f"trials of {several([code(arm) for arm in late])}, but in {last.min():.0%} of {code(last.idxmin())}.",
        "More `--epochs`; until then, worse may mean slower.",
    )


def uniform_mix(evidence: Evidence) -> tuple[float, float] | None:
    """Return the entropy of the control's learned mix and the most it could be, where it is uniform but in name."""
    row, plan = evidence.row_of(evidence.plan.control), evidence.plan
    if not row or not tables.is_learned(str(row["mix"]), str(row["fusion"])) or len(plan.hidden_states) < 2:
        return None
    rows = tables.confirmed(evidence.trials)
    entropy = float(numbers(rows[rows["arm"] == plan.control], "mix/entropy").mean())
    most = math.log(len(plan.hidden_states))
    return (entropy, most) if math.isfinite(entropy) and entropy >= UNIFORM_ENTROPY_SHARE * most else None


def _mix(evidence: Evidence) -> Iterable[Caveat]:
    """Warn where the mix that all are compared with is the uniform one, but in name."""
    if known := uniform_mix(evidence):
        rows = tables.confirmed(evidence.trials)
        rate = numbers(rows[rows["arm"] == evidence.plan.control], "config/mix_lr").mean()
        at = f" (mix_lr {rate:.2g})" if math.isfinite(rate) else ""
        yield Caveat(
            CAUTION,
            f"Effectively uniform: the mix of {code(evidence.plan.control)}{at} has an entropy of {number(known[0])} "
            f"of at most {number(known[1])} nats. Read it as all layers alike.",
            "More epochs, or a larger `--set mix_lr=...`, unless a search chose that rate.",
            on_top=True,
        )


def _range(evidence: Evidence) -> Iterable[Caveat]:
    if evidence.searches > 1:
        yield from _ranges(evidence)
        return
    for edge in evidence.edges:
        yield Caveat(
            CAUTION if edge.n_at_edge > 1 else NOTE,
            f"The search's best trial has {code(edge.name)} = {edge.value:.3g}, at the {edge.end} end of its range; "
            f"of the {count(edge.n_best, 'best trial')}, {edge.n_at_edge} lie there.",
            "Widen that range if more trials lie there.",
        )


def _ranges(evidence: Evidence) -> Iterable[Caveat]:
    """Say of each of several searches what its best has at an end."""
    by_search: dict[str, list[str]] = {}
    for edge in evidence.edges:
        by_search.setdefault(edge.search, []).append(f"{code(edge.name)} = {edge.value:.3g} ({edge.end})")
    if by_search:
        told = "; ".join(f"{code(search)} {several(ends)}" for search, ends in by_search.items())
        yield Caveat(
            CAUTION,
            f"At an end of its range lies the best of {len(by_search)} of {evidence.searches} searches: {told}.",
            "Widen those ranges, or give those searches more `--trials`.",
        )


def _core(evidence: Evidence) -> Iterable[Caveat]:
    core = evidence.core
    for factor in evidence.plan.factors:
        if factor.condition:  # nobody looks for its best level
            continue
        cells = core[column(factor.name)]
        values, best = numeric(levels(cells)), cells[core["arm"] == evidence.best_arm]
        if best.empty or values is None or len(values) < 2 or values[0] < best.iloc[0] < values[-1]:
            continue
        if best.iloc[0] != 0:  # nothing lies below 0
            yield Caveat(
                CAUTION,
                f"The arm that is best on validation lies at the edge of the {code(factor.name)} tried, "
                f"{best.iloc[0]:g}: better ones may lie beyond.",
                f"Add arms beyond it, or fix `--set {factor.name}=...` in a study of its own.",
            )


def _budget(evidence: Evidence) -> Iterable[Caveat]:
    rows = tables.confirmed(evidence.trials)
    epochs = numbers(rows, "epochs").groupby(rows["arm"]).mean().dropna()
    # Of fewer examples arms train for more epochs, as many steps.
    by_design = any(
        factor.condition and factor.name in ("epochs", "train_examples") for factor in evidence.plan.factors
    )
    if len(epochs) > 1 and epochs.max() > UNEQUAL * epochs.min() and not by_design:
        yield Caveat(
            NOTE,
            f"Arms trained for unequal times: on average {number(epochs.min(), 1)} epochs ({code(epochs.idxmin())}) "
            f"to {number(epochs.max(), 1)} ({code(epochs.idxmax())}).",
            "Nothing, if early stopping ended them; else more epochs for all.",
        )
    size = numbers(rows, "parameters").groupby(rows["arm"]).mean().dropna()
    if len(size) > 1 and size.max() > UNEQUAL * size.min():
        yield Caveat(
            CAUTION,
            f"Arms train unequal numbers of parameters: {size.min():,.0f} ({code(size.idxmin())}) to "
            f"{size.max():,.0f} ({code(size.idxmax())}).",
            "Compare arms of one size, or say that size differs.",
        )


def _files(evidence: Evidence) -> Iterable[Caveat]:
    for problem in evidence.loaded.problems:
        yield Caveat(CAUTION, problem, "Restore the file, or see why it disagrees.")


def _stage(evidence: Evidence, stage: str) -> pd.DataFrame:
    trials = evidence.trials
    return trials[trials["stage"] == stage]


CHECKS: tuple[Callable[[Evidence], Iterable[Caveat]], ...] = (
    *(
        _state,
        _code,
        _scores,
        _near_baseline,
        _nothing_learned,
        _seeds,
        _epochs,
        _range,
        _pairs,
        _test,
        _data,
        _mix,
        _classes,
        _examples,
        _heavy,
        _documents,
    ),
    *(_core, _budget, _files),
)
"""In the order in which caveats of one severity are shown."""
