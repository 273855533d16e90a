"""The cases of a study: its backbones with its datasets, each looked at before anything runs."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Callable

import torch

from adalayers.backbones import sources
from adalayers.command.flags import Flags
from adalayers.command.identity import check_plan, check_rows, new_study, opened, smallest_effect
from adalayers.config import TrialConfig, with_overrides
from adalayers.data.prepare import Prepared, prepare
from adalayers.errors import BadInput
from adalayers.request import DataRequest
from adalayers.results.study_file import RequestRecord
from adalayers.states import Shape
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import reason
from adalayers.study import Setting, Study, StudyPlan, base_config
from adalayers.study import plan as study_plan
from adalayers.tasks import task as tasks
from adalayers.tasks.catalog import known_as
from adalayers.tasks.kinds import KINDS
from adalayers.tracking.mirror import check_uri, default_uri
from adalayers.tuning.case import Case
from adalayers.tuning.cluster import check_address, cluster_address
from adalayers.tuning.rates import at_rates
from adalayers.tuning.ray_private import cpus_here
from adalayers.tuning.search import check_space

IN_A_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Ray sets it for the entry point of a job that was submitted, and for nothing else."""


def cases(study: Study, flags: Flags, hold: Callable[[Folder], None] = lambda folder: None) -> list[Case]:
    """Return all that is to run.

    Args:
        study: The study.
        flags: Its flags.
        hold: Called with each results folder before it is read.

    Raises:
        BadInput: For whatever of it cannot be had, or is named twice.
    """
    _check_output(flags.output)
    check_address(flags.resources.address)
    check_uri(tracking_uri(flags))
    if cluster_address(flags.resources.address) is None:
        flags.resources.require_room([(cpus_here(), torch.cuda.device_count())])
    for request in flags.requests:
        sources.canonical(request.backbone, request.data_dir)
        tasks.canonical(request.dataset, request.data_dir)
    taken: set[str] = set()

    def enter(folder: Folder) -> None:
        if folder.address in taken:
            raise BadInput(
                f"wanted each backbone, dataset and label column once, got {folder.uri} twice; name it once; "
                "run each revision of a model in a command of its own, with a --label"
            )
        taken.add(folder.address)
        hold(folder)

    columns = {request.label_column for request in flags.requests}
    cases: list[Case] = []
    for request in flags.requests:
        column = (request.label_column or None) if len(columns) > 1 else None
        named = (("--label-column", column), ("--label", flags.label))
        suffix = [_safe(flag, name) for flag, name in named if name is not None]
        cases.append(_case(study, flags, request, suffix, enter))
    return cases


def tracking_uri(flags: Flags) -> str:
    """Return where MLflow mirrors a run with these flags."""
    return flags.tracking_uri or default_uri(Folder(flags.output))


def _check_output(output: str) -> None:
    """Raise `BadInput` where results cannot lie; nothing is made yet."""
    if not output.strip():
        raise BadInput("wanted a folder as --output, got none; name one")
    if IN_A_JOB in os.environ and "://" not in output and not os.path.isabs(os.path.expanduser(output)):
        raise BadInput(
            f"wanted an absolute --output or a URI in a job that was submitted to a cluster, got {output}, which would "
            "be deleted with the job's working folder; name one that stays"
        )
    root = Folder(output)
    if root.is_local and any(path.is_file() for path in (root.path(), *root.path().parents)):
        raise BadInput(f"wanted a folder as --output, {root.uri} is or lies below a file; name another")
    try:
        root.exists()
    except OSError as error:
        raise BadInput(
            f"wanted a folder in reach as --output, got {root.uri} ({reason(error, root.address)}); name another"
        ) from error


