"""Functions that run on one machine of a Ray cluster, next to its trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def on(node: str, function: Callable[..., object], gpus: float = 0) -> Any:
    """Return the function as a Ray task of that machine, which takes no CPU and is not tried again."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return ray.remote(num_cpus=0, num_gpus=gpus, max_retries=0)(function).options(
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
    )
