"""The code that trains is the code that was started, whatever lies in the current folder."""

import subprocess

import pandas as pd

from adalayers.installed import code_hash
from adalayers.results.study_file import read_study
from adalayers.storage.folder import Folder
from tests.helpers.studying import SMALL, command


def test_nothing_in_the_current_folder_is_imported(world, tmp_path):
    """The folder of a thesis: its own package `adalayers`, others named as libraries are, and a `random.py`."""
    thesis = tmp_path / "thesis"
    for name in ("adalayers", "reports", "studies", "search_spaces", "ray", "torch", "datasets", "yaml"):
        (thesis / name).mkdir(parents=True)
        (thesis / name / "__init__.py").write_text(
            f"raise RuntimeError('the thesis has a {name} of its own')"
        )
    (thesis / "random.py").write_text("raise RuntimeError('the thesis has a random of its own')")
    argv = command(world, tmp_path / "results", *SMALL, "--trials", "0")
    done = subprocess.run(argv, cwd=thesis, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "results/alpha_lambda/tiny-echo"
    assert set(pd.read_csv(folder / "trials.csv")["status"]) == {"completed"}
    assert read_study(Folder(folder)).environment.code == code_hash()
