"""Rows of `history.parquet` -> the step of convergence by arm, and the mix weights p~ of one trial.

A row of history is an evaluation (it has `val/*`) or, in between, the mix weights alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from reports.evidence.tables import FACTORS, confirmed
from reports.reading.frames import numbers, texts
from reports.reading.load import Plan
from reports.words.labels import layer_name

SHARE = 0.95
"""Convergence: the first step at `baseline + SHARE * (own best - baseline)`."""

REACHED, CENSORED, UNKNOWN = "reached", "censored", "no history"


def convergence(trials: pd.DataFrame, history: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """A row per completed confirmed trial: trial_id, arm, seed, own_best, threshold, step, state.

    `step` is that of the first evaluation at or above `threshold`, so it is known to within one
    evaluation. A trial that never beats the baseline is censored (NaN): it converged to nothing.
    """
    score = f"val/{plan.metric}"
    rows = confirmed(trials)
    curves = _curves(history, score)
    table = []
    for trial_id, arm, seed in zip(rows["trial_id"], rows["arm"], rows["seed"], strict=True):
        curve = curves.get(trial_id)
        row = {"trial_id": trial_id, "arm": arm, "seed": seed, "own_best": np.nan, "threshold": np.nan}
        row |= {"step": np.nan, "state": UNKNOWN}
        if curve is not None and plan.baseline is not None:
            scores, baseline = plan.better(curve[score]), plan.better(pd.Series([plan.baseline])).iloc[0]
            threshold = baseline + SHARE * (scores.max() - baseline)
            row["own_best"], row["threshold"] = (plan.better(pd.Series([scores.max(), threshold]))).tolist()
            row["state"] = CENSORED
            if scores.max() > baseline:
                # The best evaluation itself always counts, whatever rounding does to the threshold.
                first = curve.loc[scores >= min(threshold, scores.max()), "step"].iloc[0]
                row |= {"step": float(first), "state": REACHED}
        table.append(row)
    columns = ["trial_id", "arm", "seed", "own_best", "threshold", "step", "state"]
    return pd.DataFrame(table, columns=columns).sort_values(["arm", "seed"]).reset_index(drop=True)


def convergence_by_arm(each: pd.DataFrame, arm_table: pd.DataFrame) -> pd.DataFrame:
    """A row per arm of `tables.arms`: its group and factors, median, low, high, n, censored, unknown.

    each: as from `convergence`.
    median: of the steps, a censored trial counting as later than any other (inf: half or more were).
    low, high: the earliest and the latest (inf where any is censored; NaN for a single trial). The range
    of n trials holds the arm's true median with probability 1 - 2^(1 - n).
    n: trials with history, censored ones among them.
    """
    rows = []
    for name in arm_table["arm"]:
        of_arm = each[each["arm"] == name]
        steps = of_arm.loc[of_arm["state"] != UNKNOWN, "step"].fillna(np.inf).sort_values()
        rows.append(
            {
                "median": _median(steps.tolist()),
                "low": steps.min() if len(steps) > 1 else np.nan,
                "high": steps.max() if len(steps) > 1 else np.nan,
                "n": len(steps),
                "censored": int((of_arm["state"] == CENSORED).sum()),
                "unknown": int((of_arm["state"] == UNKNOWN).sum()),
            }
        )
    columns = ["median", "low", "high", "n", "censored", "unknown"]
    summary = pd.DataFrame(rows, columns=columns, index=arm_table.index)
    return pd.concat([arm_table[["arm", "group", *FACTORS]], summary], axis=1)


def mix_history(history: pd.DataFrame, trial_id: str | None, names: tuple[str, ...]) -> pd.DataFrame:
    """The mix weights of one trial over its steps: step, layer, weight; layers in the mix's order."""
    weights = _weights(history, trial_id)
    layers = _layers(list(weights.columns.drop("step")), names)
    table = weights.rename(columns=layers).melt(id_vars="step", var_name="layer", value_name="weight")
    return table.dropna(subset=["weight"]).reset_index(drop=True)


