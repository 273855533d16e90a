"""A tiny backbone and a tiny dataset on disk, and studies over them, for contract tests."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from datasets import ClassLabel, Dataset, Features, Value

from tests.helpers.tiny import WORDS, tiny_backbone

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "studies" / "alpha_lambda.py"
SIZES = {"train": 120, "validation": 60, "test": 60}


def world(folder: Path) -> dict[str, Path]:
    """Make a backbone and a dataset of words; the label says from which half of them most of a text's words are."""
    rng = np.random.default_rng(0)
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    words = [word for word in WORDS if word.isalpha()]
    seen: set[str] = set()
    for split, n in SIZES.items():
        rows = []
        while len(rows) < n:
            chosen = rng.choice(len(words), rng.choice([3, 5, 7]))
            label = int((chosen < len(words) / 2).mean() > 0.5)
            text = " ".join(words[i] for i in chosen)
            if text not in seen:
                seen.add(text)
                rows.append({"text": text, "label": label if rng.random() > 0.1 else 1 - label})
        (folder / "echo").mkdir(parents=True, exist_ok=True)
        Dataset.from_list(rows, features=features).to_parquet(
            folder / "echo" / f"{split}-00000-of-00001.parquet"
        )
    return {"backbone": tiny_backbone(folder / "tiny"), "dataset": folder / "echo"}


def flags(made: dict[str, Path], output: Path, *more: str) -> list[str]:
    """Return the flags of a small study over a made world."""
    return [
        "--backbone", str(made["backbone"]), "--dataset", str(made["dataset"]), "--output", str(output),
        "--cache-dir", str(output.parent / "cache"), "--set", "k=8", "heads=2", "lr=0.03",
        "--epochs", "4", "--trials", "6", "--seeds", "2", "--max-concurrent", "2", *more,
    ]  # fmt: skip


def command(made: dict[str, Path], output: Path, *more: str) -> list[str]:
    return [sys.executable, str(SCRIPT), *flags(made, output, *more)]
