"""Made-up studies of other arms than `MadeUp`'s: single layers, numbers of examples, and `studies/few_shot.py`'s."""

import dataclasses
from typing import Any

from adalayers.comparisons import PlannedArm
from studies.few_shot import STUDY, comparisons
from tests.helpers.made_up import MadeUp

SIZES = (100, 300, 1000, 3000)
METHODS = ("extra-layers", "concat", "dwatt", "layer-mix")
FEW, EPOCHS = (32, 128, 512), (25, 50, 100)


def add(made: MadeUp, arm: PlannedArm, level: float, **columns: Any) -> None:
    """Add an arm that scores `level` on average; columns: of its rows, next to those of its configuration."""
    made.arms.append(dataclasses.asdict(arm))
    made.study["request"]["arms"] = made.arms
    for seed in range(1, made.seeds + 1):
        row = {"trial_id": f"{arm.name.replace(' ', '')}-{seed}", "stage": "confirm", "arm": arm.name}
        row |= {"status": "completed", "error": "", "seed": seed, "config/mix": "uniform"}
        row |= {f"config/{key}": value for key, value in arm.config.items()} | columns
        made._run(row, level + 0.01 * made.rng.normal(), made.evaluations)
        row[f"test/{made.metric}"] = row[f"val/{made.metric}"] - 0.01


def emptied(made: MadeUp) -> MadeUp:
    made.trials, made.history, made.arms, made.predictions = [], [], [], []
    return made


def with_single_layers(made: MadeUp) -> MadeUp:
    """Add an arm per hidden state whose mix is that state alone; layer i of l scores 0.3 + 0.1 i / l."""
    for layer in range(1, made.layers + 1):
        arm = PlannedArm(f"layer={layer}", config={"mix": "single", "layer": layer}, fusion="layer-mix")
        add(made, arm, 0.3 + 0.1 * layer / made.layers)
    return made


def with_sizes(made: MadeUp) -> MadeUp:
    """Replace all arms by two that differ in alpha, each at every number of training examples."""
    emptied(made)
    for alpha in (1, 64):
        for place, size in enumerate(SIZES):
            config = {"mix": "learned", "alpha": alpha, "entropy_weight": 0.0, "train_examples": size}
            label = f"alpha={alpha}"
            arm = PlannedArm(f"{label} train_examples={size}", "", config, label=label, fusion="layer-mix")
            add(made, arm, 0.2 + 0.07 * place + 0.0003 * alpha)
    made.study["request"]["control"] = made.arms[0]["name"]
    return made


def with_few_shot(made: MadeUp, gain: float = 0.2) -> MadeUp:
    """Replace all arms by those of the study; fine-tuned ones score `gain` more than frozen ones.

    A frozen method's score goes by its place, examples and epochs, each by itself.
    """
    emptied(made)
    few, many = FEW[0], FEW[-1]
    cells = [(name, size, n, "core") for n in EPOCHS[::-1] for size in FEW[::-1] for name in METHODS]
    for size in (many, few):
        cells.append(("last-layer", size, 50, "last"))
        cells += [(name, size, 50, "fine-tuned") for name in ("last-layer", *METHODS[:3])]
    for method, size, epochs, role in cells:
        tuned, place = role == "fine-tuned", (*METHODS, "last-layer").index(method)
        config: dict[str, Any] = {"train_examples": size, "epochs": epochs}
        config |= {"base_model": "fine-tuned" if tuned else "frozen"}
        config |= {"mix": "learned"} if method == "layer-mix" else {}
        name = f"{method}{' fine-tuned' * tuned} train_examples={size} epochs={epochs}"
        fusion = "scalar-mix" if method == "last-layer" else method
        level = 0.1 + 0.02 * place + 0.1 * FEW.index(size) + 0.01 * EPOCHS.index(epochs) + gain * tuned
        add(made, PlannedArm(name, role, config, label=method, fusion=fusion), level, fusion=fusion)
    for row in made.trials:
        row |= {"draw": row["seed"], "epochs": row["config/epochs"]}
        row["train_examples"] = row.pop("config/train_examples")
        if row["fusion"] != "layer-mix":
            row |= dict.fromkeys(("config/mix", "mix/entropy", "mix/live_layers"))
    planned = [PlannedArm(**arm) for arm in made.arms]
    names, control = [factor.name for factor in STUDY.design.factors], made.arms[0]["name"]
    made.study["request"] |= {
        "control": control,
        "factors": [dataclasses.asdict(factor) for factor in STUDY.design.factors],
        "comparisons": [dataclasses.asdict(pair) for pair in comparisons(planned, names, control)],
        "parts": list(STUDY.page.parts),
        "scientific": [],
        "nuisance": [],
    }
    return made
