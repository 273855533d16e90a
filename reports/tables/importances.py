"""Hyperparameter importances by PED-ANOVA, Optuna's evaluator, with their spread over resampled trials.

Completed trials of the search alone: a stopped trial's score is no score.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from adalayers.comparisons import IMPORTANCES_FROM
from adalayers.results.study_file import RequestRecord
from reports.reading.frames import numbers, records, searched
from reports.reading.space import Domain, as_choice

RESAMPLES = 50


def search_points(trials: pd.DataFrame, request: RequestRecord, space: Sequence[Domain]) -> pd.DataFrame:
    """A row per completed trial of the search with a score and every hyperparameter of the space.

    Columns: trial_id, score, and one per hyperparameter: a number, or the choice as text. Best first; ids decide
    between equals.
    """
    rows = searched(trials)
    rows = rows[rows["status"] == "completed"]
    table = pd.DataFrame({"trial_id": rows["trial_id"], "score": numbers(rows, f"val/{request.metric}")})
    for domain in space:
        column = f"config/{domain.name}"
        if domain.choices and column in rows.columns:
            table[domain.name] = [as_choice(value, domain.choices) for value in rows[column]]
        else:
            table[domain.name] = numbers(rows, column)
            if domain.log:
                table[domain.name] = table[domain.name].where(table[domain.name] > 0)
    return table.dropna().sort_values(["score", "trial_id"], ascending=[False, True], ignore_index=True)


def importances(points: pd.DataFrame, space: Sequence[Domain]) -> pd.DataFrame:
    """A row per hyperparameter of the space, most important first.

    points: as from `search_points`.
    importance: its share of the whole, the shares adding up to 1 (equal where the scores show nothing).
    low, high:  range of the middle 90% over bootstrap resamples of the trials, always the same ones.
    Empty with fewer than `IMPORTANCES_FROM` completed trials, fewer than two hyperparameters, or scores all the same.
    """
    if len(points) < IMPORTANCES_FROM or len(space) < 2 or points["score"].nunique() < 2:
        return pd.DataFrame()
    # Optuna costs two seconds to import: only where there is something to evaluate.
    import optuna
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study, rng = optuna.create_study(direction="maximize"), np.random.default_rng(0)
    optuna.logging.set_verbosity(before)
    study.add_trials(_trials(points, space))
    trials = study.get_trials(deepcopy=False)
    evaluator = PedAnovaImportanceEvaluator(target_quantile=target_share(len(trials)))
    names = [domain.name for domain in space]

    def shares(drawn: Iterable[int]) -> list[float]:
        own = [trials[i] for i in drawn]
        # In place of adding them, which would copy each: nine tenths of the time.
        study.get_trials = lambda *_, **__: own  # type: ignore[method-assign]
        found = get_param_importances(study, evaluator=evaluator, params=names)
        return [found[name] for name in names]

    with warnings.catch_warnings():
        # A resample whose best trials all tie with the rest: Optuna warns, and all are equally important.
        warnings.filterwarnings("ignore", message=".*importances will be equal")
        whole = shares(range(len(trials)))
        spread = [shares(rng.integers(len(trials), size=len(trials))) for _ in range(RESAMPLES)]
    low, high = np.percentile(spread, [5, 95], axis=0)
    table = pd.DataFrame([(domain.name, domain.role) for domain in space], columns=["name", "role"])
    table = table.assign(importance=whole, low=low, high=high, n=len(points))
    return table.sort_values("importance", ascending=False, kind="stable").reset_index(drop=True)


def target_share(n: int) -> float:
    """Return the share of the best trials that PED-ANOVA asks about: a tenth, and at least five trials."""
    return min(0.5, max(0.1, 5 / n))


def _trials(done: pd.DataFrame, space: Sequence[Domain]) -> list[Any]:
    """Return rows of `search_points` as Optuna's trials; a bound gives way to a value that rounding left outside."""
    from optuna import distributions
    from optuna.trial import create_trial

    kinds: dict[str, distributions.BaseDistribution] = {}
    for domain in space:
        if domain.choices:
            kinds[domain.name] = distributions.CategoricalDistribution(domain.choices)
        else:
            low, high = min(domain.low, done[domain.name].min()), max(domain.high, done[domain.name].max())
            kinds[domain.name] = distributions.FloatDistribution(float(low), float(high), log=domain.log)
    rows = zip(records(done[[*kinds]]), done["score"], strict=True)
    return [create_trial(params=row, distributions=kinds, value=float(score)) for row, score in rows]
