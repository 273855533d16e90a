"""A made-up study of methods under numbers of training examples and epochs, as `studies/few_shot.py` leaves it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from adalayers.comparisons import PlannedArm
from studies.few_shot import STUDY, comparisons
from tests.helpers.made_up import MadeUp

METHODS = ("extra-layers", "concat", "dwatt", "layer-mix")
SIZES, EPOCHS = (32, 128, 512), (25, 50, 100)


def level(method: str, size: int, epochs: int) -> float:
    """Return what a frozen method scores: by its place, examples and epochs, each by itself."""
    place = (*METHODS, "last-layer").index(method)
    return 0.1 + 0.02 * place + 0.1 * SIZES.index(size) + 0.01 * EPOCHS.index(epochs)


def with_few_shot(made: MadeUp, gain: float = 0.2) -> MadeUp:
    """Replace all arms by those of the study; fine-tuned ones score `gain` more than frozen ones."""
    made.trials, made.history, made.arms, made.predictions = [], [], [], []
    for epochs in reversed(EPOCHS):
        for size in reversed(SIZES):
            for method in METHODS:
                _add(made, method, size, epochs, "core")
    for size in (SIZES[-1], SIZES[0]):
        _add(made, "last-layer", size, 50, "last")
        for method in ("last-layer", *METHODS[:3]):
            _add(made, method, size, 50, "fine-tuned", gain)
    planned = [PlannedArm(**arm) for arm in made.arms]
    names, control = [factor.name for factor in STUDY.design.factors], made.arms[0]["name"]
    made.study["request"] |= {
        "arms": made.arms,
        "control": control,
        "factors": [dataclasses.asdict(factor) for factor in STUDY.design.factors],
        "comparisons": [dataclasses.asdict(pair) for pair in comparisons(planned, names, control)],
        "parts": list(STUDY.page.parts),
        "scientific": [],
        "nuisance": [],
    }
    return made


def _add(made: MadeUp, method: str, size: int, epochs: int, role: str, gain: float = 0.0) -> None:
    tuned = role == "fine-tuned"
    name = f"{method}{' fine-tuned' * tuned} train_examples={size} epochs={epochs}"
    config: dict[str, Any] = {"train_examples": size, "epochs": epochs}
    config |= {"base_model": "fine-tuned" if tuned else "frozen"}
    if method == "layer-mix":
        config["mix"] = "learned"
    fusion = "scalar-mix" if method == "last-layer" else method
    made.arms.append(dataclasses.asdict(PlannedArm(name, role, config, label=method, fusion=fusion)))
    for seed in range(1, made.seeds + 1):
        _trial(made, name, fusion, config, seed, level(method, size, epochs) + gain)


def _trial(made: MadeUp, name: str, fusion: str, config: Mapping[str, Any], seed: int, of_arm: float) -> None:
    row = {"trial_id": f"{name.replace(' ', '')}-{seed}", "stage": "confirm", "arm": name}
    row |= {"status": "completed", "error": "", "seed": seed, "fusion": fusion}
    row |= {f"config/{key}": value for key, value in config.items() if key != "train_examples"}
    row |= {"train_examples": config["train_examples"], "draw": seed}
    mix = row.setdefault("config/mix", "uniform")
    made._run(row, of_arm + 0.01 * made.rng.normal(), made.evaluations)
    if mix != "learned":
        row |= {"config/mix": None, "mix/entropy": None, "mix/live_layers": None}
    row["epochs"] = config["epochs"]
    row[f"test/{made.metric}"] = row[f"val/{made.metric}"] - 0.01 + 0.002 * made.rng.normal()
