"""Set-up: how the study was done, its data and model, its hyperparameters, and where the numbers come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from adalayers.escaping import visible
from adalayers.results.other_studies import TAKEN_COMMIT, TAKEN_FROM
from adalayers.results.study_file import (
    BackboneRecord,
    DatasetRecord,
    EnvironmentRecord,
    RunsRecord,
    splits_in_words,
)
from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.reading.data import cuts, shared
from reports.reading.factors import short
from reports.reading.frames import numbers, texts
from reports.reading.load import as_text
from reports.reading.space import describe
from reports.words import labels
from reports.words.labels import SPLITS
from reports.words.text import (
    NONE,
    code,
    count,
    escape,
    fenced,
    folded,
    listed,
    number,
    prose,
    several,
    table,
)

CLASSES = 100
"""Most classes that are listed."""

OF_SOME_STUDIES = (
    "pretrained for",
    "read from",
    "columns",
    "splits",
    "as read",
    "cut to the maximum length",
    "also in train",
)
"""Facts that are left out, rather than called "not stated", where `study.json` does not hold them."""


@dataclass(frozen=True)
class Info:
    """What the section says.

    Attributes:
        method: The study's own paragraphs on its model and factors, by title.
        tools: Names of the searcher and the scheduler; none where nothing was searched.
        speed_factors: Labels of the factors that change how fast a model trains.
        seeds: Seeds of each confirmed arm; 0 where not known.
        tuned: Whether each arm is confirmed with what a search of its own found.
        tested: Whether arms are compared on test scores.
        fixed: "name=value" of factors that the command fixed.
        dropped: (arm, reason) of arms that were left out.
        facts: Fact -> value, "" where `study.json` does not say.
        hyperparameters: (name, role, value or search space).
        labels: Split -> class -> examples, or what describes the numbers that are predicted.
        numeric: Whether labels are numbers.
        command: That of the study.
    """

    method: Mapping[str, str]
    tools: tuple[str, ...]
    speed_factors: tuple[str, ...]
    seeds: int
    tuned: bool
    tested: bool
    fixed: tuple[str, ...]
    dropped: tuple[tuple[str, str], ...]
    facts: Mapping[str, str]
    hyperparameters: tuple[tuple[str, str, str], ...]
    labels: Mapping[str, Mapping[str, float]]
    numeric: bool
    command: str


def info(evidence: Evidence) -> Info:
    study = evidence.loaded.study
    request, dataset = study.request, study.environment.dataset
    return Info(
        method=request.method,
        tools=tuple(filter(None, (request.search, request.scheduler))) if request.trials != 0 else (),
        speed_factors=tuple(
            escape(short(factor)) for factor in evidence.plan.factors if factor.changes_speed
        ),
        seeds=request.seeds,
        tuned="methods" in request.parts and evidence.searches > 1,
        tested=evidence.split == "test",
        fixed=tuple(
            f"{name}={as_text(request.set[name])}" for name in request.scientific if name in request.set
        ),
        dropped=tuple((arm.arm or "?", arm.reason or "no reason given") for arm in request.dropped_arms),
        facts=_study_facts(evidence) | _run_facts(study.environment, study.runs, evidence.trials),
        hyperparameters=tuple(_hyperparameters(evidence)),
        labels={split: classes for split, classes in dataset.distribution.items() if classes},
        numeric=not dataset.labels,
        command=request.command,
    )


def section(info: Info) -> list[str]:
    method = [f"**{escape(title)}.** {prose(text)}" for title, text in info.method.items()]
    commands = [info.command] if info.command else []
    hyperparameters = [[code(name), role, code(value)] for name, role, value in info.hyperparameters]
    return [
        *method[:1],
        *_stages(info),
        *method[1:],
        f"**Fixed by the command**: {several(map(code, info.fixed))}. Nothing is said about other values."
        if info.fixed
        else "",
        f"**Arms left out**:\n\n{listed(f'{code(arm)}: {escape(reason)}' for arm, reason in info.dropped)}"
        if info.dropped
        else "",
        table(
            ["what", "value"],
            [[name, escape(value, 1000) or "not stated"] for name, value in info.facts.items()],
        ),
        table(["hyperparameter", "role", "value or search space"], hyperparameters)
        if hyperparameters
        else "",
        *_labels(info),
        "To repeat the study (first line) and to rebuild this page from its files (last line):",
        fenced("\n".join([*commands, "adalayers report <the folder of this page>"])),
    ]


def _stages(info: Info) -> list[str]:
    names = several(info.speed_factors)
    verb = "change" if len(info.speed_factors) > 1 else "changes"
    judged = f"; {names} {verb} training speed: **the search alone cannot judge {names}**" if names else ""
    seeds = count(info.seeds, "seed") if info.seeds else "seeds"
    source = (
        "Each arm has the hyperparameters that its own search found best."
        if info.tuned
        else "Arms have the study's own nuisance hyperparameters; what a search found best has those of its search."
    )
    compared = "compared on test" if info.tested else "for lack of test scores, also compared there"
    tools = several(map(code, info.tools))
    searched = (
        f"**Search** ({tools}): samples configurations and stops poor ones early, by validation score. "
    )
    searched += f"This favours fast starters{judged}."
    if "fifo" in info.tools:
        searched = f"**Search** ({tools}): samples configurations; all are trained in full, and judged on validation."
    return [
        searched if info.tools else "",
        f"**Confirmation**: trains every arm in full, without pruning, with the same {seeds}. Only this stage supports "
        f"claims. {source}",
        f"**Splits**: models are selected on validation and {compared}.",
    ]


def _labels(info: Info) -> list[str]:
    """Return how often each class occurs in each split, or what describes the numbers that are predicted."""
    if not info.labels:
        return []
    heads = [SPLITS.get(split, split) for split in info.labels]
    names = list(dict.fromkeys(name for classes in info.labels.values() for name in classes))
    rows = []
    for name in names[:CLASSES]:
        counts = [(classes.get(name), sum(classes.values())) for classes in info.labels.values()]
        rows.append(
            [escape(visible(name)), *(number(n) if info.numeric else _share(n, total) for n, total in counts)]
        )
    if info.numeric:
        return ["The numbers that are predicted:", table(["", *heads], rows)]
    rest = f"{len(names) - CLASSES:,} more in `study.json`." if len(names) > CLASSES else ""
    shown = table(["class", *heads], rows)
    return [folded(count(len(names), "class", "classes"), len(rows), shown, rest, most=20)]


def _share(examples: float | None, total: float) -> str:
    return NONE if examples is None or not total else f"{examples:,.0f} ({examples / total:.1%})"


def _study_facts(evidence: Evidence) -> dict[str, str]:
    """Return the facts on model, data and budget; those of some studies alone are left out of others."""
    study, plan = evidence.loaded.study, evidence.plan
    request, backbone, dataset = study.request, study.environment.backbone, study.environment.dataset
    states = study.environment.hidden_states
    size = {"layers": backbone.layers, "width": backbone.width, "parameters": backbone.parameters}
    baseline = {labels.SPLITS.get(split, split): value for split, value in dataset.baseline.items()}
    facts = {
        "backbone": _named(backbone),
        "hidden states": backbone.note,
        "pretrained for": backbone.objective,
        "backbone size": _joined({name: value or None for name, value in size.items()}),
        "hidden states mixed": f"{len(states)}: {', '.join(states)}" if states else "",
        "trained parameters": _trained_parameters(evidence.trials, backbone.parameters),
        "dataset": _named(dataset),
        "read from": ", ".join(filter(None, (dataset.path, backbone.path))),
        "columns": ", ".join(dataset.columns),
        "splits": splits_in_words(dataset.roles, dataset.unused),
        "as read": "; ".join(dataset.notes),
        "task": dataset.task or (f"{dataset.kind} classification" if dataset.kind else ""),
        "labels": ", ".join(map(visible, dataset.labels)),
        "examples": _joined(dataset.examples),
        "cut to the maximum length": "; ".join(cuts(dataset)),
        "also in train": "; ".join(shared(dataset)) or ("none" if dataset.shared else ""),
        "metric": f"{labels.short(plan.metric)}, higher is better" if plan.metric else "",
        "smallest effect of interest": "" if plan.smallest_effect is None else f"{plan.smallest_effect:g}",
        "baseline (trivial model)": _joined(baseline),
        "budget": _joined({"trials": request.trials, "seeds": request.seeds, "epochs": request.epochs}),
    }
    return {name: value for name, value in facts.items() if value or name not in OF_SOME_STUDIES}


def _run_facts(environment: EnvironmentRecord, runs: RunsRecord, trials: pd.DataFrame) -> dict[str, str]:
    """Return the facts on code, machine, seeds and time."""
    git = environment.git
    changes = {None: "changes unknown", True: "with uncommitted changes", False: "no uncommitted changes"}
    seeds = {
        str(stage): several((f"{seed:.0f}" for seed in sorted(rows["seed"].dropna().unique())), 12)
        for stage, rows in trials.groupby("stage", sort=True)
    }
    times = {"wall time": runs.wall_seconds, "training, summed over trials": runs.training_seconds}
    machines = sorted({run.machine for run in runs.history if run.confirmed and run.machine})
    device = (environment.python, environment.platform, environment.device)
    facts = {
        "commit": f"{git.commit}, {changes[git.dirty]}" if git.commit else "",
        "packages": ", ".join(f"{name} {version}" for name, version in environment.packages.items()),
        "Python, platform, device": ", ".join(filter(None, device)),
    }
    if machines and machines != [environment.machine]:  # the device above is of the last run
        facts["machines of confirmed trials"] = "; ".join(machines)
    if TAKEN_FROM in trials:
        taken = Counter(zip(texts(trials, TAKEN_FROM), texts(trials, TAKEN_COMMIT), strict=True))
        facts["trials taken from other studies"] = "; ".join(
            f"{n} from {source}" + (f" (commit {commit})" if commit else "")
            for (source, commit), n in sorted(taken.items())
            if source
        )
    return facts | {
        "seeds": "; ".join(f"{stage} {text}" for stage, text in seeds.items() if text),
        "started, ended": ", ".join(filter(None, (runs.started, runs.ended))),
        "seconds": _joined(times),
        "trials at a time": str(runs.concurrency or ""),
    }


def _hyperparameters(evidence: Evidence) -> list[tuple[str, str, str]]:
    request = evidence.loaded.study.request
    domains = {domain.name: domain for domain in evidence.space[0]}
    roles = {name: role for role in ("scientific", "nuisance") for name in getattr(request, role)}
    searched = [
        (name, roles.get(name, "searched"), describe(domains[name]) if name in domains else as_text(value))
        for name, value in request.space.items()
    ]
    by_arm = {
        name for arm in request.arms for name, value in arm.config.items() if request.fixed.get(name) != value
    }
    role_of = {
        name: "fixed, unless an arm says otherwise" if name in by_arm else "fixed" for name in request.fixed
    }
    fixed = [(name, role_of[name], as_text(value)) for name, value in request.fixed.items()]
    fixed.sort(key=lambda row: row[1])  # those that arms share first
    return [
        *searched,
        *fixed,
        *((name, "fixed by the command", as_text(value)) for name, value in request.set.items()),
    ]


def _trained_parameters(trials: pd.DataFrame, backbone: int) -> str:
    """Return how many parameters trials train, from the fewest to the most, and their share of the backbone's."""
    trained = numbers(trials, "parameters").dropna()
    if trained.empty:
        return ""
    ends = sorted({int(trained.min()), int(trained.max())})
    share = (
        f" ({' to '.join(f'{end / backbone:.2%}' for end in ends)} of the backbone)" if backbone > 0 else ""
    )
    return " to ".join(f"{end:,}" for end in ends) + share


def _named(record: BackboneRecord | DatasetRecord) -> str:
    """Return "name (id or source, revision ..., fingerprint ...)" with what is known."""
    source = record.id if isinstance(record, BackboneRecord) else record.source
    facts = [source] if source else []
    facts += [f"{key} {value}" for key in ("revision", "fingerprint") if (value := getattr(record, key))]
    return f"{record.name} ({', '.join(facts)})" if facts else record.name


def _joined(values: Mapping[str, Any]) -> str:
    """Return "train 7,695, test 1,043", whole numbers as such, unknown values left out."""
    texts = {
        name: number(value, 0 if float(value).is_integer() else 3)
        if isinstance(value, int | float)
        else str(value)
        for name, value in values.items()
        if value is not None
    }
    return ", ".join(f"{name} {text}" for name, text in texts.items())


PART = Part("Set-up", info, section)
