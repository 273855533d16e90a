"""Set-up: what `study.json` says of data, model, machine and runs, the hyperparameters, and the classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adalayers.escaping import visible
from reports.evidence.evidence import Evidence
from reports.reading.load import as_text
from reports.reading.space import describe
from reports.render import markdown
from reports.section import Section, Table, named
from reports.words import SPLITS, number

CLASSES = 100
"""Most classes that are listed."""
ELSEWHERE = ("distribution", "labels", "counts", "history")
"""Fields that other tables show."""


def section(evidence: Evidence) -> Section:
    study, request = evidence.loaded.study, evidence.request
    records = dataclasses.asdict(study.environment), dataclasses.asdict(study.runs), request.method
    facts = [fact for record in records for fact in _facts(record)]
    facts += _facts({"notes": request.notes, "command": request.command})
    splits = {name: own for name, own in study.environment.dataset.distribution.items() if own}
    names = list(dict.fromkeys(name for classes in splits.values() for name in classes))
    digits = 0 if study.environment.dataset.labels else 3
    classes = [
        [visible(name), *(number(own.get(name), digits) for own in splits.values())]
        for name in names[:CLASSES]
    ]
    more = markdown(f"{len(names) - CLASSES:,} more in `study.json`.") if len(names) > CLASSES else ""
    tables = [
        Table(["what", "value"], facts),
        Table(["hyperparameter", "role", "value or search space"], _hyperparameters(evidence)),
        Table(["arm left out", "why"], [[named(arm.arm or "?"), arm.reason] for arm in request.dropped_arms]),
        Table(["class", *(SPLITS.get(split, split) for split in splits)], classes, more),
    ]
    return Section("Set-up", tables)


def _facts(record: Mapping[str, Any], of: str = "") -> Iterator[Sequence[object]]:
    """Give what a record says, by name; nothing for what it does not say."""
    for key, value in record.items():
        name = f"{of} {key}".strip().replace("_", " ")
        if key in ELSEWHERE or value in (None, "", (), [], {}, 0):
            continue
        if isinstance(value, Mapping):
            yield from _facts(value, name)
        else:
            yield [name, ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)]


def _hyperparameters(evidence: Evidence) -> list[Sequence[object]]:
    request = evidence.request
    domains = {domain.name: describe(domain) for domain in evidence.space}
    roles = {name: role for role in ("scientific", "nuisance") for name in getattr(request, role)}
    rows = [(name, roles.get(name, "searched"), domains.get(name, "?")) for name in request.space]
    rows += [(name, "fixed, unless an arm differs", as_text(value)) for name, value in request.fixed.items()]
    rows += [(name, "fixed by the command", as_text(value)) for name, value in request.set.items()]
    return [[named(name), role, value] for name, role, value in rows]
