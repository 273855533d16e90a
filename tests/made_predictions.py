"""Made-up predictions for a made-up study: sequences of two classes, or tags per word of made-up sentences."""

from __future__ import annotations

import numpy as np

from tests.made_up import TYPES, MadeUp


def with_predictions(made: MadeUp, examples: int = 60, seed: int = 0) -> MadeUp:
    """Replace the predictions of every completed confirmed trial by `examples` on each split."""
    rng = np.random.default_rng(seed)
    made.predictions = []
    labels = {split: [_label(rng, made.tokens) for _ in range(examples)] for split in ("val", "test")}
    for row in made.trials:
        if row["stage"] != "confirm" or row["status"] != "completed":
            continue
        for split, gold in labels.items():
            for index, label in enumerate(gold):
                said = _prediction(rng, label, made.tokens)
                point = {"trial_id": row["trial_id"], "split": split, "index": index}
                made.predictions.append(
                    point | {"label": label, "prediction": said, "score": float(rng.uniform(0.5, 1.0))}
                )
    return made


def _label(rng: np.random.Generator, tokens: bool) -> str:
    if not tokens:
        return ("unacceptable", "acceptable")[int(rng.random() < 0.7)]
    tags: list[str] = []
    while len(tags) < 12:
        if rng.random() < 0.3:
            kind = TYPES[rng.integers(len(TYPES))]
            tags += [f"B-{kind}", *[f"I-{kind}"] * int(rng.integers(0, 3)), "O"]
        else:
            tags.append("O")
    return " ".join(tags)


def _prediction(rng: np.random.Generator, label: str, tokens: bool) -> str:
    if not tokens:
        other = {"acceptable": "unacceptable", "unacceptable": "acceptable"}
        return other[label] if rng.random() < 0.2 else label
    tags = label.split()
    for place in range(len(tags)):
        chance = rng.random()
        if chance < 0.03:
            tags[place] = "O"
        elif chance < 0.06:
            tags[place] = f"B-{TYPES[rng.integers(len(TYPES))]}"
    return " ".join(tags)
