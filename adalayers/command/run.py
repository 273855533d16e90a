"""Every case of a study, run and reported."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence

from adalayers.command.cases import tracking_uri
from adalayers.command.examples import write_examples
from adalayers.command.flags import Flags
from adalayers.console.command_line import DONE, MOST_FAILED
from adalayers.console.interrupts import INTERRUPTED
from adalayers.console.progress import Rate, show
from adalayers.data.feature_choice import feature_choice
from adalayers.data.prepare import Prepared
from adalayers.data.trial_data import TrialData
from adalayers.features.features import Mode
from adalayers.installed import own_module
from adalayers.results.files import REPORT
from adalayers.results.measures import write_shared
from adalayers.storage.folder import Folder
from adalayers.study import Study
from adalayers.tracking.mirror import Mirror
from adalayers.tuning.case import Case
from adalayers.tuning.run import run_study, why_most_failed
from adalayers.tuning.running_case import RunningCase

logger = logging.getLogger(__name__)


class _TimeIsUp(Exception):
    """--max-hours is over while hidden states are computed; those that are stored stay."""


def run(study: Study, flags: Flags, cases: list[Case]) -> int:
    """Run all cases in one Ray session, then report each, and all together; return the exit code."""
    hours, reports = flags.resources.max_hours, own_module("reports")
    deadline = math.inf if hours is None else time.monotonic() + 3600 * hours
    try:
        ready = [_ready(study, flags, case, deadline) for case in cases]
    except _TimeIsUp:
        logger.warning(
            "time is up before all hidden states are stored: the same command goes on with the rest"
        )
        return DONE
    running = [RunningCase(study, case, *found) for case, found in zip(cases, ready, strict=True)]
    run_study(running, resources=flags.resources, deadline=deadline)
    for case, ran in zip(cases, running, strict=True):
        if ran.state == "finished":
            from adalayers.measures.references import add_references  # scikit-learn, which takes a second

            add_references(case.folder, case.prepared.task, ran.data, flags.references)
        add_shared(case.folder, case.prepared)
        report = reports.write_report(case.folder)
        if flags.show_text:
            logger.info(f"misclassified texts: {write_examples(case.folder, case.prepared.task)}")
        if failed := ran.mirror.finish():
            logger.warning(failed)
        if page := ran.mirror.page:
            logger.info(f"MLflow: {page}")
        statuses = Counter(row.status for row in ran.record.rows.values())
        counted = ", ".join(f"{n} {status}" for status, n in statuses.items()) or "no trials"
        logger.info(f"{case.folder.name} {ran.state}: {counted}")
        show(report)
    root = Folder(flags.output).child(study.name)
    interrupted = any(ran.state == "interrupted" for ran in running)
    if len(cases) > 1 or (root.exists(REPORT) and not interrupted):
        show(reports.write_cover(root))
    if interrupted:
        return INTERRUPTED
    if why := why_most_failed([row for ran in running for row in ran.record.rows.values()]):
        logger.error(f"error: {why}")
    return MOST_FAILED if why else DONE


def add_shared(folder: Folder, prepared: Prepared) -> None:
    """Write the indices of examples that also stand in train into `measures.json`, where there are any."""
    shared = {role: index.tolist() for role, index in prepared.also_in_train.items()}
    if any(shared.values()):
        write_shared(folder, shared)


def _ready(study: Study, flags: Flags, case: Case, deadline: float) -> tuple[Mode, TrialData, Mirror]:
    """Return where a case's hidden states come from, its data with them, and its mirror."""
    prepared, folder, uri = case.prepared, case.folder, tracking_uri(flags)
    logger.info(f"{study.name} on {prepared.source.name} and {prepared.task.name}: {folder.uri}")
    mirror = Mirror(uri, folder, experiment=study.name, run_name=folder.name, study_key=case.before.id)
    mirror.check()
    if study.measures:
        _measure(study, flags, case)
    mode, why = feature_choice(prepared, flags.features, flags.cache_dir, flags.resources)
    logger.info(f"hidden states: {mode} ({why})")
    data = prepared.data(mode, cache=flags.cache_dir, on_progress=_rates(deadline))
    return mode, data, mirror


def _measure(study: Study, flags: Flags, case: Case) -> None:
    """Take the study's measures of a case, before anything is trained."""
    from adalayers.measures import measure  # scikit-learn: for studies that measure alone
    from adalayers.measures.case_data import CaseData

    for measured in measure(study.measures, CaseData(case.prepared, flags.own), case.folder).values():
        nothing = (
            "" if measured.nothing is None else f" (where there is nothing to find: {measured.nothing:.3g})"
        )
        logger.info(f"{measured.title}: {measured.why or f'{measured.value:.3g}, {measured.unit}{nothing}'}")


def move_aside(folders: Sequence[Folder]) -> None:
    """Rename the folders of earlier studies."""
    for folder in filter(Folder.exists, folders):
        aside = folder.parent().child(f"{folder.name}.{time.strftime('%Y%m%d-%H%M%S')}")
        folder.move("", aside)
        logger.info(f"the earlier study is now {aside.uri}")


def _rates(deadline: float) -> Callable[[str, int, int], None]:
    """Return what says how fast hidden states are computed, and raises `_TimeIsUp` after the deadline."""
    rates: dict[str, Rate] = {}

    def on_progress(split: str, done: int, total: int) -> None:
        rate = rates.setdefault(split, Rate(f"hidden states of {split}"))
        rate(done, total)
        if time.monotonic() > deadline and done < total:
            raise _TimeIsUp

    return on_progress
