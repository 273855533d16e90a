"""CONTRIBUTING.md's fusion trains through a study, with no other file changed."""

import re
import shutil
import subprocess
import sys

import pandas as pd

from tests.helpers.studying import ROOT, flags, world

SCRIPT = """
import sys

import mean_fusion
from adalayers.command.main import main
from adalayers.study import Arm, Design, Study
import reports
from tests.helpers.studying import without_figures

STUDY = Study(
    name="toy",
    question="Does mixing matter?",
    design=Design(arms=lambda setting: ([Arm("mix", "core", {}), Arm("mean", "core", {"fusion": "mean"})], [])),
)
sys.modules["search_spaces.toy"] = object()

if __name__ == "__main__":
    with without_figures():
        sys.exit(main(STUDY, reports))
"""


def snippet(name):
    (code,) = re.findall(rf"```python {name}\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    return code


def test_a_fusion_of_ones_own_is_trained_written_and_reported(tmp_path, empty_database):
    (tmp_path / "mean_fusion.py").write_text(snippet("fusion"))
    (tmp_path / "toy.py").write_text(SCRIPT)
    made = world(tmp_path / "world")
    (tmp_path / "results").mkdir()
    shutil.copy(empty_database, tmp_path / "results" / "mlflow.db")
    done = subprocess.run(
        [
            sys.executable,
            str(tmp_path / "toy.py"),
            *flags(made, tmp_path / "results", "--trials", "0", "--seeds", "1", "--epochs", "2"),
            *("--max-concurrent", "1"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "results/toy/tiny-echo"
    # Neither Ray nor MLflow adds a line when the process ends.
    assert done.stdout.strip().splitlines()[-1] == str(folder / "report.md")
    assert "trials/min" in done.stderr
    assert "left" in done.stderr
    trials = pd.read_csv(folder / "trials.csv")
    assert (trials["status"] == "completed").all()
    assert trials.groupby("arm")["fusion"].unique().str[0].to_dict() == {"mix": "layer-mix", "mean": "mean"}
    mean = trials[trials["arm"] == "mean"]
    assert (mean["config/k"] == 8).all()
    assert mean["config/alpha"].isna().all()
    history = pd.read_parquet(folder / "history.parquet")
    assert history.loc[history["trial_id"].isin(mean["trial_id"]), "mean/norm"].notna().all()
    assert "| `mean` |" in (folder / "details.md").read_text()
