"""`study.json` of a running case, from its plan, its agenda and what happened."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import distribution_to_json

from adalayers.comparisons import PlannedArm
from adalayers.data.trial_data import TrialData
from adalayers.request import StudyRequest
from adalayers.results.provenance import provenance
from adalayers.results.study_file import DroppedArm, RequestRecord, StudyFile, parse
from adalayers.study import Factor, Plan, Study
from adalayers.tuning.agenda import Agenda


def study_document(
    *,
    identity: str,
    study: str,
    name: str,
    asked: RequestRecord,
    on: Mapping[str, Any],
    runs: Mapping[str, Any],
) -> dict[str, Any]:
    """Return `study.json`; `identity` is the id that the study was given when it began."""
    parts, _ = parse({"environment": on, "runs": runs})
    document = StudyFile(
        id=identity, study=study, name=name, request=asked, environment=parts.environment, runs=parts.runs
    )
    return document.as_json()


def case_on(plan: Plan, data: TrialData, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return on what a case runs: `about` backbone and dataset, the hidden states read, and this machine."""
    states = [state.name for state in plan.base.states(data.shape)]
    return {**about, "hidden_states": states, **provenance()}


def asked(
    study: Study,
    plan: Plan,
    agenda: Agenda,
    ask: StudyRequest,
    *,
    identity: Mapping[str, Any],
    smallest_effect: float,
    earlier: RequestRecord,
) -> RequestRecord:
    """Return what a case was asked for.

    identity: the flags that make it this study; earlier: what the run before it was asked for. Its arms and comparisons
    (a best of a smaller search) stay: what was planned once shares the error for good.
    """
    shape = agenda.shape
    arms = tuple(
        PlannedArm(
            arm.name, arm.role, arm.config.used(shape), arm.aliases, arm.label, arm.tunes, arm.config.fusion
        )
        for arm in agenda.arms
    )
    arms += tuple(
        arm
        for arm in earlier.arms
        if arm.role in ("best", "tuned")
        and arm.name not in {other.name for other in arms}
        and agenda.has_run(arm.name)
    )
    factors = _factors(study, arms)
    comparisons = [
        *earlier.comparisons,
        *study.comparisons(
            _planned(agenda, arms),
            [factor.name for factor in factors],
            plan.control,
        ),
    ]
    distributions = {
        name: distribution
        for search in reversed(agenda.searches)  # a name that several search is as the first has it
        for name, distribution in search.distributions.items()
    }
    known = {arm.name for arm in arms}
    planned = {one.key: one for one in comparisons if one.weights.keys() <= known}
    return RequestRecord(
        question=study.question,
        method=dict(study.method),
        command=ask.command,
        flags=dict(identity),
        trials=ask.trials,
        seeds=ask.seeds,
        seed=ask.seed,
        epochs=plan.base.epochs,
        metric=agenda.record.metric,
        control=plan.control,
        smallest_effect=smallest_effect,
        scientific=plan.scientific,
        nuisance=plan.nuisance,
        factors=factors,
        space={
            name: json.loads(distribution_to_json(distribution))
            for name, distribution in distributions.items()
        },
        fixed={
            name: value
            for name, value in plan.base.used(shape).items()
            if name not in (*plan.scientific, *plan.nuisance, "mix")
        },
        set=ask.fixed,
        search=ask.search,
        scheduler=ask.scheduler,
        arms=arms,
        dropped_arms=tuple(DroppedArm(arm=name, reason=reason) for name, reason in agenda.dropped),
        notes=(*plan.notes, *agenda.notes),
        comparisons=tuple(planned.values()),
        variants={variant.name: variant for variant in plan.variants},
        parts=study.parts,
        published=plan.published,
    )


def _factors(study: Study, arms: Sequence[PlannedArm]) -> tuple[Factor, ...]:
    """Return the study's factors but those that mean nothing here: which no arm uses."""
    used = {name for arm in arms for name in arm.levels}
    return tuple(factor for factor in study.factors if factor.name in used)


def _planned(agenda: Agenda, arms: Sequence[PlannedArm]) -> list[PlannedArm]:
    """Return the arms as comparisons know them, with the levels that a variant does not use filled in."""
    configs = {arm.name: arm.config.resolved(agenda.shape) for arm in agenda.arms}
    return [dataclasses.replace(arm, config=configs.get(arm.name, arm.config)) for arm in arms]
