"""`study.json` of a running case: what it was asked for, and on what it runs."""

from __future__ import annotations

import dataclasses
import json
import platform

from optuna.distributions import distribution_to_json

from adalayers.backbones.objectives import objective
from adalayers.features.features import Mode
from adalayers.installed import code_hash
from adalayers.results.files import PREFIXES
from adalayers.results.provenance import device, git_state, versions
from adalayers.results.study_file import (
    BackboneRecord,
    DatasetRecord,
    DroppedArm,
    EnvironmentRecord,
    FeaturesRecord,
    RequestRecord,
)
from adalayers.study import Study
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.case import Case


def environment(case: Case, mode: Mode) -> EnvironmentRecord:
    """Return on what a case runs: backbone, data, where their hidden states come from, and this machine.

    Args:
        case: What was planned.
        mode: Whether hidden states are stored or computed as they are read.
    """
    prepared = case.prepared
    source, task, provenance = prepared.source, prepared.task, prepared.provenance
    parameters, layer_parameters = prepared.backbone_parameters
    pooling = "" if mode == "live" else source.pooling or ""
    return EnvironmentRecord(
        features=FeaturesRecord(mode=mode, precision=prepared.request.precision, pooling=pooling),
        backbone=BackboneRecord(
            name=source.name,
            **dataclasses.asdict(provenance.backbone),
            path=str(source.folder),
            family=source.family,
            layers=source.layers,
            streams=source.streams,
            width=source.width,
            parameters=parameters,
            layer_parameters=layer_parameters,
            objective=objective(source),
            note=source.note,
        ),
        dataset=DatasetRecord(
            name=task.name,
            **dataclasses.asdict(provenance.dataset),
            **dataclasses.asdict(task.reading),
            kind=task.kind.name,
            task=task.title,
            labels=task.label_names,
            metric=task.metric,
            examples={name: len(split) for name, split in task.splits.items()},
            tokens={name: len(encoded.input_ids) for name, encoded in prepared.encoded.items()},
            truncated=prepared.truncated,
            shared={role: len(index) for role, index in prepared.also_in_train.items()},
            baseline={
                prefix: task.baseline(name) for name, prefix in PREFIXES.items() if name in task.splits
            },
            distribution={role: task.kind.describe_labels(task.gold(role)) for role in task.splits},
        ),
        hidden_states=tuple(state.name for state in case.plan.base.states(prepared.shape)),
        git=git_state(),
        code=code_hash(),
        packages=versions(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        device=device(case.gpu),
    )


def request_record(study: Study, case: Case, agenda: Agenda) -> RequestRecord:
    """Return what a case was asked for.

    Arms and comparisons of the run before (a best of a smaller search) stay: what was planned once shares the error
    for good.

    Args:
        study: The question.
        case: With its plan, and the study as earlier runs left it.
        agenda: Its arms as known now.
    """
    shape, plan, earlier = agenda.shape, case.plan, case.before.request
    names = {arm.name for arm in agenda.arms}
    # Where arms are those that searches found, the control is what its own search finds best now.
    tuned = (arm.name for arm in agenda.arms if plan.control in arm.tunes)
    control = plan.control if plan.control in names else next(tuned, plan.control)
    bests = [arm for arm in agenda.earlier_bests() if arm.name not in names]
    arms = (*(arm.planned(arm.config.used(shape)) for arm in agenda.arms), *bests)
    used = {name for arm in arms for name in arm.levels}  # a factor that no arm uses means nothing here
    factors = tuple(factor for factor in study.design.factors if factor.name in used)
    factor_names = [factor.name for factor in factors]
    # As comparisons know arms, the levels that a variant does not use are filled in.
    compared = [*(arm.planned(arm.config.resolved(shape)) for arm in agenda.arms), *bests]
    comparisons = [*earlier.comparisons, *study.design.planned(compared, factor_names, control)]
    spaces = {
        search.name: {
            name: json.loads(distribution_to_json(distribution))
            for name, distribution in search.distributions.items()
        }
        for search in agenda.searches
    }
    names = {arm.name for arm in arms}
    planned = {planned.key: planned for planned in comparisons if planned.weights.keys() <= names}
    return dataclasses.replace(
        case.request,
        question=study.question,
        method=dict(study.page.method),
        metric=agenda.record.metric,
        control=control,
        scientific=plan.scientific,
        nuisance=plan.nuisance,
        factors=factors,
        spaces=spaces,
        fixed={
            name: value
            for name, value in plan.base.used(shape).items()
            if name not in (*plan.scientific, *plan.nuisance, "mix")
        },
        arms=arms,
        dropped_arms=tuple(DroppedArm(arm=name, reason=reason) for name, reason in agenda.dropped),
        notes=tuple(dict.fromkeys((*plan.notes, *agenda.notes))),
        comparisons=tuple(planned.values()),
        variants={variant.name: variant for variant in plan.variants},
        parts=study.page.parts,
        headline=study.page.headline,
        title=study.page.title,
        published=plan.published,
    )
