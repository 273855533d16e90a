"""One study on one backbone and dataset: data, agenda, Ray's loop, and the record of it all."""

from __future__ import annotations

import datetime
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import ray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from ray import tune
from ray.tune.schedulers import FIFOScheduler

from adalayers import results
from adalayers.config import Kind, TrialConfig, state_indices
from adalayers.data import TrialData
from adalayers.errors import BadInput
from adalayers.prepare import Prepared
from adalayers.progress import TrialProgress, say
from adalayers.provenance import provenance
from adalayers.record import StudyRecord
from adalayers.results import STUDY, Folder
from adalayers.study import Plan, Setting, Study, plan
from adalayers.tracking import Mirror
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.searcher import StudySearcher, scheduler
from adalayers.tuning.session import Interrupt, ray_session
from adalayers.tuning.trainable import trainable


@dataclass(frozen=True)
class Ask:
    """What a study was asked for; all of `identity` but none of `trials` and `seeds` makes it another study.

    identity: the flags that make the study, as they stand in `study.json`
    fixed:    hyperparameters of --set
    """

    search: str
    scheduler: str
    trials: int
    seeds: int
    seed: int
    fixed: dict[str, Any]
    identity: dict[str, Any]
    command: str
    smoke: bool = False


@dataclass(frozen=True)
class Limits:
    """With what a study may run; none of it changes a number.

    gpus_per_trial: None: one where there is a GPU; max_concurrent: None: as many as the resources allow
    """

    cpus_per_trial: float = 1.0
    gpus_per_trial: float | None = None
    max_concurrent: int | None = None
    max_hours: float | None = None
    address: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How a study ended: `state` is finished, interrupted or "time is up"; `counts` by stage and status."""

    state: str
    counts: dict[str, dict[str, int]]

    @property
    def all_failed(self) -> bool:
        statuses = {status for stage in self.counts.values() for status, n in stage.items() if n}
        return bool(statuses) and statuses <= {"failed", "diverged"}


def study_plan(study: Study, prepared: Prepared, base: TrialConfig, fixed: dict[str, Any]) -> Plan:
    """Return what the study will run on this data. Raises `BadInput` where that is impossible."""
    base.check_states(len(state_indices(base.hidden_states, prepared.source.layers, prepared.source.family)))
    return plan(study, Setting(prepared.task.name, prepared.shape, fixed), base)


def opened(folder: Folder, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the study that the folder holds, or the start of a new one, with an id of its own.

    Raises `BadInput` where the folder holds another study, naming the first difference.
    """
    if not folder.exists(STUDY):
        return {"id": uuid.uuid4().hex}
    study = folder.read_json(STUDY)
    held = study.get("asked", {}).get("flags", {})
    wanted = results.plain(identity)
    for name in {**held, **wanted}:
        if held.get(name) != wanted.get(name):
            raise BadInput(
                f"wanted a study with {name} = {wanted.get(name)}, "
                f"{folder.uri} holds one with {name} = {held.get(name)}; "
                "keep both with --label NAME, or set the old one aside with --fresh"
            )
    return study


def run_study(
    study: Study,
    plan: Plan,
    data: TrialData,
    folder: Folder,
    ask: Ask,
    limits: Limits,
    mirror: Mirror,
    about: Mapping[str, Any],
    before: Mapping[str, Any],
) -> Outcome:
    """Run what the folder lacks of a study, and leave its files whole.

    about:  the `on` part of `study.json` as far as it is known of backbone and dataset
    before: the study as the folder holds it, from `opened`
    """
    record = StudyRecord(folder, data.metric)
    agenda = Agenda(plan, record, data, search=ask.search, trials=ask.trials, seeds=ask.seeds, seed=ask.seed)
    account = _Account(before)
    interrupt = Interrupt(limits.max_hours)
    on = {**about, "hidden_states": _states(plan, data), **provenance()}

    def write_study(state: str) -> dict[str, Any]:
        asked = _asked(study, plan, agenda, ask, data)
        name = folder.uri.rsplit("/", 1)[-1]
        document = {
            "format": 1,
            "id": before["id"],
            "study": study.name,
            "name": name,
            "asked": asked,
            "on": on,
        }
        document["happened"] = account.happened(state, record, on["git"], smoke=ask.smoke)
        record.write_study(document)
        return document

    record.write()
    mirror.start(write_study("running"))
    best = record.best()
    progress = TrialProgress(data.metric, best=None if best is None else record.score(best))

    def on_end(row: dict[str, Any]) -> None:
        account.ended(row)
        write_study("running")  # so that a run that is killed is counted by the next
        mirror.trial(row, record.history(row["trial_id"]))
        progress.ended(row, agenda.remaining(), agenda.total())

    if agenda.remaining():
        searcher = StudySearcher(agenda, record, threads=max(1, int(limits.cpus_per_trial)), on_end=on_end)
        stopping = scheduler(ask.scheduler, agenda, searcher, epochs=plan.base.epochs)
        with interrupt.listening(), ray_session(limits.address):
            resources, account.concurrency = _resources(limits)
            left = agenda.remaining()
            say(f"{agenda.total() - left} trials done, {left} to run, {account.concurrency} at a time")
            _fit(searcher, stopping, data, resources, account.concurrency, interrupt)
        for identity, row in record.rows.items():
            if row["status"] == "unfinished":
                record.end(identity)
    else:
        say("all trials are done, nothing to run")
    record.write()
    state = interrupt.reason or "finished"
    write_study(state)
    return Outcome(state, _counts(record))


