"""Set-up: data and model, hyperparameters, classes, and where the numbers come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adalayers.escaping import visible
from adalayers.results.other_studies import TAKEN_COMMIT, TAKEN_FROM
from adalayers.results.study_file import BackboneRecord, DatasetRecord, splits_in_words
from reports.cells import named
from reports.evidence.evidence import Evidence
from reports.reading.data import cuts, shared
from reports.reading.frames import numbers, texts
from reports.reading.load import as_text
from reports.reading.space import describe
from reports.section import Section, Table
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, number, several

CLASSES = 100
"""Most classes that are listed."""


def tables(evidence: Evidence) -> Sequence[Table]:
    request = evidence.loaded.study.request
    facts = _study_facts(evidence) | _run_facts(evidence)
    dropped = [[named(arm.arm or "?"), arm.reason or "no reason given"] for arm in request.dropped_arms]
    hyperparameters = [[named(name), role, value] for name, role, value in _hyperparameters(evidence)]
    shown = [
        Table(["what", "value"], [[name, value] for name, value in facts.items() if value]),
        Table(["hyperparameter", "role", "value or search space"], hyperparameters),
        Table(["arm left out", "why"], dropped),
        *_labels(evidence),
    ]
    return [table for table in shown if table.rows]


def _labels(evidence: Evidence) -> Sequence[Table]:
    """Return how often each class occurs in each split, or what describes the numbers that are predicted."""
    dataset = evidence.loaded.study.environment.dataset
    splits = {split: classes for split, classes in dataset.distribution.items() if classes}
    names = list(dict.fromkeys(name for classes in splits.values() for name in classes))
    rows = [
        [
            visible(name),
            *(
                number(own.get(name)) if not dataset.labels else _share(own.get(name), sum(own.values()))
                for own in splits.values()
            ),
        ]
        for name in names[:CLASSES]
    ]
    caption = f"{len(names) - CLASSES:,} more classes in `study.json`." if len(names) > CLASSES else ""
    return [Table(["class", *(SPLITS.get(split, split) for split in splits)], rows, caption)]


def _share(examples: float | None, total: float) -> str:
    return NONE if examples is None or not total else f"{examples:,.0f} ({examples / total:.1%})"


def _study_facts(evidence: Evidence) -> dict[str, str]:
    """Return the facts on model, data and budget, "" for what `study.json` does not say."""
    study, plan = evidence.loaded.study, evidence.plan
    request, backbone, dataset = study.request, study.environment.backbone, study.environment.dataset
    states = study.environment.hidden_states
    size = {"layers": backbone.layers, "width": backbone.width, "parameters": backbone.parameters}
    trained = numbers(evidence.trials, "parameters").dropna()
    return {
        "backbone": ", hidden states ".join(filter(None, (_named(backbone), backbone.note))),
        "pretrained for": backbone.objective,
        "backbone size": _joined({name: value or None for name, value in size.items()}),
        "hidden states mixed": f"{len(states)}: {', '.join(states)}" if states else "",
        "trained parameters": " to ".join(
            f"{end:,.0f}" for end in sorted({trained.min(), trained.max()} if len(trained) else ())
        ),
        "dataset": _named(dataset),
        "read from": ", ".join(filter(None, (dataset.path, backbone.path))),
        "columns": ", ".join(dataset.columns),
        "splits": splits_in_words(dataset.roles, dataset.unused),
        "as read": "; ".join(dataset.notes),
        "task": dataset.task or (f"{dataset.kind} classification" if dataset.kind else ""),
        "labels": ", ".join(map(visible, dataset.labels[:CLASSES])),
        "examples": _joined(dataset.examples),
        "cut to the maximum length": "; ".join(cuts(dataset)),
        "also in train": "; ".join(shared(dataset)) or ("none" if dataset.shared else ""),
        "metric": f"{short(plan.metric)}, higher is better" if plan.metric else "",
        "smallest effect of interest": "" if plan.smallest_effect is None else f"{plan.smallest_effect:g}",
        "trivial model": _joined({SPLITS.get(key, key): value for key, value in dataset.baseline.items()}),
        "budget": _joined({"trials": request.trials, "seeds": request.seeds, "epochs": request.epochs}),
        "search": ", ".join(filter(None, (request.search, request.scheduler))) if request.trials else "",
        "fixed by the command": ", ".join(f"{name}={as_text(value)}" for name, value in request.set.items()),
    }


def _run_facts(evidence: Evidence) -> dict[str, str]:
    """Return the facts on code, machine, seeds and time."""
    environment, runs, trials = evidence.loaded.study.environment, evidence.loaded.study.runs, evidence.trials
    changes = {None: "changes unknown", True: "with uncommitted changes", False: "no uncommitted changes"}
    seeds = {
        str(stage): several((f"{seed:.0f}" for seed in sorted(rows["seed"].dropna().unique())), 12)
        for stage, rows in trials.groupby("stage", sort=True)
    }
    machines = sorted({run.machine for run in runs.history if run.confirmed and run.machine})
    taken = Counter(zip(texts(trials, TAKEN_FROM), texts(trials, TAKEN_COMMIT), strict=True))
    git, device = environment.git, (environment.python, environment.platform, environment.device)
    return {
        "commit": f"{git.commit}, {changes[git.dirty]}" if git.commit else "",
        "packages": ", ".join(f"{name} {version}" for name, version in environment.packages.items()),
        "Python, platform, device": ", ".join(filter(None, device)),
        # The device above is of the last run.
        "machines of confirmed trials": "; ".join(machines) if machines != [environment.machine] else "",
        "trials taken from other studies": "; ".join(
            f"{n} from {source}{f' (commit {commit})' if commit else ''}"
            for (source, commit), n in sorted(taken.items())
            if source
        ),
        "seeds": "; ".join(f"{stage} {text}" for stage, text in seeds.items() if text),
        "started, ended": ", ".join(filter(None, (runs.started, runs.ended))),
        "seconds": _joined(
            {"wall time": runs.wall_seconds, "training, summed over trials": runs.training_seconds}
        ),
        "trials at a time": str(runs.concurrency or ""),
        "command": evidence.loaded.study.request.command,
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
    fixed = [
        (name, "fixed, unless an arm says otherwise" if name in by_arm else "fixed", as_text(value))
        for name, value in request.fixed.items()
    ]
    return [*searched, *sorted(fixed, key=lambda row: row[1])]


def _named(record: BackboneRecord | DatasetRecord) -> str:
    """Return "name (id or source, revision ..., fingerprint ...)" with what is known."""
    source = record.id if isinstance(record, BackboneRecord) else record.source
    facts = [source] if source else []
    facts += [f"{key} {value}" for key in ("revision", "fingerprint") if (value := getattr(record, key))]
    return f"{record.name} ({', '.join(facts)})" if facts else record.name


def _joined(values: Mapping[str, Any]) -> str:
    """Return "train 7,695, test 1,043", whole numbers as such, unknown values left out."""
    known = {name: value for name, value in values.items() if isinstance(value, int | float)}
    return ", ".join(
        f"{name} {number(value, 0 if float(value).is_integer() else 3)}" for name, value in known.items()
    )


SECTION = Section("Set-up", lambda evidence: evidence, tables)
