"""Made-up studies of other arms than `MadeUp`'s: single layers, and numbers of examples."""

import dataclasses

from adalayers.comparisons import PlannedArm
from tests.helpers.made_up import MadeUp

SIZES = (100, 300, 1000, 3000)


def add(made: MadeUp, arm: PlannedArm, level: float) -> None:
    """Add an arm that scores `level` on average."""
    made.arms.append(dataclasses.asdict(arm))
    made.study["request"]["arms"] = made.arms
    for seed in range(1, made.seeds + 1):
        row = {"trial_id": f"{arm.name.replace(' ', '')}-{seed}", "stage": "confirm", "arm": arm.name}
        row |= {"status": "completed", "error": "", "seed": seed, "config/mix": "uniform"}
        row |= {f"config/{key}": value for key, value in arm.config.items()}
        made._run(row, level + 0.01 * made.rng.normal(), made.evaluations)
        row[f"test/{made.metric}"] = row[f"val/{made.metric}"] - 0.01


def with_single_layers(made: MadeUp) -> MadeUp:
    """Add an arm per hidden state whose mix is that state alone; layer i of l scores 0.3 + 0.1 i / l."""
    for layer in range(1, made.layers + 1):
        arm = PlannedArm(f"layer={layer}", config={"mix": "single", "layer": layer}, fusion="layer-mix")
        add(made, arm, 0.3 + 0.1 * layer / made.layers)
    return made


def with_sizes(made: MadeUp) -> MadeUp:
    """Replace all arms by two that differ in alpha, each at every number of training examples."""
    made.trials, made.history, made.arms, made.predictions = [], [], [], []
    for alpha in (1, 64):
        for place, size in enumerate(SIZES):
            config = {"mix": "learned", "alpha": alpha, "entropy_weight": 0.0, "train_examples": size}
            label = f"alpha={alpha}"
            arm = PlannedArm(f"{label} train_examples={size}", "", config, label=label, fusion="layer-mix")
            add(made, arm, 0.2 + 0.07 * place + 0.0003 * alpha)
    made.study["request"]["control"] = made.arms[0]["name"]
    return made
