"""Set-up: what `study.json` says of data, model, machine and runs, the hyperparameters, and the classes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adalayers.escaping import visible
from adalayers.results.trial_row import TAKEN_COMMIT, TAKEN_FROM
from reports.cells import named
from reports.evidence.evidence import Evidence
from reports.reading.frames import texts
from reports.reading.load import as_text
from reports.reading.space import describe
from reports.render import markdown
from reports.section import Section, Table
from reports.words.labels import SPLITS
from reports.words.text import number

CLASSES = 100
"""Most classes that are listed."""
ELSEWHERE = ("distribution", "labels", "counts", "history")
"""Fields that other tables show."""


def tables(evidence: Evidence) -> Sequence[Table]:
    study, trials = evidence.loaded.study, evidence.trials
    dataset, request = study.environment.dataset, study.request
    taken = Counter(zip(texts(trials, TAKEN_FROM), texts(trials, TAKEN_COMMIT), strict=True))
    facts: list[Sequence[object]] = [
        *_facts(dataclasses.asdict(study.environment)),
        *_facts(dataclasses.asdict(study.runs)),
    ]
    facts += [
        [f"taken from {source} {commit}", f"{n:,} trials"] for (source, commit), n in taken.items() if source
    ]
    splits = {split: classes for split, classes in dataset.distribution.items() if classes}
    names = list(dict.fromkeys(name for classes in splits.values() for name in classes))
    classes = [
        [visible(name), *(_count(own, name, bool(dataset.labels)) for own in splits.values())]
        for name in names[:CLASSES]
    ]
    more = markdown(f"{len(names) - CLASSES:,} more in `study.json`.") if len(names) > CLASSES else ""
    shown = [
        Table(
            ["what", "value"],
            [
                *facts,
                *_facts(request.method),
                *_facts({"notes": request.notes}),
                ["command", request.command],
            ],
        ),
        Table(["hyperparameter", "role", "value or search space"], _hyperparameters(evidence)),
        Table(["arm left out", "why"], [[named(arm.arm or "?"), arm.reason] for arm in request.dropped_arms]),
        Table(["class", *(SPLITS.get(split, split) for split in splits)], classes, more),
    ]
    return [table for table in shown if table.rows]


def _facts(record: Mapping[str, Any], of: str = "") -> Iterator[Sequence[object]]:
    """Give what a record says, by name; nothing for what it does not say."""
    for key, value in record.items():
        name = f"{of} {key}".strip().replace("_", " ")
        if isinstance(value, Mapping):
            yield from _facts({} if key in ELSEWHERE else value, name)
        elif key not in ELSEWHERE and value not in (None, "", (), [], 0):
            several = ", ".join(map(str, value)) if isinstance(value, tuple | list) else value
            yield [
                name,
                several if isinstance(several, int | float) and not isinstance(value, bool) else str(several),
            ]


def _count(of_split: Mapping[str, float], name: str, labels: bool) -> str:
    """Return how often a class occurs with its share, or what describes the numbers that are predicted."""
    value, total = of_split.get(name), sum(of_split.values())
    return f"{value:,.0f} ({value / total:.1%})" if labels and total and value is not None else number(value)


def _hyperparameters(evidence: Evidence) -> list[Sequence[object]]:
    request = evidence.loaded.study.request
    domains = {domain.name: describe(domain) for domain in evidence.space[0]}
    roles = {name: role for role in ("scientific", "nuisance") for name in getattr(request, role)}
    of_arms = {
        name for arm in request.arms for name, own in arm.config.items() if request.fixed.get(name) != own
    }
    of_all = {name: f"fixed{', unless an arm says otherwise' * (name in of_arms)}" for name in request.fixed}
    rows = [(name, roles.get(name, "searched"), domains.get(name, "?")) for name in request.space]
    rows += [(name, of_all[name], as_text(value)) for name, value in request.fixed.items()]
    rows += [(name, "fixed by the command", as_text(value)) for name, value in request.set.items()]
    return [[named(name), role, value] for name, role, value in rows]


SECTION = Section("Set-up", lambda evidence: evidence, tables)
