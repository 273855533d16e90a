"""A results folder -> what a report rests on: its frames, `study.json` as typed records, and the plan in them.

`study.json` may be old or made by hand: whatever it lacks has a default, and is named in `problems`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from adalayers.comparisons import PlannedArm, planned_comparisons
from adalayers.errors import BadInput
from adalayers.results import files as results
from adalayers.results.rescoring import contradictions
from adalayers.results.study_file import Factor, RequestRecord, StudyFile, parse
from adalayers.storage.folder import Folder
from reports.reading import factors as factoring
from reports.reading.frames import numbers
from reports.words import labels
from reports.words.text import count


@dataclass(frozen=True, kw_only=True)
class Plan(RequestRecord):
    """What a study was asked for, as its report reads it: what `study.json` lacks is as the trials have it.

    metric, control: "" where nothing says; smallest_effect: None
    baseline:        the trivial model's validation score; None where nothing says
    hidden_states:   names of the layers mixed by default ("01", "00" the embeddings)
    """

    study: str
    name: str
    baseline: float | None
    hidden_states: tuple[str, ...]

    @property
    def rate(self) -> float | None:
        """The learning rate of all arms that no search has tuned; None where they have none or several."""
        rates = {arm.config.get("lr") for arm in self.arms if arm.role != "best"}
        rate = rates.pop() if len(rates) == 1 else None
        return rate if isinstance(rate, int | float) else None

    def short(self, hyperparameter: str) -> str:
        """Return the label without its unit."""
        factor = next((factor for factor in self.factors if factor.name == hyperparameter), None)
        return factoring.name(factor) if factor else labels.short(f"config/{hyperparameter}")

    def symbol(self, hyperparameter: str) -> str:
        """Return what the head of a table calls a hyperparameter: a factor's label, else its name."""
        factor = next((factor for factor in self.factors if factor.name == hyperparameter), None)
        return factoring.short(factor) if factor else hyperparameter


@dataclass(frozen=True)
class Loaded:
    """A results folder as read, `study.json` as records, its plan, and sentences on everything missing or odd.

    withheld: confirmed trials that are not believed, by id, each with why; the frame of trials has no scores of them
    """

    results: results.Results
    study: StudyFile
    plan: Plan
    problems: tuple[str, ...]
    withheld: Mapping[str, str] = field(default_factory=dict)


def load(folder: Folder | str | Path) -> Loaded:
    """Read a results folder. Raises `BadInput` where it cannot be read at all."""
    try:
        read = results.load(folder)
    except OSError as error:
        raise BadInput(f"could not read the results in {folder}: {error}") from error
    try:
        study, missing = parse(read.study)
    except BadInput as error:
        raise BadInput(f"could not read {results.STUDY} in {folder}: {error}") from error
    plan = make_plan(study, read.trials, read.folder.uri)
    dataset = study.environment.dataset
    withheld = contradictions(
        read.trials,
        read.predictions,
        kind=dataset.kind,
        labels=dataset.labels,
        examples=dataset.examples,
    )
    withheld |= _twice(read.trials[~read.trials["trial_id"].isin(withheld)])
    trials = with_floor(without_scores(read.trials, withheld), plan.metric, dataset.baseline)
    believed = read.predictions[~read.predictions["trial_id"].isin(withheld)]
    read = replace(read, trials=trials, predictions=believed)
    lacking = f"`{results.STUDY}` has no {', '.join(f'`{path}`' for path in missing)}; what rests on it is left out."
    others = read.trials[~read.trials["trial_id"].isin(withheld)]
    problems = (*read.problems, *([lacking] if missing else []), *oddities(others, plan))
    return Loaded(read, study, plan, problems, withheld)


def make_plan(study: StudyFile, trials: pd.DataFrame, uri: str = "") -> Plan:
    """Return the plan that `study.json` states, with what the trials say where it says nothing."""
    asked, arms, factors = study.request, _arms(study, trials), _factors(study)
    comparisons = tuple(claim for claim in asked.comparisons if claim.weights) or planned_comparisons(
        arms, [factor.name for factor in factors], asked.control
    )
    known = {"arms": arms, "factors": factors, "comparisons": tuple(comparisons)}
    return Plan(
        **vars(asked) | known,
        study=study.study or "study",
        name=study.name or uri.rstrip("/").rsplit("/", 1)[-1],
        baseline=study.environment.dataset.baseline.get("val"),
        hidden_states=study.environment.hidden_states,
    )


