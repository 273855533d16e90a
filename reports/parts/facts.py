"""Tables of facts, what and value, that several parts write alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.words.text import escape, number, table


def joined(values: Mapping[str, Any]) -> str:
    """Return "train 7,695, test 1,043", whole numbers as such, unknown values left out."""

    def text(value: Any) -> str:
        if not isinstance(value, (int, float)):
            return str(value)
        return number(value, 0 if float(value).is_integer() else 3)

    return ", ".join(f"{name} {text(value)}" for name, value in values.items() if value is not None)


def facts(rows: Mapping[str, str]) -> str:
    return table(
        ["what", "value"], [[name, escape(value, 1000) or "not stated"] for name, value in rows.items()]
    )
