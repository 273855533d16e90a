"""Everything a page is made of, worked out once from a loaded folder: tables, claims, figures."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.evidence import analyses as looking
from reports.evidence import claims as claiming
from reports.evidence import findings as finding
from reports.evidence import history_tables, resampling, rungs, tables
from reports.parts import figures
from reports.reading.load import Loaded, listing
from reports.words.labels import label

LABELS = ("on", "dataset", "labels")
"""Where `study.json` has the names of the classes."""


@dataclass(frozen=True)
class Evidence:
    """The tables behind one report, named as the functions that make them, and its claims.

    best_trial: the trial with the best validation score; shown_trial: the one whose mix weights are
    drawn, which is the best of those that learn them. without_examples: why claims lack the interval over
    test examples; looks: all of them, this one last; rung: where all search trials can be compared.
    """

    split: str
    arms: pd.DataFrame
    core: pd.DataFrame
    search: pd.DataFrame
    search_counts: pd.DataFrame
    convergence: pd.DataFrame
    mix: pd.DataFrame
    per_class: pd.DataFrame
    failures: pd.DataFrame
    best_arm: str | None
    best_trial: str | None
    shown_trial: str | None
    mix_weights: pd.DataFrame
    mix_history: pd.DataFrame
    mix_milestones: pd.DataFrame
    findings: finding.Findings
    claims: list[claiming.Claim]
    contrasts: list[claiming.Claim]
    without_examples: list[str]
    looks: list[looking.Look]
    optimism: pd.DataFrame
    rung: rungs.Rung


@dataclass(frozen=True)
class Decided:
    """What the claims files hold, and why claims lack the interval over test examples."""

    claims: list[claiming.Claim]
    contrasts: list[claiming.Claim]
    without_examples: list[str]


def decide(loaded: Loaded) -> Decided:
    """Work out the claims and contrasts alone."""
    trials, plan = loaded.results.trials, loaded.plan
    variances, without_examples = resampling.example_variances(
        loaded.results.predictions,
        trials,
        plan,
        tables.score_split(trials, plan),
        len(listing(loaded.results.study, *LABELS)),
    )
    steps = history_tables.convergence(trials, loaded.results.history, plan)
    return Decided(
        claiming.with_examples(claiming.claims(trials, plan), variances),
        claiming.contrasts(trials, steps, plan),
        without_examples,
    )


def gather(loaded: Loaded, fanova: pd.DataFrame | None = None) -> Evidence:
    """Work out every table and claim of a report; `fanova`: importances by it, where they are known."""
    trials, history, plan = loaded.results.trials, loaded.results.history, loaded.plan
    arms = tables.arms(trials, plan)
    steps = history_tables.convergence(trials, history, plan)
    best_arm = tables.best_arm(arms, plan)
    shown = tables.best_trial(trials, plan, learned=True)
    search, decided = tables.search(trials, plan), decide(loaded)
    mix = history_tables.mix_history(history, shown, plan.hidden_states)
    return Evidence(
        split=tables.score_split(trials, plan),
        arms=arms,
        core=tables.core(arms),
        search=search,
        search_counts=tables.search_counts(trials, plan),
        convergence=history_tables.convergence_by_arm(steps, arms),
        mix=tables.mix_by_arm(trials, plan),
        per_class=tables.per_class(trials, plan, [name for name in (plan.control, best_arm) if name]),
        failures=tables.failures(trials),
        best_arm=best_arm,
        best_trial=tables.best_trial(trials, plan),
        shown_trial=shown,
        mix_weights=history_tables.mix_weights(trials, history, shown, plan.hidden_states),
        mix_history=mix,
        mix_milestones=history_tables.mix_milestones(mix),
        findings=finding.find(loaded, arms, fanova),
        claims=decided.claims,
        contrasts=decided.contrasts,
        without_examples=decided.without_examples,
        looks=looking.looks(loaded.results.study, trials, plan),
        optimism=tables.optimism(trials, plan),
        rung=rungs.last_common(search, history, plan),
    )


def draw(loaded: Loaded, evidence: Evidence) -> dict[str, Figure]:
    """Draw every figure of a report: file name without ending -> figure."""
    plan = loaded.plan
    scored, chosen = label(f"{evidence.split}/{plan.metric}"), label(f"val/{plan.metric}")
    return {
        "arms": figures.arm_scores(evidence.arms, scored, plan.control),
        "core_heatmap": figures.core_heatmap(evidence.core, scored),
        "search_trials": figures.search_trials(evidence.search, chosen),
        "score_by_alpha": figures.score_by_alpha(evidence.core, scored),
        "convergence": figures.convergence(evidence.convergence),
        "mix_by_entropy_weight": figures.mix_by_entropy_weight(evidence.mix),
        "mix_weights": figures.mix_weights(evidence.mix_weights),
        "mix_history": figures.mix_history(evidence.mix_history),
        **finding.draw(loaded, evidence.arms, evidence.findings),
    }
