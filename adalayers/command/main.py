"""What all study scripts share: from flags to a study that ran and its report."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adalayers.backbones import sources
from adalayers.command.examples import write_examples
from adalayers.command.flags import parse
from adalayers.config import TrialConfig, with_overrides
from adalayers.data.feature_plan import FeaturePlan, feature_plan
from adalayers.data.prepare import Prepared, prepare
from adalayers.data.request import DataRequest
from adalayers.errors import BadInput
from adalayers.progress import Rate, say
from adalayers.results.folder import Folder
from adalayers.results.redaction import redacted
from adalayers.study import Plan, Study
from adalayers.tasks import task as tasks
from adalayers.tasks.kinds import KINDS
from adalayers.tracking.mirror import Mirror, default_uri

DONE, ALL_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

WriteReport = Callable[[Folder], str]
WriteCover = Callable[[Folder, list[Folder]], str]


def main(
    study: Study, write_report: WriteReport, write_cover: WriteCover, argv: Sequence[str] | None = None
) -> int:
    """Run a study script; return its exit code: 0 done, 1 all trials failed, 2 bad input, 130 interrupted."""
    argv = list(sys.argv[1:] if argv is None else argv)
    command = " ".join([f"python studies/{study.name}.py", *(redacted(word) for word in argv)])
    try:
        flags = parse(study, argv)
        base = with_overrides(TrialConfig(), {**flags.fixed, "epochs": flags.epochs})
        cases = _cases(study, flags, base)
        if flags.dry_run:
            from adalayers.command.estimate import describe

            for case in cases:
                print(describe(case.prepared, case.plan, flags))
            return DONE
        return _run(study, flags, cases, write_report, write_cover, command)
    except BadInput as error:
        say(f"error: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        say(f"interrupted; continue with: {command}")
        return INTERRUPTED


@dataclass(frozen=True)
class _Case:
    """A study on one backbone and dataset, ready to run."""

    prepared: Prepared
    plan: Plan
    folder: Folder
    identity: dict[str, Any]
    before: dict[str, Any]


def _cases(study: Study, flags: argparse.Namespace, base: TrialConfig) -> list[_Case]:
    """Return all that is to run; every input is looked at before anything runs."""
    from adalayers.tuning.run import opened, study_plan
    from adalayers.tuning.session import check_address

    check_address(flags.address)
    for name in flags.backbone:
        sources.canonical(name)
    for name in flags.dataset:
        tasks.canonical(name)
    cases: list[_Case] = []
    asked = {
        field.name: getattr(flags, field.name)
        for field in dataclasses.fields(DataRequest)
        if field.name in flags
    }
    for backbone, dataset in itertools.product(flags.backbone, flags.dataset):
        prepared = prepare(DataRequest(**{**asked, "backbone": backbone, "dataset": dataset}))
        if study.task_kind not in (None, prepared.task.kind.name):
            raise BadInput(
                f"wanted a {KINDS[study.task_kind].title} dataset for {study.name}, {dataset} is one of "
                f"{prepared.task.kind.title}; name another"
            )
        plan = study_plan(study, prepared, base, flags.fixed)
        name = "-".join(
            [prepared.source.name, prepared.task.name, *([_safe(flags.label)] if flags.label else [])]
        )
        folder = Folder(flags.output).child(study.name).child(name)
        if any(case.folder.uri == folder.uri for case in cases):
            raise BadInput(f"wanted each backbone and dataset once, got {folder.uri} twice; name it once")
        identity = _identity(flags, prepared)
        before = {} if flags.fresh else opened(folder, identity)
        cases.append(_Case(prepared, plan, folder, identity, before))
    return cases


def _identity(flags: argparse.Namespace, prepared: Prepared) -> dict[str, Any]:
    """Return the flags that make a study, with names resolved: an alias and the full id are one study."""
    about = prepared.about()
    return {
        # Not the revision: a mirror does not know it, and the fingerprint says all that matters of it.
        **{f"backbone {key}": about["backbone"][key] for key in ("id", "fingerprint")},
        **{f"dataset {key}": about["dataset"][key] for key in ("source", "fingerprint")},
        **{
            name: getattr(flags, name)
            for name in ("label", "search", "scheduler", "seed", "epochs", "max_length", "precision", "smoke")
        },
        **{
            name: getattr(flags, name)
            for name in ("train_examples", "eval_examples", "text_column", "label_column")
        },
        "set": flags.fixed,
    }


def _safe(label: str) -> str:
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in label.lower()).strip("-.")
    if not safe:
        raise BadInput(f"wanted a --label with a letter or digit, got {label!r}; choose another")
    return safe


def _run(
    study: Study,
    flags: argparse.Namespace,
    cases: list[_Case],
    write_report: WriteReport,
    write_cover: WriteCover,
    command: str,
) -> int:
    from adalayers.tuning.run import Ask, Limits, run_study

    output = Folder(flags.output)
    tracking = flags.tracking_uri or default_uri(output)
    cache = Path(flags.cache_dir)
    began = time.monotonic()
    outcomes = []
    for case in cases:
        before = _set_aside(case) if flags.fresh else case.before
        say(f"{study.name} on {case.prepared.source.name} and {case.prepared.task.name}: {case.folder.uri}")
        features = feature_plan(flags, case.prepared, dry_run=False)
        say(f"hidden states: {features.mode} ({features.why})")
        data = case.prepared.data(features.mode, cache=cache, on_progress=_rates())
        spent = (time.monotonic() - began) / 3600
        limits = Limits(
            flags.cpus_per_trial,
            flags.gpus_per_trial,
            flags.max_concurrent,
            None if flags.max_hours is None else max(0.0, flags.max_hours - spent),
            flags.address,
        )
        ask = Ask(
            flags.search,
            flags.scheduler,
            flags.trials,
            flags.seeds,
            flags.seed,
            flags.fixed,
            case.identity,
            command,
            flags.smoke,
        )
        mirror = Mirror(
            tracking,
            experiment=study.name,
            run_name=case.folder.uri.rsplit("/", 1)[-1],
            study_key=before["id"],
            artifact_root=None,  # a sqlite file keeps them in `mlartifacts` beside it, a server where it wants
        )
        outcome = run_study(
            study, case.plan, data, case.folder, ask, limits, mirror, _on(case.prepared, features), before
        )
        report = write_report(case.folder)
        if flags.show_text:
            say(f"misclassified texts: {write_examples(case.folder, case.prepared.task)}")
        for sentence in mirror.finish(case.folder):
            say(sentence)
        say(f"{outcome.state}: {_counted(outcome.counts)}")
        outcomes.append(outcome)
        print(report, flush=True)
        if outcome.state == "interrupted":
            say(f"interrupted; continue with: {command}")
            return INTERRUPTED
    if len(cases) > 1:
        print(write_cover(output.child(study.name), [case.folder for case in cases]), flush=True)
    return ALL_FAILED if all(outcome.all_failed for outcome in outcomes) else DONE


def _counted(counts: dict[str, dict[str, int]]) -> str:
    """Return counts as people say them: "search 2 completed, 4 stopped; confirm 45 completed"."""
    stages = (
        f"{stage} {', '.join(f'{n} {status}' for status, n in statuses.items())}"
        for stage, statuses in sorted(counts.items(), reverse=True)
    )
    return "; ".join(stages) or "no trials"


def _set_aside(case: _Case) -> dict[str, Any]:
    from adalayers.tuning.run import opened

    if case.folder.exists():
        parent, name = case.folder.uri.rsplit("/", 1)
        aside = Folder(f"{parent}/{name}.{time.strftime('%Y%m%d-%H%M%S')}")
        case.folder.move("", aside)
        say(f"the earlier study is now {aside.uri}")
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
            "width": source.width,
            "parameters": prepared.backbone_parameters,
        },
        "dataset": {
            "name": task.name,
            **about["dataset"],
            "kind": task.kind.name,
            "labels": list(task.label_names),
            "metric": task.default_metric,
            "examples": {name: len(split) for name, split in task.splits.items()},
            "tokens": {name: len(encoded.input_ids) for name, encoded in prepared.encoded.items()},
            "truncated": prepared.truncated,
            "shared": task.shared,
            "baseline": {
                prefix: task.baseline(name)
                for name, prefix in (("validation", "val"), ("test", "test"))
                if name in task.splits
            },
        },
    }
