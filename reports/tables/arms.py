"""Rows of `trials.csv` -> the small tables behind the page and its figures. No function changes its argument.

Words used below: a *score* is the study's metric; an arm's *summary* is its mean over completed seeds with
a 95% t interval (`low`, `high`: NaN where there is none) and the number of seeds `n`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from adalayers.comparisons import PlannedArm
from adalayers.results.intervals import mean_interval
from adalayers.results.study_file import RequestRecord
from adalayers.tasks.metrics import bounds
from reports.reading.factors import column, level, of_trials
from reports.reading.frames import numbers, texts

ONE_ANSWER = 0.99
"""Share of a split's examples with one and the same answer from which on a trial is said to give one answer.

Where one label is that frequent, all but a tenth of the other labels' share.
"""

LAYER_MIX = "layer-mix"
"""The fusion whose weights, entropy and live layers `trials.csv` and `history.parquet` hold as `mix/*`."""


def confirmed(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials of confirmed arms that completed or diverged, one per arm and seed (the smallest `trial_id`).

    A diverged one has the score of the trivial model (`reading.load`): left out, the seeds that are left would be the
    easy ones.
    """
    ended = (trials["stage"] == "confirm") & trials["status"].isin(["completed", "diverged"])
    rows = trials[ended & (trials["arm"] != "")]
    return rows.sort_values("trial_id", kind="stable").drop_duplicates(["arm", "seed"])


def at_last_epoch(trials: pd.DataFrame, request: RequestRecord) -> pd.DataFrame:
    """A row per confirmed trial that says so: arm, allowed (epochs), last (whether its best epoch is that one).

    None where numbers of epochs are what is compared.
    """
    if any(factor.condition and factor.name == "epochs" for factor in request.factors):
        trials = trials.iloc[:0]
    rows = confirmed(trials)
    allowed, best = numbers(rows, "config/epochs"), numbers(rows, "best_epoch")
    table = pd.DataFrame({"arm": rows["arm"], "allowed": allowed, "last": best == allowed})
    return table[allowed.notna() & best.notna()]


def without_score(trials: pd.DataFrame, score: str) -> dict[str, frozenset[int]]:
    """Return arm -> the seeds of its trials that have no such score: failed, not believed, diverged without a floor.

    A trial of no known seed counts as of seed 0, which no analysis leaves out.
    """
    ended = trials["status"].isin(["completed", "diverged"])
    lost = (trials["status"] == "failed") | (ended & numbers(trials, score).isna())
    rows = trials[(trials["stage"] == "confirm") & lost].fillna({"seed": 0})
    return {str(arm): frozenset(map(int, seeds)) for arm, seeds in rows.groupby("arm")["seed"]}


def score_split(trials: pd.DataFrame, request: RequestRecord) -> str:
    """Return the split arms are compared on: test where any confirmed trial has a test score, else val."""
    return "test" if numbers(confirmed(trials), f"test/{request.metric}").notna().any() else "val"


def values(trials: pd.DataFrame, column: str) -> dict[str, dict[int, float]]:
    """Return arm -> its values of `column` by seed, missing ones left out.

    Only arms with completed trials that have one are in it.
    """
    rows = confirmed(trials)
    by_arm: dict[str, dict[int, float]] = {}
    # A loop over rows: with a handful of seeds, pandas' own grouping takes ten times as long.
    for arm, seed, value in zip(rows["arm"], rows["seed"], numbers(rows, column), strict=True):
        if not (pd.isna(seed) or np.isnan(value)):
            by_arm.setdefault(str(arm), {})[int(seed)] = float(value)
    return {arm: dict(sorted(of_arm.items())) for arm, of_arm in by_arm.items()}


def arms(trials: pd.DataFrame, request: RequestRecord) -> pd.DataFrame:
    """A row per arm, in the request's order.

    Columns: arm, role, aliases (text), fusion, `config/<factor>` of every factor, mix (NaN or "" where unknown), split,
    the summary of the score on that split (mean, low, high, n), and that on validation (val_mean, ...).
    """
    split = score_split(trials, request)
    scores, chosen = values(trials, f"{split}/{request.metric}"), values(trials, f"val/{request.metric}")
    rows = []
    for arm in request.arms:
        row: dict[str, object] = {"arm": arm.name, "role": arm.role, "aliases": ", ".join(arm.aliases)}
        row |= {**_settings(trials, arm, request), "split": split}
        row |= summary(scores.get(arm.name, {}).values(), limits=bounds(request.metric))
        row |= summary(chosen.get(arm.name, {}).values(), "val_", bounds(request.metric))
        rows.append(row)
    factors = [column(factor.name) for factor in request.factors]
    columns = ["arm", "role", "aliases", "fusion", *factors, "mix", "split"]
    return pd.DataFrame(rows, columns=[*columns, *summary_names(""), *summary_names("val_")])


