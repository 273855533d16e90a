"""Timing that a busy machine cannot fool: rivals take turns, and the median of each is compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np


def interleaved(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each function over `repeats` rounds, after one that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for round_ in range(repeats + 1):
        for name, function in functions.items():
            began = time.perf_counter()
            function()
            if round_:
                seconds[name].append(time.perf_counter() - began)
    return {name: float(np.median(values)) for name, values in seconds.items()}
