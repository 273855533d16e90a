"""The sections that show evidence: each a list of Markdown paragraphs, with the figure and its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from reports.evidence import rungs
from reports.evidence.claims import Claim
from reports.evidence.curves import milestones
from reports.evidence.evidence import Evidence
from reports.evidence.history_tables import mix_kind
from reports.evidence.statistics import LEVEL
from reports.reading.frames import records
from reports.reading.load import Loaded, Plan
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, code, count, escape, estimate, folded, interval, listed, number, table

FIGURES = "figures"
SHOWN = 20
"""Rows of a table of trials; the rest are in `trials.csv`."""

NO_CORE = "No arm of this study is marked as part of a factorial core."


def arms(loaded: Loaded, evidence: Evidence) -> list[str]:
    """Every arm: score, validation score beside a test score, difference to the control, verdict."""
    plan, split = loaded.plan, SPLITS[evidence.split]
    compared = {claim.arm: claim for claim in evidence.claims}
    beside = evidence.split != "val"
    heads = ["arm", f"{split} {short(plan.metric)}, mean [{LEVEL:.0%} interval]"]
    heads += ["on validation"] if beside else []
    heads += ["difference to control [corrected interval]", "verdict", "also known as"]
    rows = []
    for row in records(evidence.arms):
        cells = [code(row["arm"]), _summary(row)]
        cells += [_summary(row, "val_")] if beside else []
        claim = compared.get(row["arm"])
        role = "control" if row["arm"] == plan.control else "not compared"
        cells += [_difference(claim), claim.verdict] if claim else [NONE, role]
        rows.append([*cells, escape(row["aliases"])])
    small = "the smallest effect of interest (not stated)"
    small = (
        small
        if plan.smallest_effect is None
        else f"±{plan.smallest_effect:g}, the smallest effect of interest"
    )
    best = f" Best mean on validation: {code(evidence.best_arm)}." if evidence.best_arm else ""
    lower = " Lower is better." if plan.mode == "min" else ""
    return [
        f"n counts completed seeds; intervals of means are t intervals over seeds.{lower}{best}",
        "Differences are paired by seed; their intervals and verdicts are corrected (Bonferroni) for all "
        f"{count(len(compared), 'comparison')} and for looks. *No difference seen*: the corrected interval lies within "
        f"{small}. *Not enough evidence*: anything else that is neither better nor worse.",
        table(heads, rows),
        figure_link("arms", f"Mean {split} {short(plan.metric)} of every arm with its interval"),
        "Hollow points have no interval: one seed, or the same score on all.",
    ]


def core(evidence: Evidence) -> list[str]:
    """Mean score over alpha and lambda, as heat map and table."""
    figure = figure_link("core_heatmap", "Mean score over α and λ, a cell per arm")
    if evidence.core.empty:
        return [NO_CORE, figure]
    cells = {(row["entropy_weight"], row["alpha"]): _summary(row) for row in records(evidence.core)}
    alphas, weights = sorted({alpha for _, alpha in cells}), sorted({weight for weight, _ in cells})
    return [
        f"Mean {SPLITS[evidence.split]} score over α and λ, all else alike; each cell is an arm.",
        figure,
        table(
            ["", *(f"α = {alpha:g}" for alpha in alphas)],
            [
                [f"λ = {weight:g}", *(cells.get((weight, alpha), "not an arm") for alpha in alphas)]
                for weight in weights
            ],
        ),
    ]


def search(loaded: Loaded, evidence: Evidence) -> list[str]:
    """The search's trials one by one, stopped ones apart."""
    trials, every = evidence.search, loaded.results.trials
    lost = int((every["stage"] == "search").sum()) - len(trials)
    counts = trials["status"].value_counts()
    paragraphs = [
        f"{count(counts.get('completed', 0), 'trial')} completed, {counts.get('stopped', 0)} stopped early "
        f"by the scheduler, {lost} without a result. Each is one configuration with one seed: n = 1, no "
        "interval. A stopped trial's score is what it had reached by then; it is never averaged or ranked "
        "with those of completed ones.",
        "Nuisance hyperparameters vary from point to point: this is a map of where the search went, not a "
        "comparison.",
        figure_link("search_trials", "Validation score of every search trial against α"),
    ]
    if trials.empty:
        return paragraphs
    by_weight = [
        [row["band"], str(row["completed"]), str(row["stopped"]), number(row["best"])]
        for row in records(evidence.search_counts)
    ]
    reached = evidence.rung.scores
    at_rung = NONE if evidence.rung.epoch is None else f"at epoch {evidence.rung.epoch:g}"
    one_by_one = [
        [code(row["trial_id"]), "stopped early" if row["status"] == "stopped" else row["status"]]
        + [_brief(row[name]) for name in ("alpha", "entropy_weight", "lr", "mix_lr")]
        + [number(reached.get(row["trial_id"]))]
        + [number(row["score"]) + (" so far" if row["status"] == "stopped" else ""), number(row["epochs"], 0)]
        for row in records(trials.head(SHOWN))
    ]
    rest = len(trials) - len(one_by_one)
    return [
        *paragraphs,
        table(["λ", "completed", "stopped early", "best validation score among completed"], by_weight),
        *_at_rung(loaded.plan, evidence),
        folded(
            f"Trials one by one, the best {len(one_by_one)} of {len(trials)}"
            if rest
            else "Trials one by one",
            len(one_by_one),
            table(
                ["trial", "status", "α", "λ", "lr", "mix_lr", at_rung, "validation score", "epochs"],
                one_by_one,
            ),
            f"{count(rest, 'more trial')} in `trials.csv`." if rest else "",
        ),
    ]