def _fit(
    searcher: StudySearcher,
    stopping: FIFOScheduler,
    data: TrialData,
    resources: dict[str, float],
    concurrency: int,
    interrupt: Interrupt,
) -> None:
    """Run Ray's loop until the searcher has no more trials, or the study is interrupted."""
    scratch = tempfile.mkdtemp(prefix="adalayers-ray-")
    try:
        tune.Tuner(
            tune.with_resources(tune.with_parameters(trainable, data=data), resources),
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                scheduler=stopping,
                num_samples=-1,
                reuse_actors=True,
                max_concurrent_trials=concurrency,
            ),
            run_config=tune.RunConfig(
                # Ray's own state is never read back: the results folder is what a study continues from.
                storage_path=scratch,
                name="study",
                stop=interrupt,
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=1),
            ),
        ).fit()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _resources(limits: Limits) -> tuple[dict[str, float], int]:
    """Return what one trial takes, and how many fit at once. Raises `BadInput` where none fits."""
    have = ray.cluster_resources()
    gpus = limits.gpus_per_trial
    if gpus is None:
        gpus = 1.0 if have.get("GPU", 0) else 0.0
    want = {"cpu": limits.cpus_per_trial, **({"gpu": gpus} if gpus else {})}
    fits = [int(have.get(name.upper(), 0) / amount) for name, amount in want.items()]
    if min(fits) < 1:
        raise BadInput(
            f"wanted {want} for a trial, the machines have {have.get('CPU', 0):g} CPUs "
            f"and {have.get('GPU', 0):g} GPUs; "
            "lower --cpus-per-trial or --gpus-per-trial"
        )
    return want, min([*fits, *([limits.max_concurrent] if limits.max_concurrent else [])])


class _Account:
    """What happened to a study over all its runs."""

    def __init__(self, before: Mapping[str, Any]):
        self._before = before.get("happened", {})
        self._began = time.monotonic()
        self._started = _now()
        self._confirmed = 0
        self.concurrency = self._before.get("concurrency", 0)

    def ended(self, row: Mapping[str, Any]) -> None:
        if row["stage"] == "confirm" and row["status"] == "completed":
            self._confirmed += 1

    def happened(
        self, state: str, record: StudyRecord, git: Mapping[str, Any], *, smoke: bool
    ) -> dict[str, Any]:
        """Return the `happened` part of `study.json`.

        looks:       runs after which new confirmed trials could be read
        test_opened: runs in which confirmed trials scored the test split
        """
        run = {
            "started": self._started,
            "seconds": round(time.monotonic() - self._began, 1),
            "confirmed": self._confirmed,
            **git,
        }
        runs = [*self._before.get("runs", []), run]
        opened = sum(1 for run in runs if run["confirmed"])
        return {
            "started": runs[0]["started"],
            "ended": _now(),
            "state": state,
            "counts": _counts(record),
            "wall_seconds": round(sum(run["seconds"] for run in runs), 1),
            "training_seconds": round(sum(float(row.get("seconds") or 0) for row in record.rows.values()), 1),
            "concurrency": self.concurrency,
            "looks": max(1, opened),
            "test_opened": opened,
            "smoke": smoke,
            "runs": runs,
        }


def _counts(record: StudyRecord) -> dict[str, dict[str, int]]:
    return results.counts(pd.DataFrame(list(record.rows.values()), columns=["stage", "status"]))


def _asked(study: Study, plan: Plan, agenda: Agenda, ask: Ask, data: TrialData) -> dict[str, Any]:
    kind: Kind = data.shape.kind
    domains = plan.space.domains
    settings = plan.base.used(kind)
    return {
        "question": study.question,
        "command": ask.command,
        "flags": ask.identity,
        "trials": ask.trials,
        "seeds": ask.seeds,
        "seed": ask.seed,
        "epochs": plan.base.epochs,
        "metric": data.metric,
        "mode": "max",
        "control": plan.control,
        "smallest_effect": study.smallest_effect,
        "scientific": list(study.space.scientific),
        "nuisance": list(study.space.nuisance),
        "space": {name: _described(agenda.distributions[name]) for name in domains},
        "fixed": {
            name: value
            for name, value in settings.items()
            if name not in study.space.domains and name != "mix"
        },
        "set": ask.fixed,
        "search": ask.search,
        "scheduler": ask.scheduler,
        "arms": [
            {
                "arm": arm.name,
                "group": arm.group,
                "aliases": list(arm.aliases),
                "config": arm.config.used(kind),
            }
            for arm in agenda.arms
        ],
        "dropped_arms": [{"arm": name, "reason": reason} for name, reason in agenda.dropped],
        "notes": [*plan.notes, *agenda.notes],
    }


def _described(domain: BaseDistribution) -> str:
    if isinstance(domain, CategoricalDistribution):
        return f"choice({', '.join(str(choice) for choice in domain.choices)})"
    assert isinstance(domain, (FloatDistribution, IntDistribution))
    return f"{'log' if domain.log else ''}uniform({domain.low:g}, {domain.high:g})"


def _states(plan: Plan, data: TrialData) -> list[str]:
    """Return the hidden states mixed, as `mix/weight_<state>` names them; 00 is the embeddings."""
    return [
        f"{i:02d}" for i in state_indices(plan.base.hidden_states, data.shape.n_layers, data.shape.family)
    ]


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
