"""Every case of a study, run and reported."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from adalayers.backbones.objectives import objective
from adalayers.command.cases import Case, tracking_uri
from adalayers.command.examples import write_examples
from adalayers.command.flags import Flags
from adalayers.command.identity import opened
from adalayers.console.progress import Rate
from adalayers.data.feature_plan import FeaturePlan, feature_plan
from adalayers.data.prepare import Prepared
from adalayers.data.trial_data import TrialData
from adalayers.request import Resources
from adalayers.storage.folder import Folder
from adalayers.study import Study
from adalayers.tracking.mirror import Mirror
from adalayers.tuning.run import CaseToRun, run_study

if TYPE_CHECKING:
    from adalayers.command.main import Reports

logger = logging.getLogger(__name__)

Ended = Literal["done", "all failed", "interrupted"]


def run(
    study: Study,
    flags: Flags,
    cases: list[Case],
    *,
    reports: Reports,
) -> Ended:
    """Run all cases in one Ray session, then report each, and all together; return how it ended."""
    began = time.monotonic()
    ready = [_ready(study, flags, case) for case in cases]
    resources = _left(flags.resources, time.monotonic() - began)
    outcomes = run_study(study, ready, ask=flags.study, resources=resources, undecided=reports.undecided_arms)
    for case, running, outcome in zip(cases, ready, outcomes, strict=True):
        report = reports.write_report(case.folder)
        if flags.show_text:
            logger.info(f"misclassified texts: {write_examples(case.folder, case.prepared.task)}")
        for sentence in running.mirror.finish(case.folder):
            logger.warning(sentence)
        logger.info(f"{case.name} {outcome.state}: {_counted(outcome.counts)}")
        print(report, flush=True)
    if len(cases) > 1:
        root = Folder(flags.output).child(study.name)
        print(reports.write_cover(root, [case.folder for case in cases]), flush=True)
    if any(outcome.state == "interrupted" for outcome in outcomes):
        return "interrupted"
    if not all(outcome.all_failed for outcome in outcomes):
        return "done"
    why = next((outcome.why for outcome in outcomes if outcome.why), "no reason is known")
    logger.error(f"error: all trials failed; the first one: {why}")
    return "all failed"


def _ready(study: Study, flags: Flags, case: Case) -> CaseToRun:
    """Return the case with its hidden states, computed where they are missing, and its mirror."""
    before = _set_aside(case) if flags.fresh else case.before
    logger.info(
        f"{study.name} on {case.prepared.source.name} and {case.prepared.task.name}: {case.folder.uri}"
    )
    if study.measures:
        _measure(study, flags, case)
    features, data = _data(flags, case.prepared)
    mirror = Mirror(
        tracking_uri(flags),
        experiment=study.name,
        run_name=case.name,
        study_key=before["id"],
        artifact_root=None,  # a sqlite file keeps them in `mlartifacts` next to it, a server where it wants
    )
    return CaseToRun(
        plan=case.plan,
        data=data,
        folder=case.folder,
        mirror=mirror,
        smallest_effect=case.smallest_effect,
        identity=case.identity,
        about=_on(case.prepared, features),
        before=before,
    )


def _measure(study: Study, flags: Flags, case: Case) -> None:
    """Take the study's measures of a case, before anything is trained."""
    from adalayers.measures import measure  # scikit-learn: for studies that measure alone
    from adalayers.measures.case_data import CaseData

    for of in measure(study.measures, CaseData(case.prepared, flags.own), case.folder).values():
        nothing = "" if of.nothing is None else f" (where there is nothing to find: {of.nothing:.3g})"
        logger.info(f"{of.title}: {of.why or f'{of.value:.3g}, {of.unit}{nothing}'}")


def _left(resources: Resources, seconds: float) -> Resources:
    """Return the resources with what is left of their hours after `seconds`."""
    if resources.max_hours is None:
        return resources
    return dataclasses.replace(resources, max_hours=max(0.0, resources.max_hours - seconds / 3600))


def _data(flags: Flags, prepared: Prepared) -> tuple[FeaturePlan, TrialData]:
    """Return how hidden states are had, and the data of a case with them, computed where they are missing."""
    features = feature_plan(
        prepared,
        flags.features,
        flags.cache_dir,
        gpus_per_trial=flags.resources.gpus_per_trial,
        dry_run=False,
    )
    logger.info(f"hidden states: {features.mode} ({features.why})")
    return features, prepared.data(features.mode, cache=flags.cache_dir, on_progress=_rates())


def _counted(counts: dict[str, dict[str, int]]) -> str:
    """Return counts as people say them: "search 2 completed, 4 stopped; confirm 45 completed"."""
    stages = (
        f"{stage} {', '.join(f'{n} {status}' for status, n in statuses.items())}"
        for stage, statuses in sorted(counts.items(), reverse=True)
    )
    return "; ".join(stages) or "no trials"


def _set_aside(case: Case) -> dict[str, Any]:
    """Rename the folder of an earlier study; return the start of a new one."""
    if case.folder.exists():
        aside = case.folder.parent().child(f"{case.folder.name}.{time.strftime('%Y%m%d-%H%M%S')}")
        case.folder.move("", aside)
        logger.info(f"the earlier study is now {aside.uri}")
    return opened(case.folder, {})


def _rates() -> Callable[[str, int, int], None]:
    rates: dict[str, Rate] = {}

    def on_progress(split: str, done: int, total: int) -> None:
        rate = rates.setdefault(split, Rate(f"hidden states of {split}", "sequences"))
        rate(done, total)

    return on_progress


def _on(prepared: Prepared, features: FeaturePlan) -> dict[str, Any]:
    source, task, about = prepared.source, prepared.task, prepared.about()
    return {
        "features": {"mode": features.mode, "precision": prepared.request.precision},
        "backbone": {
            "name": source.name,
            **about["backbone"],
            "family": source.family,
            "layers": source.layers,
            "streams": [dataclasses.asdict(stream) for stream in source.streams],
            "width": source.width,
            "parameters": prepared.backbone_parameters[0],
            "layer_parameters": prepared.backbone_parameters[1],
            "objective": objective(source),
        },
        "dataset": {
            "name": task.name,
            **about["dataset"],
            "kind": task.kind.name,
            "task": task.title,
            "labels": list(task.label_names),
            "metric": task.metric,
            "examples": {name: len(split) for name, split in task.splits.items()},
            "tokens": {name: len(encoded.input_ids) for name, encoded in prepared.encoded.items()},
            "truncated": prepared.truncated,
            "shared": task.shared,
            "baseline": {
                prefix: task.baseline(name)
                for name, prefix in (("validation", "val"), ("test", "test"))
                if name in task.splits
            },
            "distribution": task.distribution,
        },
    }
