"""A study: its cases, their agendas, Ray's loop, and the record of it all."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import ray
from ray import tune
from ray.tune.schedulers import FIFOScheduler

from adalayers.data.trial_data import TrialData
from adalayers.errors import BadInput
from adalayers.request import Resources
from adalayers.results.provenance import software
from adalayers.study import Study
from adalayers.tuning.case import ReadyCase
from adalayers.tuning.cluster import share
from adalayers.tuning.ray_private import withhold_credentials
from adalayers.tuning.running_case import FAILED, Reports, RunningCase, StudyOutcome
from adalayers.tuning.scratch import scratch_folder
from adalayers.tuning.searcher import Abandoned, SearchScheduler, StudySearcher
from adalayers.tuning.session import Interrupt, ray_session
from adalayers.tuning.trainable import trainable

logger = logging.getLogger(__name__)


def most_failed(outcomes: Sequence[StudyOutcome]) -> bool:
    """Return whether more than half of the trials of all cases failed, or each one failed or diverged."""
    total = sum(outcome.number() for outcome in outcomes)
    failed, no_scores = (
        sum(outcome.number(*names) for outcome in outcomes) for names in (("failed",), FAILED)
    )
    return total > 0 and (2 * failed > total or no_scores == total)


def run_study(
    study: Study,
    cases: Sequence[ReadyCase],
    *,
    resources: Resources,
    deadline: float | None,
    reports: Reports,
) -> list[StudyOutcome]:
    """Run what the folders lack of a study, all cases in one Ray session, and leave their files whole.

    Args:
        study: The question.
        cases: A backbone and a dataset each, prepared.
        resources: What trials may use.
        deadline: By `time.monotonic`, in seconds, at which it ends in good order; None for none.
        reports: Says which arms of a case need more seeds.

    Raises:
        BadInput: For a cluster that cannot be joined, or whose machines cannot run trials.
    """
    running = [RunningCase(study, case, reports) for case in cases]
    interrupt = Interrupt(deadline)

    if left := sum(case.agenda.remaining() for case in running):
        searcher = StudySearcher(running, resources)
        data = [case.data for case in cases]
        request = cases[0].case.request  # but for the data, that of all
        stopping = SearchScheduler(request.scheduler, searcher, epochs=request.epochs)
        try:
            with ray_session(resources.address):
                per_trial, concurrency = _per_trial(resources)
                share([ready.case.folder for ready in cases], data)
                searcher.concurrency, searcher.on_gpu = concurrency, "gpu" in per_trial
                for case in running:
                    case.log.concurrency = concurrency
                total = sum(case.agenda.total() for case in running)
                logger.info(f"{total - left} trials done, {left} to run, {concurrency} at a time")
                _fit(searcher, stopping, data, per_trial, concurrency, interrupt, resources)
        except KeyboardInterrupt:
            interrupt.reason = "interrupted"
        except Abandoned as abandoned:
            raise abandoned.__cause__ or abandoned from None
    else:
        logger.info("all trials are done, nothing to run")
    return [case.close(interrupt.reason or "finished") for case in running]


def _fit(
    searcher: StudySearcher,
    stopping: FIFOScheduler,
    data: Sequence[TrialData],
    per_trial: dict[str, float],
    concurrency: int,
    interrupt: Interrupt,
    resources: Resources,
) -> None:
    """Run Ray's loop until the searcher has no more trials, or the study is interrupted."""
    withhold_credentials()
    stored = [ray.put(case_data) for case_data in data]  # a trial fetches that of its own case alone
    # What a trial failed of is in its row; Tune would log it with its traceback, each time.
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    with scratch_folder() as scratch:
        tune.Tuner(
            tune.with_resources(
                tune.with_parameters(trainable, data=stored, software=software(), resources=resources),
                per_trial,
            ),
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                scheduler=stopping,
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


def _per_trial(resources: Resources) -> tuple[dict[str, float], int]:
    """Return what one trial takes, and how many fit at once. Raises `BadInput` where none fits."""
    have = ray.cluster_resources()
    cpus, gpus = have.get("CPU", 0), have.get("GPU", 0)
    each = resources.gpus(gpus)
    want = {"cpu": resources.cpus_per_trial, **({"gpu": each} if each else {})}
    if not (fits := resources.at_a_time(cpus=cpus, gpus=gpus)):
        raise BadInput(
            f"wanted {want} for a trial, the machines have {cpus:g} CPUs and {gpus:g} GPUs; lower --cpus-per-trial or "
            "--gpus-per-trial"
        )
    return want, fits
