"""The set-up (thesis figures 7, 11, 15), and the hyperparameters with their roles."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from adalayers.results.study_file import BackboneRecord, DatasetRecord, StudyFile
from reports.evidence.evidence import Evidence
from reports.parts.facts import facts, joined
from reports.parts.part import Part
from reports.reading.data import cuts, shared
from reports.reading.frames import numbers
from reports.reading.load import Plan, as_text
from reports.reading.space import Domain, describe
from reports.words.labels import SPLITS, short
from reports.words.text import code, table


@dataclass(frozen=True)
class Info:
    """added: the smallest and the largest number of parameters that a trial trained; empty where unknown."""

    study: StudyFile
    plan: Plan
    space: tuple[Domain, ...]
    added: tuple[int, ...]


def info(evidence: Evidence) -> Info:
    return Info(evidence.loaded.study, evidence.plan, tuple(evidence.space[0]), _ends(evidence.trials))


def section(info: Info) -> list[str]:
    study, plan = info.study, info.plan
    asked, backbone, dataset = study.request, study.environment.backbone, study.environment.dataset
    states, direction = study.environment.hidden_states, "lower" if plan.mode == "min" else "higher"
    size = {"layers": backbone.layers, "width": backbone.width, "parameters": backbone.parameters}
    budget = {"trials": asked.trials, "seeds": asked.seeds, "epochs": asked.epochs}
    rows = {
        "backbone": _named(backbone),
        **({"pretrained for": backbone.objective} if backbone.objective else {}),
        "its size": joined({name: value or None for name, value in size.items()}),
        "hidden states mixed": f"{len(states)}: {', '.join(states)}" if states else "",
        "added (trained) parameters": _added(info),
        "dataset": _named(dataset),
        "task": dataset.task or (f"{dataset.kind} classification" if dataset.kind else ""),
        "labels": ", ".join(dataset.labels),
        "examples": joined(dataset.examples),
        **(
            {"cut to the maximum length": "; ".join(cut.text() for cut in cuts(dataset))}
            if dataset.truncated
            else {}
        ),
        **({"also in train": "; ".join(shared(dataset)) or "none"} if dataset.shared else {}),
        "metric": f"{short(plan.metric)}, {direction} is better" if plan.metric else "",
        "smallest effect of interest": "" if plan.smallest_effect is None else f"{plan.smallest_effect:g}",
        "baseline (trivial model)": joined(
            {SPLITS.get(split, split): value for split, value in dataset.baseline.items()}
        ),
        "budget": joined(budget),
    }
    paragraphs = [facts(rows)]
    hyperparameters = _hyperparameters(info)
    if hyperparameters:
        paragraphs += [
            "Hyperparameters. Scientific ones are what the study is about; nuisance ones are searched so "
            "that the comparison is fair; the rest are fixed.",
            table(["name", "role", "value or search space"], hyperparameters),
        ]
    return paragraphs


def _hyperparameters(info: Info) -> list[list[str]]:
    asked = info.study.request
    known = {domain.name: domain for domain in info.space}
    roles = {name: role for role in ("scientific", "nuisance") for name in getattr(asked, role)}
    rows = [
        [
            code(name),
            roles.get(name, "searched"),
            code(describe(known[name]) if name in known else as_text(value)),
        ]
        for name, value in asked.space.items()
    ]
    own = {name for arm in asked.arms for name, value in arm.config.items() if asked.fixed.get(name) != value}
    shared = {name: value for name, value in asked.fixed.items() if name not in own}
    rest = {name: value for name, value in asked.fixed.items() if name in own}
    fixed = (
        ("fixed", shared),
        ("fixed, unless an arm says otherwise", rest),
        ("fixed by the command", asked.set),
    )
    return rows + [
        [code(name), role, code(as_text(value))] for role, values in fixed for name, value in values.items()
    ]


def _ends(trials: pd.DataFrame) -> tuple[int, ...]:
    added = numbers(trials, "parameters").dropna()
    return () if added.empty else tuple(sorted({int(added.min()), int(added.max())}))


def _added(info: Info) -> str:
    """Return the parameters that trials train, and their share of the backbone's."""
    text, size = " to ".join(f"{end:,}" for end in info.added), info.study.environment.backbone.parameters
    if text and size > 0:
        text += f" ({' to '.join(f'{end / size:.2%}' for end in info.added)} of the backbone)"
    return text


def _named(what: BackboneRecord | DatasetRecord) -> str:
    """Return "name (id or source, revision ..., fingerprint ...)" with what is known."""
    where = what.id if isinstance(what, BackboneRecord) else what.source
    known = [where] if where else []
    known += [f"{key} {value}" for key in ("revision", "fingerprint") if (value := getattr(what, key))]
    return f"{what.name} ({', '.join(known)})" if known else what.name


PART = Part("Set-up", info, section)
