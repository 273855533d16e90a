"""A study: its cases, their agendas, Ray's loop, and the record of it all."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import ray
from ray import tune

from adalayers.request import Resources
from adalayers.results.provenance import software
from adalayers.results.trial_row import TrialRow
from adalayers.tuning.cluster import share
from adalayers.tuning.ray_private import withhold_credentials
from adalayers.tuning.running_case import RunningCase
from adalayers.tuning.searcher import Abandoned, SearchScheduler, StudySearcher
from adalayers.tuning.session import Interrupt, ray_session
from adalayers.tuning.trainable import trainable

logger = logging.getLogger(__name__)


def why_most_failed(rows: Sequence[TrialRow]) -> str:
    """Say so where more than half of the trials failed, or each one failed or diverged; else ""."""
    without_score = [row for row in rows if row.status in ("failed", "diverged")]
    failed, no_scores, total = sum(row.status == "failed" for row in rows), len(without_score), len(rows)
    if not total or (2 * failed <= total and no_scores < total):
        return ""
    why = next((row.error for row in without_score if row.error), "no reason is known")
    return f"{'all' if no_scores == total else f'{no_scores} of {total}'} trials failed; the first one: {why}"


def run_study(cases: Sequence[RunningCase], *, resources: Resources, deadline: float) -> None:
    """Run what the folders lack of a study, all cases in one Ray session, and leave their files whole.

    Args:
        cases: A backbone and a dataset each.
        resources: What trials may use.
        deadline: By `time.monotonic`, in seconds, at which it ends in good order.

    Raises:
        BadInput: For a cluster that cannot be joined, or whose machines cannot run trials.
    """
    interrupt = Interrupt(deadline)
    if any(case.agenda.remaining() for case in cases):
        try:
            with ray_session(resources.address) as scratch:
                _fit(cases, resources, interrupt, scratch)
        except KeyboardInterrupt:
            interrupt.reason = "interrupted"
        except Abandoned as abandoned:
            raise abandoned.__cause__ or abandoned from None
    else:
        logger.info("all trials are done, nothing to run")
    for case in cases:
        case.close(interrupt.reason or "finished")


def _fit(cases: Sequence[RunningCase], resources: Resources, interrupt: Interrupt, scratch: Path) -> None:
    """Run Ray's loop until there are no more trials, or the study is interrupted."""
    have = (node["Resources"] for node in ray.nodes() if node["Alive"])
    machines = [(of_node.get("CPU", 0), of_node.get("GPU", 0)) for of_node in have]
    concurrency, gpus_per_trial = resources.require_room(machines), resources.gpus(machines)
    per_trial = {"cpu": resources.cpus_per_trial, **({"gpu": gpus_per_trial} if gpus_per_trial else {})}
    data = [case.data for case in cases]
    share([case.case.folder for case in cases], data)
    searcher = StudySearcher(cases, resources, concurrency=concurrency, on_gpu=gpus_per_trial > 0)
    request = cases[0].case.request  # but for the data, that of all
    for case in cases:
        case.log.concurrency = concurrency
    left = sum(case.agenda.remaining() for case in cases)
    total = sum(case.agenda.total() for case in cases)
    logger.info(f"{total - left} trials done, {left} to run, {concurrency} at a time")
    withhold_credentials()
    stored = [ray.put(case_data) for case_data in data]  # a trial fetches that of its own case alone
    # What a trial failed of is in its row; Tune would log it with its traceback, each time.
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    train = tune.with_parameters(trainable, data=stored, software=software(), resources=resources)
    tune.Tuner(
        tune.with_resources(train, per_trial),
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            scheduler=SearchScheduler(request.scheduler, searcher, epochs=request.epochs),
            num_samples=-1,
            reuse_actors=True,
            max_concurrent_trials=concurrency,
        ),
        run_config=tune.RunConfig(
            # Ray's own state is never read back: the results folder is what a study continues from.
            storage_path=str(scratch),
            name="study",
            stop=interrupt,
            verbose=0,
            callbacks=[searcher.watch],
            failure_config=tune.FailureConfig(max_failures=resources.retries),
        ),
    ).fit()
