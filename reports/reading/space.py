"""The search space as `study.json` writes it: "loguniform(0.5, 1024)", "choice(0.0, 0.001)" -> domains.

Six digits of a bound are written; a value drawn may therefore lie a rounding error outside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports.reading.load import listing, mapping

_RANGE = re.compile(r"(log)?uniform\(\s*([^,()]+),\s*([^,()]+)\)")
_CHOICE = re.compile(r"choice\((.*)\)")


@dataclass(frozen=True)
class Domain:
    """Where one hyperparameter was searched: a range (`low` < `high`), or `choices` in their order, as text.

    role: scientific, nuisance, or "searched" where `study.json` does not say.
    """

    name: str
    role: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[str, ...] = ()


def domains(study: Mapping[str, Any]) -> tuple[list[Domain], list[str]]:
    """Return the domains of a study's search space, scientific ones first, and the names that cannot be read."""
    roles = {name: role for role in ("scientific", "nuisance") for name in listing(study, "asked", role)}
    found, unread = [], []
    for name, text in mapping(study, "asked", "space").items():
        domain = parse(name, text, roles.get(name, "searched"))
        if domain is None:
            unread.append(name)
        else:
            found.append(domain)
    order = {name: place for place, name in enumerate(roles)}
    return sorted(found, key=lambda domain: order.get(domain.name, len(order))), unread


def parse(name: str, text: Any, role: str = "searched") -> Domain | None:
    """Return the domain that `text` describes, or None where it describes none that is searched."""
    if not isinstance(text, str):
        return None
    if match := _RANGE.fullmatch(text.strip()):
        try:
            low, high = float(match[2]), float(match[3])
        except ValueError:
            return None
        usable = low < high and (low > 0 or not match[1])
        return Domain(name, role, low, high, log=bool(match[1])) if usable else None
    if match := _CHOICE.fullmatch(text.strip()):
        choices = tuple(part.strip() for part in match[1].split(","))
        if "(" not in match[1] and "[" not in match[1] and len(choices) > 1 and all(choices):
            return Domain(name, role, choices=choices)
    return None


def as_choice(value: Any, choices: tuple[str, ...]) -> str | None:
    """Return the choice that a value of `trials.csv` is: numbers are compared as numbers (0 is 0.0)."""
    text = str(value)
    if text in choices:
        return text
    number = _number(text)
    return next((choice for choice in choices if number is not None and _number(choice) == number), None)


def numeric(choices: tuple[str, ...]) -> list[float] | None:
    """Return the choices as numbers in rising order, or None where one of them is none."""
    values = [_number(choice) for choice in choices]
    known = [value for value in values if value is not None]
    return sorted(known) if len(known) == len(values) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