def _case(
    study: Study, flags: Flags, request: DataRequest, suffix: list[str], enter: Callable[[Folder], None]
) -> Case:
    space = study.space()
    base = base_config(space, flags.study.set, flags.study.epochs)
    if "fusion" in flags.study.set:
        space = space.without([name for name in space.nuisance if name not in base.values()])
    prepared = prepare(request, weights=not flags.dry_run)
    if study.task_kind not in (None, prepared.task.kind.name):
        raise BadInput(
            f"wanted a {KINDS[study.task_kind].title} dataset for {study.name}, {request.dataset} is one of "
            f"{prepared.task.kind.title}; name another"
        )
    task, pool = prepared.task, len(prepared.task.splits["train"])
    fixed = dict(flags.study.set)
    if base.train_examples is not None and base.train_examples >= pool:
        base = dataclasses.replace(base, train_examples=None)  # it is all of them
        if "train_examples" in fixed:
            fixed["train_examples"] = pool
    setting = Setting(
        dataset=known_as(task.name, task.source),
        shape=prepared.shape,
        fixed=fixed,
        base=base,
        train_examples=pool,
        classes=task.kind.classes(task.label_names),
        own=flags.own_identity,
    )
    plan = study_plan(study, space, setting)
    for search in plan.searches if flags.study.trials else ():
        check_space(search.space, flags.study.search, study.name)
    planned = (*(arm.config for arm in plan.arms), *(search.base for search in plan.searches))
    for scheme in {config.class_weights for config in planned}:
        task.kind.class_weights(scheme, task.gold("train"))
    name = "-".join([prepared.source.name, prepared.task.name, *suffix])
    folder = Folder(flags.output).child(study.name).child(name)
    request_record = asked(flags, prepared)
    enter(folder)
    # Without its weights a backbone has no fingerprint that says whether a study there is of it.
    new = flags.fresh or not prepared.source.has_weights
    before = new_study() if new else opened(folder, request_record, prepared.provenance)
    prepared = prepared.reading(_configs(plan, prepared.shape))
    if not new:
        arms, rates = plan.known_arms(flags.study.trials), flags.study.rates
        of_arms = {arm.name: at_rates(arm.config, rates, prepared.shape) for arm in arms}
        check_rows(folder, prepared, of_arms)
        check_plan(folder, before, plan.control, {name for arm in arms for name in (arm.name, *arm.aliases)})
    effect = smallest_effect(folder, before, request_record.smallest_effect, prepared.task.metric)
    request_record = dataclasses.replace(request_record, smallest_effect=effect)
    gpu = flags.resources.gpus_per_trial != 0
    return Case(prepared=prepared, plan=plan, folder=folder, request=request_record, before=before, gpu=gpu)


def asked(flags: Flags, prepared: Prepared) -> RequestRecord:
    """Return what a case is asked for, with names resolved: an alias and the full id are one study."""
    backbone, dataset = prepared.provenance.backbone, prepared.provenance.dataset
    data = dataclasses.replace(
        prepared.request,
        backbone=backbone.id,
        dataset=dataset.source,
        backbone_dtype=backbone.dtype,
        data_dir=None,
    )
    return RequestRecord(**vars(flags.study), data=data, label=flags.label, own=flags.own_identity)


def _configs(plan: StudyPlan, shape: Shape) -> list[TrialConfig]:
    """Return configurations that read all hidden states that the trials of a plan do."""
    configs = [arm.config for arm in plan.arms]
    for search in plan.searches:
        space = search.space
        choices = {name: [*space.choices.get(name, ()), *space.grid.get(name, ())] for name in space.domains}
        reading = [name for name in ("stream", "hidden_states", "final_norm") if choices.get(name)]
        together = itertools.product(*(choices[name] for name in reading))
        # Whether one vector of a text is all that is read may depend on any other choice.
        apart = ({name: value} for name, values in choices.items() for value in values)
        for values in itertools.chain((dict(zip(reading, each, strict=True)) for each in together), apart):
            with contextlib.suppress(BadInput):  # a choice of the grid that this backbone does not have
                config = with_overrides(search.base, values)
                config.states(shape)
                configs.append(config)
    return [*configs, plan.base] if plan.searches else configs


def _safe(flag: str, label: str) -> str:
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in label.lower()).strip("-.")
    if not safe:
        raise BadInput(f"wanted a {flag} with a letter or digit, got {label!r}; choose another")
    return safe