def mix_weights(
    trials: pd.DataFrame, history: pd.DataFrame, trial_id: str | None, names: tuple[str, ...]
) -> pd.DataFrame:
    """The mix weights of one trial at its best epoch, the one whose checkpoint is kept: layer, weight."""
    weights = _weights(history, trial_id)
    best = numbers(trials[trials["trial_id"] == trial_id], "best_epoch").dropna()
    at_best = history.loc[weights.index]
    at_best = at_best[numbers(at_best, "epoch") == best.iloc[0]] if len(best) else at_best.tail(1)
    if at_best.empty:  # the history was thinned or edited: the last weights known are the nearest thing
        at_best = history.loc[weights.index].tail(1)
    layers = _layers(list(weights.columns.drop("step")), names)
    row = weights.loc[at_best.index[-1:], list(layers)].rename(columns=layers)
    row = row.melt(var_name="layer", value_name="weight")
    return row.dropna(subset=["weight"]).reset_index(drop=True)


def at_best(trials: pd.DataFrame, history: pd.DataFrame) -> pd.DataFrame:
    """The mix weights of several trials, a row each, at its best epoch: trial_id, then the weight columns."""
    columns = [column for column in weight_columns(history) if numbers(history, column).notna().any()]
    best = numbers(trials.set_index("trial_id"), "best_epoch").dropna()
    if not columns or "epoch" not in history.columns or best.empty:
        return pd.DataFrame(columns=["trial_id"])
    rows = history[history["trial_id"].isin(best.index)]
    rows = rows[numbers(rows, "epoch") == rows["trial_id"].map(best)]
    weights = pd.DataFrame({"trial_id": rows["trial_id"], **{name: numbers(rows, name) for name in columns}})
    return weights.dropna(subset=columns, how="all").drop_duplicates("trial_id", keep="last")


def mix_milestones(mix: pd.DataFrame) -> pd.DataFrame:
    """The table beside the history of p~: a row per layer, a column for the first, middle and last steps."""
    steps = sorted(mix["step"].unique())
    if not steps:
        return pd.DataFrame({"layer": pd.Series(dtype=str)})
    chosen = sorted({steps[round(share * (len(steps) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)})
    at = mix[mix["step"].isin(chosen)].drop_duplicates(["step", "layer"], keep="last")
    table = at.pivot(index="layer", columns="step", values="weight").reindex(mix["layer"].drop_duplicates())
    table.columns = [f"step {step:.0f}" for step in table.columns]
    return table.reset_index()


def mix_kind(trials: pd.DataFrame, trial_id: str | None) -> str:
    """Return what `trials.csv` says of a trial's mix: learned, uniform, single, last, or ""."""
    found = texts(trials[trials["trial_id"] == trial_id], "config/mix")
    return found[0] if found else ""


def weight_columns(history: pd.DataFrame) -> list[str]:
    """Return the columns of mix weights, in the order of the layers."""
    return sorted(column for column in history.columns if column.startswith("mix/weight_"))


def _curves(history: pd.DataFrame, score: str) -> dict[str, pd.DataFrame]:
    """Return trial_id -> its evaluations that have a score, in the order of steps."""
    if not {"step", score} <= set(history.columns):
        return {}
    table = pd.DataFrame({"trial_id": history["trial_id"]})
    table["step"], table[score] = numbers(history, "step"), numbers(history, score)
    table = table.dropna(subset=["step", score]).sort_values(["trial_id", "step"])
    return {str(trial_id): rows for trial_id, rows in table.groupby("trial_id", sort=False)}


def _weights(history: pd.DataFrame, trial_id: str | None) -> pd.DataFrame:
    """Return step and mix weights of one trial, rows and columns without any weight left out, by step."""
    columns = weight_columns(history)
    rows = history[history["trial_id"] == trial_id]
    table = pd.DataFrame(
        {"step": numbers(rows, "step"), **{column: numbers(rows, column) for column in columns}}
    )
    table = table.dropna(subset=["step"])
    used = [column for column in columns if table[column].notna().any()]
    return table[["step", *used]].dropna(subset=used, how="all").sort_values("step", kind="stable")


def _layers(columns: list[str], names: tuple[str, ...]) -> dict[str, str]:
    """Return column -> name of its layer: the hidden state of that position, else the number itself."""
    positions = {
        column: int(column.rsplit("_", 1)[-1]) for column in columns if column.rsplit("_", 1)[-1].isdigit()
    }
    return {
        column: layer_name(
            names[at - 1] if (at := positions.get(column, 0)) and at <= len(names) else str(at or column)
        )
        for column in columns
    }


def _median(ordered: list[float]) -> float:
    """Return the median of sorted values that may be infinite (inf - inf has no mean)."""
    if not ordered:
        return np.nan
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else (low + high) / 2