def _at_rung(plan: Plan, evidence: Evidence) -> list[str]:
    """All search trials at the last epoch that all of them reached: the only place where they can be compared."""
    rung = evidence.rung
    if rung.epoch is None:
        return [
            "No trial of the search has a history of scores, so they cannot be compared at an equal epoch."
        ]
    bands = rungs.by_band(evidence.search, rung, plan, evidence.search_counts["band"])
    correlation, n = rungs.agreement(evidence.search, rung)
    rows = [
        [row["band"], str(row["completed"]), str(row["stopped"]), number(row["median"]), number(row["best"])]
        for row in records(bands)
    ]
    ended, stopped = int(bands["completed"].sum()), int(bands["stopped"].sum())
    lost = f", {rung.without} without history" if rung.without else ""
    paragraphs = [
        f"**All at epoch {rung.epoch:g}**, the last that every one of these trials evaluated: best validation score up "
        f"to then, of {count(ended + stopped, 'trial')} ({ended} completed, {stopped} stopped later{lost}). Stopped "
        "trials count here with what they had shown, and with nothing that they were not given time to show.",
        table(["λ", "completed", "stopped later", "median at that epoch", "best at that epoch"], rows),
    ]
    if correlation is not None:
        paragraphs.append(
            f"Among the {n} completed trials the order at that epoch and the order at the end have a rank correlation "
            f"of {number(correlation, 2)}: 1 would mean that stopping there loses nothing."
        )
    return paragraphs


def score_by_alpha(evidence: Evidence) -> list[str]:
    """Mean score against alpha, a line per lambda: the numbers of `core` once more."""
    figure = figure_link("score_by_alpha", "Mean score against α, a line per λ")
    if evidence.core.empty:
        return [figure]
    return [
        f"The same cells, a line per λ. Bars are {LEVEL:.0%} t intervals over seeds, not corrected: for "
        "comparisons see the table of arms. Points are set slightly apart along α so that bars do not "
        "hide each other.",
        figure,
    ]


