"""What a report shows beside its claims, worked out once: the search, curves, layers, errors. Claims rest on none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from reports.evidence import curves, data_size, importances, layers, predicted, ranges, surfaces, tables
from reports.evidence import decomposition as interaction
from reports.parts import curve_figures, error_figures, layer_figures, search_figures
from reports.reading.frames import records
from reports.reading.load import Loaded, get, listing, mapping
from reports.reading.space import Domain, domains
from reports.words.labels import label


@dataclass(frozen=True)
class Findings:
    """Tables named as the functions that make them.

    unread:      hyperparameters whose search space could not be read from `study.json`
    importances: one table per evaluator, those without rows left out; factors: the surface's x and y
    learned_arm: the best of the arms that learn their mix, on validation
    error_trial: the confirmed trial whose wrong predictions are shown, the best on validation
    error_arm:   the arm whose predictions are counted, the best on validation
    """

    space: list[Domain]
    unread: list[str]
    points: pd.DataFrame
    importances: list[pd.DataFrame]
    edges: list[ranges.Edge]
    factors: tuple[Domain, Domain] | None
    surface: pd.DataFrame
    interaction: pd.DataFrame
    curves: pd.DataFrame
    single: pd.DataFrame
    learned_arm: str | None
    sizes: pd.DataFrame
    profile: pd.DataFrame
    tokens: bool
    error_trial: str | None
    error_arm: str | None
    misclassified: pd.DataFrame
    confusion: pd.DataFrame
    classes: pd.DataFrame


def find(loaded: Loaded, arms: pd.DataFrame, fanova: pd.DataFrame | None = None) -> Findings:
    """Work out the tables. arms: as from `tables.arms`; fanova: importances that were asked for or kept."""
    trials, history, plan = loaded.results.trials, loaded.results.history, loaded.plan
    study, predictions = loaded.results.study, loaded.results.predictions
    split = tables.score_split(trials, plan)
    space, unread = domains(study)
    points = importances.search_points(trials, plan, space)
    factors = surfaces.two_factors(space)
    learned = layers.best_learned_arm(arms, plan)
    tokens = get(study, "on", "dataset", "kind") == "token"
    best = tables.best_arm(arms, plan)
    confirmed = tables.confirmed(trials)
    shown = [arm for arm in dict.fromkeys((plan.control, best)) if arm]
    of_shown = confirmed[confirmed["arm"].isin(shown)]
    trial_ids, their_arms = (of_shown[name].astype(str).tolist() for name in ("trial_id", "arm"))
    arm_of = dict(zip(trial_ids, their_arms, strict=True))
    rows = predicted.rows_of(predictions, list(arm_of), split)
    of_best = rows[rows["trial_id"].map(arm_of) == best]
    error_trial = tables.best_trial(confirmed, plan)
    found = importances.importances(points, space, plan)
    return Findings(
        space=space,
        unread=unread,
        points=points,
        importances=[table for table in (found, fanova) if table is not None and len(table)],
        edges=ranges.edges(
            trials,
            plan,
            mapping(study, "asked", "space"),
            grid=get(study, "asked", "search") == "grid",
        ),
        factors=factors,
        surface=surfaces.surface(points, *factors) if factors else pd.DataFrame(columns=surfaces.COLUMNS),
        interaction=interaction.decompose(
            tables.core(arms), tables.by_seed(trials, f"{split}/{plan.metric}")
        ),
        curves=curves.learning_curves(trials, history, plan),
        single=layers.single_layers(trials, plan, split),
        learned_arm=learned,
        sizes=data_size.by_size(trials, plan, split),
        profile=layers.profile(trials, history, plan, study, learned),
        tokens=tokens,
        error_trial=error_trial,
        error_arm=best,
        misclassified=predicted.misclassified(
            predicted.rows_of(predictions, [error_trial] if error_trial else [], split)
        ),
        confusion=predicted.span_confusion(of_best)
        if tokens
        else predicted.confusion(of_best, [str(name) for name in listing(study, "on", "dataset", "labels")]),
        classes=predicted.entity_scores(rows, arm_of)
        if tokens
        else predicted.entity_scores(rows.iloc[:0], {}),
    )


def draw(loaded: Loaded, arms: pd.DataFrame, findings: Findings) -> dict[str, Figure]:
    """Draw the figures of the findings: file name without ending -> figure.

    What a study was not about (single layers, data size, entities) has no figure at all.
    """
    plan = loaded.plan
    split = tables.score_split(loaded.results.trials, plan)
    scored, chosen = label(f"{split}/{plan.metric}"), label(f"val/{plan.metric}")
    x, y = findings.factors or (None, None)
    drawn = {
        "learning_curves": curve_figures.learning_curves(findings.curves, arms, chosen, plan.control),
        "importances": search_figures.importances(
            findings.importances[-1] if findings.importances else pd.DataFrame(columns=importances.COLUMNS)
        ),
        "search_surface": search_figures.surface(findings.surface, x, y, chosen),
        "search_parallel": search_figures.parallel(findings.points, findings.space, chosen, plan.mode),
        "confusion": error_figures.confusion(
            findings.confusion, "entities" if findings.tokens else "examples"
        ),
    }
    if len(findings.single):
        drawn["single_layers"] = layer_figures.single_layers(
            findings.single, learned_row(arms, findings), scored
        )
    if len(findings.sizes):
        drawn["score_by_size"] = curve_figures.score_by_size(findings.sizes, scored)
    if findings.tokens:
        drawn["class_scores"] = error_figures.class_scores(findings.classes, findings.error_arm or "")
    return drawn


def learned_row(arms: pd.DataFrame, findings: Findings) -> Mapping[str, Any] | None:
    """Return the row of `tables.arms` of the best arm that learns its mix."""
    rows = records(arms[arms["arm"] == findings.learned_arm])
    return rows[0] if rows else None
