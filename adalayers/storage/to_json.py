"""Values in JSON's own types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""What JSON can say, and tuples, which it writes as lists."""
JsonObject = dict[str, Json]
_JSON_SCALARS = frozenset({str, int, bool, type(None)})


def to_json(value: Any) -> Any:
    """Return `value` in JSON's own types: NumPy scalars unwrapped, tuples as lists, NaN and infinities as None."""
    if type(value) in _JSON_SCALARS:  # most are, and whole tables come by here
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