def convergence(evidence: Evidence) -> list[str]:
    """The step of convergence by arm, against alpha."""
    paragraphs = [
        "The step of convergence is the first at which a trial's validation score reaches *baseline + "
        "0.95 × (its own best − baseline)*; the baseline is the trivial model's score. Its resolution is "
        "one evaluation. Each trial is measured against its own best, so an arm can be early and poor. A "
        "trial whose best does not beat the baseline is *censored*: it counts as later than all others.",
        figure_link("convergence", "Median step of convergence against α, a line per λ"),
    ]
    if evidence.convergence["n"].sum() == 0:
        why = "no completed confirmed trial has a history of scores, or the baseline is not known"
        return [*paragraphs, f"Nothing to show: {why}."]
    compared = {claim.arm: claim for claim in evidence.contrasts if claim.metric == "convergence_step"}
    heads = ["arm", "median step [earliest, latest]", "censored", "without history"]
    rows = [
        [
            *(code(row["arm"]), _range(row), str(row["censored"]), str(row["unknown"])),
            *_contrast(compared.get(row["arm"]), digits=0),
        ]
        for row in records(evidence.convergence)
    ]
    return [
        *paragraphs,
        folded(
            "Convergence of each arm",
            len(rows),
            table([*heads, "difference to control, of means [corrected interval]", "verdict"], rows),
        ),
        "The range from earliest to latest holds an arm's true median with probability 1 − 2^(1−n), 94% "
        "for n = 5. Differences are over seeds on which both converged; an arm with a censored trial gets "
        "no interval, because the seeds left would be the easy ones.",
    ]


def learning_curves(evidence: Evidence) -> list[str]:
    """The best validation score so far over steps, by arm."""
    figure = figure_link("learning_curves", "Best validation score so far over training steps, by arm")
    curves = evidence.findings.curves
    if curves.empty:
        return ["No confirmed arm has a history of evaluations.", figure]
    found = milestones(curves)
    columns = list(dict.fromkeys(found["at"]))
    cells = {(row["arm"], row["at"]): _summary(row) for row in records(found)}
    rows = [
        [code(arm), *(cells.get((arm, at), NONE) for at in columns)] for arm in dict.fromkeys(found["arm"])
    ]
    return [
        f"The best validation score so far, mean and {LEVEL:.0%} t band over seeds, not corrected. A trial that "
        "stopped early keeps its best, so every seed counts at every step. The best so far never falls: a late "
        "loss of score does not show here.",
        figure,
        folded(
            "The curves as a table", len(rows), table(["arm", *(f"step {at:,.0f}" for at in columns)], rows)
        ),
    ]


def mix(evidence: Evidence) -> list[str]:
    """Entropy of p~ and live layers by arm, against lambda."""
    compared = {claim.arm: claim for claim in evidence.contrasts if claim.metric == "mix/entropy"}
    rows = [
        [
            *(code(row["arm"]), _summary(row, "entropy_"), _summary(row, "live_", digits=1)),
            *_contrast(compared.get(row["arm"])),
        ]
        for row in records(evidence.mix)
    ]
    heads = ["arm", "entropy (nats), mean [interval]", "live layers, mean [interval]"]
    return [
        "Entropy of p̃ at the best epoch, in nats: 0 when one layer has all the weight, ln(number of "
        "layers) when all share it alike. A layer is live while its weight is not cut to 0.",
        figure_link(
            "mix_by_entropy_weight", "Entropy of the mix weights and live layers against λ, a line per α"
        ),
        folded(
            "The mix of each arm",
            len(rows),
            table([*heads, "entropy, difference to control [corrected interval]", "verdict"], rows),
        ),
    ]


def best(loaded: Loaded, evidence: Evidence) -> list[str]:
    """The mix weights of the best model: a bar per layer, and their history."""
    trials, metric = loaded.results.trials, loaded.plan.metric
    bars = figure_link("mix_weights", "Mix weights of the best model, a bar per layer")
    lines = figure_link("mix_history", "Mix weights of the best model over training steps")
    if evidence.best_trial is None:
        return ["No trial was completed with a score, so there is no best model.", bars, lines]
    paragraphs = [
        "The completed trial of any stage with the best validation score is "
        f"{_trial(trials, evidence.best_trial, metric)}. It is one trial (n = 1), chosen for its score: its "
        "weights show what one good model does, not what its arm does on average."
    ]
    if evidence.shown_trial != evidence.best_trial:
        kind = code(mix_kind(trials, evidence.best_trial))
        paragraphs.append(f"**Its mix weights are not learned** (mix: {kind}), so they show nothing.")
    if evidence.shown_trial not in (None, evidence.best_trial):
        learned = _trial(trials, str(evidence.shown_trial), metric)
        paragraphs.append(f"Shown instead is the best trial that learns its mix: {learned}.")
    if evidence.mix_weights.empty:
        return [*paragraphs, "There is no history of learned mix weights.", bars, lines]
    weights = [[escape(row["layer"]), number(row["weight"])] for row in records(evidence.mix_weights)]
    steps = [
        [escape(value) if name == "layer" else number(value) for name, value in row.items()]
        for row in records(evidence.mix_milestones)
    ]
    return [
        *paragraphs,
        bars,
        lines,
        folded(
            "The mix weights as tables",
            len(weights) + len(steps),
            table(["layer", "mix weight p̃ at the best epoch (n = 1)"], weights),
            table([str(name) for name in evidence.mix_milestones.columns], steps),
        ),
    ]