def learning_arms(trials: pd.DataFrame, request: RequestRecord) -> list[str]:
    """Return the arms that train their mix weights, by their trials, else by the request."""
    settings = ((arm.name, _settings(trials, arm, request)) for arm in request.arms)
    return [name for name, own in settings if is_learned(str(own["mix"]), str(own["fusion"]))]


def best_trial(trials: pd.DataFrame, request: RequestRecord) -> str | None:
    """Return the completed trial of any stage that learns its mix with the best validation score.

    The smallest id of equals; None without any.
    """
    kinds = zip(texts(trials, "config/mix"), texts(trials, "fusion"), strict=True)
    learned = np.array([is_learned(mix, fusion) for mix, fusion in kinds], dtype=bool)
    rows = trials[(trials["status"] == "completed") & learned].sort_values("trial_id")
    scores = numbers(rows, f"val/{request.metric}").dropna()
    return None if scores.empty else str(rows["trial_id"].loc[scores.index].iloc[scores.argmax()])


def is_learned(mix: str, fusion: str = "") -> bool:
    """Whether these are mix weights that are trained; a table that does not say holds learned ones."""
    return mix in ("", "learned") and fusion in ("", LAYER_MIX)


def one_answer(predictions: pd.DataFrame, trial_ids: Sequence[str], split: str) -> frozenset[str]:
    """Return the trials that give nearly all examples of a split one and the same answer, as `ONE_ANSWER` says."""
    if not {"trial_id", "split", "label", "prediction"} <= set(predictions.columns):
        return frozenset()
    rows = predictions[predictions["trial_id"].isin(list(trial_ids)) & (predictions["split"] == split)]
    rest = 1 - rows["label"].value_counts(normalize=True).max()
    answers = rows.groupby(["trial_id", "prediction"], observed=True).size().groupby("trial_id")
    share = answers.max() / answers.sum()
    return frozenset(share.index[share >= max(ONE_ANSWER, 1 - rest / 10)].astype(str))


def _settings(trials: pd.DataFrame, arm: PlannedArm, request: RequestRecord) -> dict[str, object]:
    """Return fusion, factors and mix of an arm: from its trials, else from the request."""
    rows = trials[(trials["stage"] == "confirm") & (trials["arm"] == arm.name)]
    settings: dict[str, object] = {"fusion": next(filter(None, texts(rows, "fusion")), arm.fusion)}
    for factor in request.factors:
        planned = arm.fusion if factor.name == "fusion" else level(arm.config.get(factor.name))
        seen = [value for value in of_trials(rows, factor.name) if value is not None]
        absent = factor.absent if factor.absent and arm.role == "core" else np.nan
        settings[column(factor.name)] = seen[0] if seen else absent if planned in (None, "") else planned
    settings["mix"] = next(filter(None, texts(rows, "config/mix")), str(arm.config.get("mix") or ""))
    return settings


def summary(
    values: Iterable[float], prefix: str = "", limits: tuple[float, float] | None = None
) -> dict[str, float]:
    """Return mean, low, high and n of `results.intervals.mean_interval`, NaN where there is none.

    Args:
        values: One per seed.
        prefix: What the names begin with.
        limits: Between which the values lie.
    """
    cells = mean_interval(values, limits=limits or (-math.inf, math.inf))
    return dict(zip(summary_names(prefix), cells, strict=True))


def summaries(rows: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """A row per group of rows that agree in the columns `by`, in order of appearance: these, and its `summary`."""
    groups = rows.groupby(list(by), sort=False)
    table = [{**dict(zip(by, key, strict=True)), **summary(own[value])} for key, own in groups]
    return pd.DataFrame(table, columns=[*by, *summary_names("")])


def summary_names(prefix: str) -> list[str]:
    return [f"{prefix}{name}" for name in ("mean", "low", "high", "n")]
