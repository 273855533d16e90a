"""A results folder -> what a report rests on: its frames, and `study.json` as typed records."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from adalayers.comparisons import PlannedArm
from adalayers.errors import BadInput
from adalayers.results import files
from adalayers.results.measures import MEASURES, damaged
from adalayers.results.rescoring import contradictions
from adalayers.results.study_file import RequestRecord, StudyFile, read_study
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import redacted
from reports.reading.frames import numbers
from reports.words import count


@dataclass(frozen=True)
class Loaded:
    """A results folder as read.

    Attributes:
        study: `study.json`; its request has also the arms that `trials.csv` alone knows.
        trials: A row per trial, the columns of `trials.csv`.
        history: A row per trial and evaluation; empty, with `trial_id`, where the file is missing.
        predictions: A row per confirmed trial, split and example; empty where the file is missing.
        evaluations: A row per trial, split, variant of its trained model and metric; empty where it is missing.
        problems: Sentences on what is missing or odd; the report shows them.
        withheld: Confirmed trials that are not believed, by id, each with why; `trials` has no scores of them.
    """

    folder: Folder
    study: StudyFile
    trials: pd.DataFrame
    history: pd.DataFrame
    predictions: pd.DataFrame
    evaluations: pd.DataFrame
    problems: Sequence[str] = ()
    withheld: Mapping[str, str] = field(default_factory=dict)


def load(folder: Folder | str | Path) -> Loaded:
    """Read a results folder; what is missing or disagrees is named in `problems`, not raised.

    A file of rows that is damaged is as one that is missing. Raises `BadInput` where `study.json` or `trials.csv`, on
    which all else rests, is missing or cannot be read.
    """
    try:
        return _load(files.study_folder(folder))
    except BadInput:  # one kind is an OSError too: a store that does not answer
        raise
    except OSError as error:
        place = redacted(getattr(folder, "uri", str(folder)))
        raise BadInput(f"could not read the results in {place}: {error}") from error


def _load(folder: Folder) -> Loaded:
    study, trials, problems = read_study(folder), files.read_trials(folder), []
    frames = {}
    for name in (files.HISTORY, files.PREDICTIONS, files.EVALUATIONS):
        frames[name], why = files.rows_or_why(folder, name)
        if why:
            problems.append(f"`{name}` is damaged; what depends on it is left out ({why}).")
        elif not folder.exists(name) and (name != files.EVALUATIONS or study.request.variants):
            problems.append(f"`{name}` is missing; what depends on it is left out.")
    if why := damaged(folder):
        problems.append(f"`{MEASURES}` is damaged; what depends on it is left out ({why}).")
    history, predictions, evaluations = frames.values()
    completed = (trials["status"] == "completed").any()
    if completed and not study.runs.published and not folder.exists(f"{files.BEST}/model.safetensors"):
        problems.append(f"`{files.BEST}/`, the best model, is missing.")
    evaluated = trials.loc[trials["status"].isin(["completed", "stopped"]), "trial_id"]
    without_history = sorted(set(evaluated) - set(history["trial_id"]))
    if without_history and len(history):
        problems.append(
            f"{len(without_history)} trials have no rows in `{files.HISTORY}`: {', '.join(without_history[:5])}"
            + ("…" if len(without_history) > 5 else ".")
        )
    if study.runs.counts != (counted := files.counts(trials)):
        problems.append(
            f"`{files.STUDY}` counts {study.runs.counts}, `{files.TRIALS}` holds {counted}; "
            "the rows are what is reported."
        )
    study = _with_arms_of(trials, study)
    request, dataset = study.request, study.environment.dataset
    withheld = contradictions(trials, predictions, dataset)
    ended = trials[(trials["stage"] == "confirm") & trials["status"].isin(["completed", "diverged"])]
    withheld |= _without_seed(ended)
    withheld |= _twice(ended[~ended["trial_id"].isin(withheld)])
    problems += oddities(trials[~trials["trial_id"].isin(withheld)], request)
    believed = predictions[~predictions["trial_id"].isin(withheld)]
    scored = with_floor(without_scores(trials, withheld), request.metric, dataset.baseline)
    return Loaded(folder, study, scored, history, believed, evaluations, problems, withheld)


def _with_arms_of(trials: pd.DataFrame, study: StudyFile) -> StudyFile:
    """Return a study whose request has also the arms that only `trials.csv` knows, by name."""
    known = {arm.name for arm in study.request.arms}
    others = sorted(set(trials.loc[trials["stage"] == "confirm", "arm"]) - {"", *known})
    arms = (*study.request.arms, *map(PlannedArm, others))
    return replace(study, request=replace(study.request, arms=arms))


def oddities(trials: pd.DataFrame, request: RequestRecord) -> list[str]:
    """Return sentences on odd rows: arms of two configurations, missing scores."""
    done = trials[(trials["stage"] == "confirm") & (trials["status"] == "completed") & (trials["arm"] != "")]
    config = [column for column in trials.columns if column.startswith("config/")]
    mixed = done[["arm", *config]].drop_duplicates().groupby("arm").size()
    sentences = [
        f"Arm `{arm}` holds trials of more than one configuration; they are reported together."
        for arm in sorted(mixed[mixed > 1].index)
    ]
    score = f"val/{request.metric}"
    if score not in trials.columns:
        sentences.append(f"`trials.csv` has no column `{score}`; no score is shown.")
    for column in trials.columns.intersection([score, f"test/{request.metric}"]):
        if lost := int(numbers(done, column).isna().sum()):
            sentences.append(
                f"{count(lost, 'completed trial')} without a `{column}`: left out of every mean."
            )
    if request.control not in {arm.name for arm in request.arms}:
        sentences.append(f"The control `{request.control}` is not among the arms; no arm can be compared.")
    return sentences


def _without_seed(ended: pd.DataFrame) -> dict[str, str]:
    """Return the confirmed trials whose seed is no whole number, each with why."""
    return {
        str(trial_id): "it has no seed" if pd.isna(seed) else f"its seed is {seed:g}, no whole number"
        for trial_id, seed in zip(ended["trial_id"], ended["seed"], strict=True)
        if pd.isna(seed) or seed % 1
    }


def _twice(ended: pd.DataFrame) -> dict[str, str]:
    """Return the confirmed trials of one arm and seed, where there are several: nothing says which is meant."""
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
    lost = trials["trial_id"].isin(list(trial_ids))
    of_pair = pd.MultiIndex.from_frame(trials[["stage", "arm", "seed"]])
    scores = [name for name in trials.columns if name.startswith(("val/", "test/"))]
    believed = {name: numbers(trials, name).mask(lost) for name in scores}
    believed["predictions"] = trials["predictions"].mask(lost, "")
    return trials.assign(**believed)[~(lost & of_pair.isin(of_pair[~lost]))]


def with_floor(trials: pd.DataFrame, metric: str, baseline: Mapping[str, float]) -> pd.DataFrame:
    """Return the trials, those of confirmed arms that diverged with the score of the trivial model."""
    diverged = (trials["stage"] == "confirm") & (trials["status"] == "diverged")
    floors = {f"{split}/{metric}": score for split, score in baseline.items()}
    scores = trials.columns.intersection([*floors])
    return trials.assign(**{name: trials[name].mask(diverged, floors[name]) for name in scores})


def as_text(value: Any) -> str:
    """Return a value of `study.json` as one line of text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
