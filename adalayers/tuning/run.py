"""One study on one backbone and dataset: data, agenda, Ray's loop, and the record of it all."""

from __future__ import annotations

import datetime
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import ray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from ray import tune
from ray.tune.schedulers import FIFOScheduler

from adalayers.ask import Ask, Limits
from adalayers.config import Kind, TrialConfig, state_indices
from adalayers.data.prepare import Prepared
from adalayers.data.trial_data import TrialData
from adalayers.errors import BadInput
from adalayers.progress import TrialProgress, say
from adalayers.results import files as results
from adalayers.results.folder import Folder
from adalayers.results.provenance import provenance
from adalayers.results.record import StudyRecord
from adalayers.study import Plan, Setting, Study, plan
from adalayers.tracking.mirror import Mirror
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.searcher import StudySearcher, scheduler
from adalayers.tuning.session import Interrupt, ray_session
from adalayers.tuning.trainable import trainable


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


def run_study(
    study: Study,
    plan: Plan,
    data: TrialData,
    folder: Folder,
    *,
    ask: Ask,
    limits: Limits,
    mirror: Mirror,
    about: Mapping[str, Any],
    before: Mapping[str, Any],
) -> Outcome:
    """Run what the folder lacks of a study, and leave its files whole.

    about:  the `on` part of `study.json` as far as it is known of backbone and dataset
    before: the study as the folder holds it, {"id": ...} where it is new
    """
    record = StudyRecord(folder, data.metric)
    agenda = Agenda(plan, record, data, search=ask.search, trials=ask.trials, seeds=ask.seeds, seed=ask.seed)
    account = _Account(before, record)
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
        arms = [arm.name for arm in agenda.arms]
        document["happened"] = account.happened(state, record, on["git"], arms, smoke=ask.smoke)
        record.write_study(document)
        return document

    record.write()
    mirror.start(write_study("running"))
    best = record.best()
    progress = TrialProgress(data.metric, best=None if best is None else record.score(best))

    def on_end(row: dict[str, Any]) -> None:
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
    """What happened to a study over all its runs; `record` is its folder as this run found it."""

    def __init__(self, before: Mapping[str, Any], record: StudyRecord):
        happened = before.get("happened", {})
        self._runs = [dict(run) for run in happened.get("runs", [])]
        self._held = _confirmed(record)
        self._began = time.monotonic()
        self._started = _now()
        self.concurrency = happened.get("concurrency", 0)
        # A run killed between writing a trial's row and counting it: the row could be read all the same.
        missed = [row for row in self._held if row not in self._recorded()]
        if self._runs and len(self._held) > sum(run["confirmed"] for run in self._runs):
            self._runs[-1] = {**self._runs[-1], **_added(record, missed, self._runs[-1])}

    def happened(
        self,
        state: str,
        record: StudyRecord,
        git: Mapping[str, Any],
        arms: Iterable[str],
        *,
        smoke: bool,
    ) -> dict[str, Any]:
        """Return the `happened` part of `study.json`.

        looks:       runs after which new confirmed trials could be read
        test_opened: runs in which confirmed trials scored the test split
        runs:        every run: when, on which commit, how many confirmed trials it added, how many of them
                     scored the test split, and the seeds it added to each arm
        """
        run = {
            "started": self._started,
            "ended": _now(),
            "seconds": round(time.monotonic() - self._began, 1),
            "confirmed": 0,
            "test_scored": 0,
            "seeds": {name: [] for name in arms},
            **git,
        }
        run |= _added(record, [row for row in _confirmed(record) if row not in self._held], run)
        runs = [*self._runs, run]
        return {
            "started": runs[0]["started"],
            "ended": run["ended"],
            "state": state,
            "counts": _counts(record),
            "wall_seconds": round(sum(run["seconds"] for run in runs), 1),
            "training_seconds": round(sum(float(row.get("seconds") or 0) for row in record.rows.values()), 1),
            "concurrency": self.concurrency,
            "looks": max(1, sum(1 for run in runs if run["confirmed"])),
            "test_opened": sum(1 for run in runs if run.get("test_scored", run["confirmed"])),
            "smoke": smoke,
            "runs": runs,
        }

    def _recorded(self) -> set[tuple[str, int]]:
        """Return the arms and seeds that earlier runs counted."""
        return {
            (arm, seed) for run in self._runs for arm, seeds in run.get("seeds", {}).items() for seed in seeds
        }


def _confirmed(record: StudyRecord) -> dict[tuple[str, int], str]:
    """Return (arm, seed) -> trial_id of the completed confirmed trials."""
    return {
        (row["arm"], int(row["seed"])): trial_id
        for trial_id, row in record.rows.items()
        if row["stage"] == "confirm" and row["status"] == "completed"
    }


def _added(record: StudyRecord, rows: Iterable[tuple[str, int]], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run counts once it has also added these confirmed trials."""
    trials = _confirmed(record)
    seeds = {arm: list(held) for arm, held in run.get("seeds", {}).items()}
    rows = list(rows)
    for arm, seed in rows:
        seeds[arm] = sorted({*seeds.get(arm, []), seed})
    scored = sum(any(key.startswith("test/") for key in record.rows[trials[row]]) for row in rows)
    return {
        "confirmed": run["confirmed"] + len(rows),
        "test_scored": run.get("test_scored", run["confirmed"]) + scored,
        "seeds": seeds,
    }


def _counts(record: StudyRecord) -> dict[str, dict[str, int]]:
    return results.counts(pd.DataFrame(list(record.rows.values()), columns=["stage", "status"]))


def _asked(study: Study, plan: Plan, agenda: Agenda, ask: Ask, data: TrialData) -> dict[str, Any]:
    kind: Kind = data.shape.kind
    domains = plan.space.domains
    settings = plan.base.used(kind)
    space = study.space()
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
        "smallest_effect": ask.smallest_effect,
        "scientific": list(space.scientific),
        "nuisance": list(space.nuisance),
        "space": {name: _described(agenda.distributions[name]) for name in domains},
        "fixed": {
            name: value for name, value in settings.items() if name not in space.domains and name != "mix"
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
