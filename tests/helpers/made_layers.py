"""Made-up studies that the project's scripts do not run yet: single-layer arms, and arms by data size."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from adalayers.comparisons import PlannedArm
from tests.helpers.made_up import MadeUp

SIZES = (100, 300, 1000, 3000)


def with_single_layers(made: MadeUp) -> MadeUp:
    """Add an arm per hidden state whose mix is that state alone; layer i of l scores 0.3 + 0.1 i / l."""
    for layer in range(1, made.layers + 1):
        config = {"mix": "single", "layer": layer}
        _add(made, f"layer={layer}", config, 0.3 + 0.1 * layer / made.layers)
    return made


def with_sizes(made: MadeUp) -> MadeUp:
    """Replace all arms by two that differ in alpha, each at every number of training examples."""
    made.trials, made.history, made.arms, made.predictions = [], [], [], []
    for alpha in (1, 64):
        for place, size in enumerate(SIZES):
            config = {"mix": "learned", "alpha": alpha, "entropy_weight": 0.0, "train_examples": size}
            level = 0.2 + 0.07 * place + 0.0003 * alpha
            _add(made, f"alpha={alpha} train_examples={size}", config, level, label=f"alpha={alpha}")
    made.study["request"]["control"] = made.arms[0]["name"]
    return made


def _add(made: MadeUp, name: str, config: Mapping[str, Any], level: float, label: str = "") -> None:
    made.arms.append(
        dataclasses.asdict(PlannedArm(name, config=dict(config), label=label, fusion="layer-mix"))
    )
    made.study["request"]["arms"] = made.arms
    for seed in range(1, made.seeds + 1):
        row = {"trial_id": f"{name.replace(' ', '')}-{seed}", "stage": "confirm", "arm": name}
        row |= {"status": "completed", "error": "", "seed": seed}
        row |= {f"config/{key}": value for key, value in config.items()}
        made._run(row, level + 0.01 * made.rng.normal(), made.evaluations)
        row[f"test/{made.metric}"] = row[f"val/{made.metric}"] - 0.01
