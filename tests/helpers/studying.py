"""A tiny backbone and a tiny dataset on disk, and studies over them, for contract tests."""

import contextlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from adalayers.command.main import DONE, main
from adalayers.study import Study
from studies.alpha_lambda import STUDY
from tests.helpers.tiny import WORDS, tiny_backbone

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "studies" / "alpha_lambda.py"
SIZES = {"train": 120, "validation": 60, "test": 60}
SMALL = (
    *("--set", "alpha=8", "entropy_weight=0", "--trials", "2", "--seeds", "1", "--epochs", "2"),
    *("--max-concurrent", "1", "--tracking-uri", "none"),
)
"""Flags for tests that need no factorial: one learned mix, uniform, last and the search's best; six trials."""

RAYS_OWN = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore:.*:FutureWarning:ray"),
]
"""Marks for tests with Ray in their own process: what it leaves open, and deprecations it has not got round to."""


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
        path = folder / "echo" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        Dataset.from_list(rows, features=features).to_parquet(path)
    return {"backbone": tiny_backbone(folder / "tiny"), "dataset": folder / "echo"}


def flags(made: dict[str, Path], output: Path, *more: str) -> list[str]:
    """Return the flags of a small study over a made world."""
    return [
        *("--backbone", str(made["backbone"]), "--dataset", str(made["dataset"])),
        *("--output", str(output), "--cache-dir", str(output.parent / "cache")),
        *("--set", "k=8", "heads=2", "--epochs", "4", "--trials", "6"),
        *("--seeds", "2", "--max-concurrent", "2"),
        *more,
    ]


@dataclass(frozen=True)
class Ran:
    """How a study ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def run_here(argv: list[str], *, study: Study = STUDY, report: bool = True, code: int | None = DONE) -> Ran:
    """Run a study in this process; it takes the Ray that runs here (fixture `ray_here`), or starts its own.

    The files of its figures are empty.

    study:   alpha_lambda, where it is not said
    report:  False leaves out the page, which takes longer to make than a tiny study to run
    code:    what it must end with, None: whatever it does
    """
    out, err = io.StringIO(), io.StringIO()
    variables = mock.patch.dict(os.environ)  # what the study sets there ends with it
    shown = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with variables, shown[0], shown[1], without_figures() if report else without_pages():
        ran = main(study, argv)
    assert code in (None, ran), err.getvalue()
    return Ran(ran, out.getvalue(), err.getvalue())


def without_pages() -> contextlib.AbstractContextManager[object]:
    """Let a study end without its page."""
    return mock.patch("reports.write_report", lambda folder: folder.uri)


def without_figures() -> contextlib.AbstractContextManager[object]:
    """Let figures be made and their files be empty: laying them out and drawing takes most of the time of a page."""
    return mock.patch("reports.write.images", return_value={"png": b"", "svg": b""})