def per_class(loaded: Loaded, evidence: Evidence) -> list[str]:
    """Entity F1 by class for the control and the best arm; nothing for tasks without entities."""
    if evidence.per_class.empty:
        return []
    names = list(dict.fromkeys(evidence.per_class["arm"]))
    cells = {(row["class"], row["arm"]): _summary(row) for row in records(evidence.per_class)}
    roles = {loaded.plan.control: ["control"]}
    roles.setdefault(str(evidence.best_arm), []).append("best on validation")
    return [
        f"Entity F1 by class on {SPLITS[evidence.split]}, mean [{LEVEL:.0%} interval]. These were not "
        "compared.",
        table(
            ["class", *(f"{code(name)} ({', '.join(roles.get(name, []))})" for name in names)],
            [
                [escape(entity), *(cells[entity, name] for name in names)]
                for entity in dict.fromkeys(evidence.per_class["class"])
            ],
        ),
    ]


def failures(evidence: Evidence) -> list[str]:
    """Trials that gave no result, with their errors."""
    failed = evidence.failures
    if failed.empty:
        return ["None: every trial was completed, or stopped by the scheduler."]
    rows = [
        [
            code(row["trial_id"]),
            row["stage"],
            code(row["arm"]),
            _whole(row["seed"]),
            row["status"],
            escape(row["error"]),
        ]
        for row in records(failed.head(SHOWN))
    ]
    rest = len(failed) - len(rows)
    return [
        f"{count(len(failed), 'trial')} without a result. An arm that lost seeds has a smaller n, and its "
        "remaining seeds may be the easy ones.",
        table(["trial", "stage", "arm", "seed", "status", "error"], rows),
        f"{count(rest, 'more trial')} in `trials.csv`." if rest else "",
    ]


def problems(loaded: Loaded) -> list[str]:
    """What is missing from the files or disagrees in them."""
    return [listed(loaded.problems) if loaded.problems else "None: all files are there and agree."]


def figure_link(name: str, text: str) -> str:
    """Return the picture, which leads to itself as SVG."""
    return f"[![{text}]({FIGURES}/{name}.png)]({FIGURES}/{name}.svg)"


def _summary(row: Mapping[str, Any], prefix: str = "", digits: int = 3) -> str:
    mean, low, high, n = (row[f"{prefix}{name}"] for name in ("mean", "low", "high", "n"))
    return estimate(mean, low, high, n, digits)


def _difference(claim: Claim, digits: int = 3) -> str:
    return estimate(claim.difference, claim.low, claim.high, claim.n, digits, signed=True)


def _contrast(claim: Claim | None, digits: int = 3) -> list[str]:
    """Return the cells "difference" and "verdict" of an arm that may not have been compared."""
    return [_difference(claim, digits), claim.verdict] if claim else [NONE, NONE]


def _range(row: Mapping[str, Any]) -> str:
    if row["n"] == 0:
        return f"{NONE} (n = 0)"
    if row["n"] == 1:
        return f"{number(row['median'], 0)} (n = 1, no interval)"
    return f"{number(row['median'], 0)} {interval(row['low'], row['high'], 0)}, n = {row['n']}"


def _trial(trials: pd.DataFrame, trial_id: str, metric: str) -> str:
    row = trials[trials["trial_id"] == trial_id].iloc[0]
    whose = f"arm {code(row['arm'])}, seed {_whole(row['seed'])}" if row["arm"] else "of the search"
    return f"{code(trial_id)} ({whose}; validation {short(metric)} {number(row[f'val/{metric}'])})"


def _whole(value: Any) -> str:
    return NONE if pd.isna(value) else f"{value:.0f}"


def _brief(value: float) -> str:
    return NONE if pd.isna(value) else f"{value:.3g}"
