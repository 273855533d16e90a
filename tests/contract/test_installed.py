"""Installed from wheels into an empty environment, with CONTRIBUTING.md's package next to it: no clone is on its path.

The wheel is built from the sdist, so that both are whole. And what `ray job submit --working-dir .` sends.
"""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from ray._private.runtime_env.packaging import create_package

import adalayers
from adalayers.results.study_file import read_study
from adalayers.storage.folder import Folder
from tests.helpers.documented import snippet
from tests.helpers.studying import RAYS_OWN, ROOT, flags, world

pytestmark = RAYS_OWN

STUDIES = sorted(path.stem for path in (ROOT / "studies").glob("*.py"))
BUILD = "import sys, hatchling.build; print(getattr(hatchling.build, sys.argv[1])(sys.argv[2]))"
LOADED = """
from adalayers.command.studies import find_study
from adalayers.config import trial_config
from adalayers.tasks.kinds import KINDS
for name in {studies}:
    find_study(name).space()
print(trial_config(fusion="mean", k=32).k, KINDS["year"].title)
from adalayers.search_spaces.alpha_lambda import SCIENTIFIC
import reports
"""


def build(source, what, folder):
    """Build a source tree as pip does; return the file's path."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-P", "-c", BUILD, what, str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The folder of an environment with the two wheels; all else that they need is where the tests have it."""
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: `make setup` does that")
    folder = tmp_path_factory.mktemp("installed")
    with tarfile.open(build(ROOT, "build_sdist", folder / "sdist")) as archive:
        archive.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    added = folder / "mean"
    added.mkdir()
    files = {"package": "pyproject.toml", "fusion": "mean_fusion.py", "package-study": "mean_study.py"}
    for name, path in files.items():
        (added / path).write_text(snippet(name))
    (added / "year.py").write_text(snippet("task-kind").replace('KINDS["year"] = Year()', ""))
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    (packages / "tests.pth").write_text(str(Path(pd.__file__).parents[1]))
    wheels = [build(place, "build_wheel", folder / "wheels") for place in (source, added)]
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv/bin/python"), "install", "-q"]
    subprocess.run([*pip, "--no-deps", "--no-index", *map(str, wheels)], check=True)
    return folder


def call(environment, program, *argv, cwd=None):
    """Run a program of the environment outside the clone; return its exit code and what it prints."""
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    how = {"capture_output": True, "text": True, "cwd": cwd or environment, "env": without}
    done = subprocess.run([str(environment / "venv/bin" / program), *argv], **how)
    return done.returncode, done.stderr + done.stdout


def test_a_study_of_ones_own_is_begun(environment, tmp_path):
    code, said = call(environment, "adalayers", "new-study", "mine", cwd=tmp_path)
    assert code == 0, said
    assert {path.name for path in tmp_path.iterdir()} == {"mine.py", "mine_space.py"}
    assert "has a 'cutoff'" in call(environment, "adalayers", "new-study", "cutoff", cwd=tmp_path)[1]


def test_all_is_there_and_no_general_name_is_taken(environment):
    _, said = call(environment, "python", "-c", LOADED.format(studies=STUDIES))
    assert said.endswith("No module named 'reports'\n32 dating\n"), said
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    commit = "from adalayers.results.provenance import git_state; print(git_state().commit)"
    assert call(environment, "python", "-c", commit) == (0, head), "as the wheel was built"
    assert call(environment, "adalayers", "--version") == (0, f"adalayers {adalayers.__version__}\n")
    _, listed = call(environment, "adalayers", "study")
    assert all(re.search(rf"^{name} +[A-Z]", listed, re.M) for name in [*STUDIES, "mean_or_mix"]), listed


def test_a_study_of_another_package_is_trained_written_and_reported(environment):
    """Its fusion is found by its entry point, in Ray's workers too, and nothing in the current folder is imported."""
    thesis = environment / "thesis"
    for name in ("adalayers", "reports", "studies", "search_spaces", "ray", "torch", "datasets", "yaml"):
        (thesis / name).mkdir(parents=True)
        (thesis / name / "__init__.py").write_text(f"raise RuntimeError('the thesis has its own {name}')")
    (thesis / "random.py").write_text("raise RuntimeError('the thesis has a random of its own')")
    results = environment / "Jürgen's"
    few = ("--trials", "0", "--seeds", "1", "--epochs", "1")
    alone = ("--max-concurrent", "1", "--tracking-uri", "none")
    argv = ("study", "mean_or_mix", *flags(world(environment / "world"), results, *few, *alone))
    code, said = call(environment, "adalayers", *argv, cwd=thesis)
    assert code == 0, said
    folder = results / "mean_or_mix/tiny-echo"
    assert said.splitlines()[-1] == str(folder / "report.md"), "Ray adds no line when the process ends"
    assert "finished" in said.splitlines()[-2]
    assert " left | " in said
    trials = pd.read_csv(folder / "trials.csv")
    assert (trials["status"] == "completed").all()
    assert trials.groupby("arm")["fusion"].unique().str[0].to_dict() == {"mix": "layer-mix", "mean": "mean"}
    mean = trials[trials["arm"] == "mean"].iloc[0]
    assert mean["config/k"] == 8
    assert pd.isna(mean["config/alpha"])
    history = pd.read_parquet(folder / "history.parquet").query(f"trial_id == '{mean['trial_id']}'")
    assert history["mean/norm"].notna().all()
    command = read_study(Folder(folder)).request.command
    assert command.startswith("adalayers study mean_or_mix --backbone")
    assert "| `mean` |" in (folder / "details.md").read_text()


MOST_BYTES = 5_000_000


def test_an_upload_is_small_and_holds_what_a_study_needs_and_no_more(tmp_path):
    create_package(str(ROOT), tmp_path / "package.zip", include_gitignore=True)
    assert (tmp_path / "package.zip").stat().st_size < MOST_BYTES
    with zipfile.ZipFile(tmp_path / "package.zip") as package:
        names = set(package.namelist())
    for room in ("adalayers", "reports", "search_spaces", "studies"):
        files = (path for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".parquet"))
        assert {path.relative_to(ROOT).as_posix() for path in files} <= names, f"{room} is not sent whole"
    assert not {name.split("/")[0] for name in names} & {"docs", "tests", "results", ".git", ".venv"}
