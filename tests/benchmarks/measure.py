"""Timing that a busy machine cannot fool, and the table and JSON of what was measured."""

import json
import logging
import os
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch

logger = logging.getLogger("adalayers.benchmarks")


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


def report(measured: Mapping[str, float | bool]) -> None:
    """Print a table and, as the last line, one JSON object, numbers to four digits."""
    rounded = {key: x if isinstance(x, bool) else float(f"{x:.4g}") for key, x in measured.items()}
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    print(f"{os.cpu_count()} cores, torch {torch.__version__}, {torch.get_num_threads()} threads{gpu}\n")
    width = max(map(len, rounded))
    for key, value in rounded.items():
        print(f"{key:{width}}  {value:10.4g}")
    print(f"\n{json.dumps(rounded)}")
