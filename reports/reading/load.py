"""A results folder -> what a report rests on: its frames, and the plan that `study.json` states.

`study.json` may be old or made by hand: whatever it lacks has a default here, and is named in `problems`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from adalayers.errors import BadInput
from adalayers.results import files as results
from adalayers.results.folder import Folder

SCORE_ORDER = ("matthews", "f1", "f1_macro", "accuracy")
"""Where `study.json` names no metric, the first of these that `trials.csv` holds."""


@dataclass(frozen=True)
class Arm:
    """One confirmed arm. `group` is core, published, uniform, last or best; "" where nothing says."""

    name: str
    group: str = ""
    aliases: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What a study set out to do, as far as its report needs it.

    metric:          without prefix ("matthews"); "" where nothing says and there is no score
    control:         name of the arm that all others are compared with; "" where nothing says
    smallest_effect: smallest difference of the metric worth acting on; None where nothing says
    baseline:        the trivial model's validation score; None where nothing says
    hidden_states:   names of the layers mixed, in the order of `mix/weight_01`...
    """

    study: str
    name: str
    metric: str
    mode: str
    control: str
    smallest_effect: float | None
    arms: tuple[Arm, ...]
    baseline: float | None
    hidden_states: tuple[str, ...]
    looks: int

    def better(self, scores: pd.Series) -> pd.Series:
        """Return scores such that more is better, whatever the mode."""
        return -scores if self.mode == "min" else scores


@dataclass(frozen=True)
class Loaded:
    """A results folder as read, its plan, and sentences on everything missing or odd."""

    results: results.Results
    plan: Plan
    problems: tuple[str, ...]


def load(folder: Folder | str | Path) -> Loaded:
    """Read a results folder. Raises `BadInput` where it cannot be read at all."""
    try:
        read = results.load(folder)
    except BadInput:
        raise
    except KeyError as error:
        raise BadInput(f"could not read {results.TRIALS} in {folder}: it has no column {error}") from error
    except (
        AttributeError,
        ValueError,
        OSError,
    ) as error:  # AttributeError: a part of study.json is no object
        raise BadInput(f"could not read the results in {folder}: {error}") from error
    if not isinstance(read.study, dict):
        raise BadInput(f"could not read {results.STUDY} in {folder}: wanted a JSON object")
    plan, missing = make_plan(read.study, read.trials, read.folder.uri)
    return Loaded(read, plan, (*read.problems, *missing, *oddities(read.trials, plan)))


def get(study: Mapping[str, Any], *keys: str, default: Any = None) -> Any:
    """Return `study[key][key]...`, or `default` where a part of the way is missing or null."""
    value: Any = study
    for key in keys:
        if not isinstance(value, Mapping) or value.get(key) is None:
            return default
        value = value[key]
    return value


def mapping(study: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return `study[key][key]...` where it is an object, else an empty one."""
    value = get(study, *keys)
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def listing(study: Mapping[str, Any], *keys: str) -> list[Any]:
    """Return `study[key][key]...` where it is a list, else an empty one."""
    value = get(study, *keys)
    return list(value) if isinstance(value, (list, tuple)) else []


def make_plan(study: Mapping[str, Any], trials: pd.DataFrame, uri: str = "") -> tuple[Plan, list[str]]:
    """Return the plan that `study.json` states, and a sentence for each part of it that is missing."""
    missing: list[str] = []

    def wanted(*keys: str, without: str, default: Any = None) -> Any:
        value = get(study, *keys)
        if value is None:
            missing.append(f"`{results.STUDY}` has no `{'.'.join(keys)}`; {without}.")
        return default if value is None else value

    scores = [column.removeprefix("val/") for column in trials.columns if column.startswith("val/")]
    guess = next((name for name in (*SCORE_ORDER, *scores) if name in scores), "")
    folder = uri.rstrip("/").rsplit("/", 1)[-1]
    metric = wanted(
        "asked", "metric", without=f"`{guess}` is taken" if guess else "no score is shown", default=guess
    )
    plan = Plan(
        study=str(get(study, "study", default="study")),
        name=str(get(study, "name", default=folder)),
        metric=str(metric),
        mode="min" if get(study, "asked", "mode") == "min" else "max",
        control=str(wanted("asked", "control", without="arms are not compared", default="")),
        smallest_effect=_number(
            wanted("asked", "smallest_effect", without="`no difference seen` cannot be said of any arm")
        ),
        arms=_arms(
            wanted("asked", "arms", without="arms are those of `trials.csv`, without groups", default=[]),
            trials,
        ),
        baseline=_number(
            wanted("on", "dataset", "baseline", "val", without="the step of convergence is left out")
        ),
        hidden_states=_names(wanted("on", "hidden_states", without="layers are numbered from 1")),
        looks=int(_number(get(study, "happened", "looks")) or 1),
    )
    return plan, missing


def oddities(trials: pd.DataFrame, plan: Plan) -> list[str]:
    """Return sentences on odd rows: arms of two configurations, twice the same seed, missing scores."""
    found = []
    done = trials[(trials["stage"] == "confirm") & (trials["status"] == "completed") & (trials["arm"] != "")]
    config = [column for column in trials.columns if column.startswith("config/")]
    mixed = done[["arm", *config]].drop_duplicates().groupby("arm").size()
    again = done[done.duplicated(["arm", "seed"])].dropna(subset=["seed"])
    for arm in sorted({*mixed[mixed > 1].index, *again["arm"]}):
        if mixed[arm] > 1:
            found.append(
                f"Arm `{arm}` holds trials of more than one configuration; they are reported together."
            )
        twice = sorted(again.loc[again["arm"] == arm, "seed"].unique())
        if twice:
            seeds = ", ".join(str(int(seed)) for seed in twice)
            found.append(
                f"Arm `{arm}` has more than one trial of seed {seeds}; the smallest `trial_id` counts."
            )
    score = f"val/{plan.metric}"
    if plan.metric and score not in trials.columns:
        found.append(f"`trials.csv` has no column `{score}`; no score is shown.")
    elif plan.metric:
        lost = int(pd.to_numeric(done[score], errors="coerce").isna().sum())
        if lost:
            found.append(f"{lost} completed trials have no `{score}`; they are left out of every mean.")
    if plan.control and plan.control not in {arm.name for arm in plan.arms}:
        found.append(f"The control `{plan.control}` is not among the arms; no arm can be compared.")
    return found


def _arms(listed: Any, trials: pd.DataFrame) -> tuple[Arm, ...]:
    """Return the arms of `study.json` in their order, then those that only `trials.csv` knows, by name."""
    arms: dict[str, Arm] = {}
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, Mapping) and item.get("arm"):
            name = str(item["arm"])
            config = item.get("config")
            arms[name] = Arm(
                name,
                str(item.get("group") or ""),
                _names(item.get("aliases")),
                dict(config) if isinstance(config, Mapping) else {},
            )
    for name in sorted(set(trials.loc[trials["stage"] == "confirm", "arm"]) - {"", *arms}):
        arms[name] = Arm(name)
    return tuple(arms.values())


def _names(value: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in value) if isinstance(value, (list, tuple)) else ()


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def as_text(value: Any) -> str:
    """Return a value of `study.json` as one line of text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