def oddities(trials: pd.DataFrame, plan: Plan) -> list[str]:
    """Return sentences on odd rows: arms of two configurations, missing scores."""
    sentences = []
    done = trials[(trials["stage"] == "confirm") & (trials["status"] == "completed") & (trials["arm"] != "")]
    config = [column for column in trials.columns if column.startswith("config/")]
    mixed = done[["arm", *config]].drop_duplicates().groupby("arm").size()
    for arm in sorted(mixed[mixed > 1].index):
        sentences.append(
            f"Arm `{arm}` holds trials of more than one configuration; they are reported together."
        )
    score = f"val/{plan.metric}"
    if plan.metric and score not in trials.columns:
        sentences.append(f"`trials.csv` has no column `{score}`; no score is shown.")
    for column in (f"{split}/{plan.metric}" for split in ("val", "test") if plan.metric):
        lost = int(numbers(done, column).isna().sum()) if column in trials.columns else 0
        if lost:
            sentences.append(
                f"{count(lost, 'completed trial')} without a `{column}`: left out of every mean."
            )
    if plan.control and plan.control not in {arm.name for arm in plan.arms}:
        sentences.append(f"The control `{plan.control}` is not among the arms; no arm can be compared.")
    return sentences


def _twice(trials: pd.DataFrame) -> dict[str, str]:
    """Return the confirmed trials of one arm and seed, where there are several: nothing says which is meant."""
    ended = trials[(trials["stage"] == "confirm") & trials["status"].isin(["completed", "diverged"])]
    ended = ended[ended["arm"] != ""].dropna(subset=["seed"])
    again = ended[ended.duplicated(["arm", "seed"], keep=False)]
    return {
        str(trial_id): f"it is one of several of arm {arm}, seed {seed:.0f}"
        for trial_id, arm, seed in zip(again["trial_id"], again["arm"], again["seed"], strict=True)
    }


def without_scores(trials: pd.DataFrame, trial_ids: Collection[str]) -> pd.DataFrame:
    """Return the trials, some without scores and predictions; without these where another is of their arm and seed.

    A score that is no number is none.
    """
    scores = {
        name: numbers(trials, name) for name in trials.columns if str(name).startswith(("val/", "test/"))
    }
    if not trial_ids:
        return trials.assign(**scores)
    lost = trials["trial_id"].isin(list(trial_ids))
    of_pair = pd.MultiIndex.from_frame(trials[["stage", "arm", "seed"]])
    columns = {name: values.mask(lost) for name, values in scores.items()}
    columns |= {"predictions": trials["predictions"].mask(lost, "")}
    return trials.assign(**columns)[~(lost & of_pair.isin(of_pair[~lost]))]


def with_floor(trials: pd.DataFrame, metric: str, baseline: Mapping[str, float]) -> pd.DataFrame:
    """Return the trials, those of confirmed arms that diverged with the score of the trivial model."""
    diverged = (trials["stage"] == "confirm") & (trials["status"] == "diverged")
    columns = {f"{split}/{metric}": score for split, score in baseline.items()}
    present = {name: score for name, score in columns.items() if name in trials.columns}
    return trials.assign(**{name: trials[name].mask(diverged, score) for name, score in present.items()})


def _arms(study: StudyFile, trials: pd.DataFrame) -> tuple[PlannedArm, ...]:
    """Return the arms of `study.json` in their order, then those that only `trials.csv` knows, by name."""
    arms = {arm.name: arm for arm in study.request.arms if arm.name}
    for name in sorted(set(trials.loc[trials["stage"] == "confirm", "arm"]) - {"", *arms}):
        arms[name] = PlannedArm(name)
    return tuple(arms.values())


def _factors(study: StudyFile) -> tuple[Factor, ...]:
    """Return the factors of `study.json`, one of each name, else those that it calls scientific."""
    named = {factor.name: factor for factor in study.request.factors if factor.name}
    return tuple(named.values()) or tuple(
        Factor(name, name, scale="choice") for name in study.request.scientific
    )


def as_text(value: Any) -> str:
    """Return a value of `study.json` as one line of text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
