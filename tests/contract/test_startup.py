"""What answers before anything is loaded: --help and a mistyped flag wait for no library."""

import os
import subprocess
import sys

from adalayers.console.command_line import BROKEN_PIPE
from tests.helpers.studying import ROOT

HEAVY = (
    *("ray", "torch", "numpy", "scipy", "pandas", "pyarrow", "matplotlib"),
    *("transformers", "datasets", "huggingface_hub", "mlflow", "optuna"),
)
STUDIES = sorted(path for path in (ROOT / "studies").glob("*.py") if path.stem != "__init__")
COMMANDS = ["study", "report", "new-study", "cache", "sync", "export", "repeat", "predict", "inspect"]
BARRED = f"""
import runpy, sys
for name in {HEAVY}:
    sys.modules[name] = None  # an import of it fails
def answers(start):
    what, flags = start
    sys.argv = ["it", *flags.split()]
    try:
        eval(f"runpy.{{what}}, run_name='__main__')")
    except SystemExit as end:
        return end.code == 0
"""


def start(first, *argv):
    """Run a script without the heavy libraries; return the process as it ended."""
    command = [sys.executable, "-c", BARRED + first, *argv]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_study_script_refuses_at_once():
    done = start(f"runpy.run_path({str(STUDIES[0])!r}, run_name='__main__')", "--trials", "-1")
    assert done.returncode == 2, done.stderr
    assert "--trials of at least 0" in done.stderr.splitlines()[0]


def test_every_study_and_command_explains_itself_without_a_heavy_library():
    scripts = [(f"run_path({str(study)!r}", "--help") for study in STUDIES]
    commands = [("run_module('adalayers'", f"{name} --help") for name in COMMANDS]
    starts = [*scripts, ("run_module('reports'", "--help"), *commands]
    done = start(f"all(map(answers, {starts}))")
    assert done.stdout.count("usage: ") == len(starts)
    assert [name for name in COMMANDS if f"usage: adalayers {name} " not in done.stdout] == []


def test_a_reader_that_leaves_is_no_error(tmp_path):
    """As `| head` does, once it has its lines."""
    for number in range(400):
        (tmp_path / f"store-{number}").mkdir()
        (tmp_path / f"store-{number}" / "meta.json").write_text("{}")
    argv = [sys.executable, "-m", "adalayers", "cache", "--cache-dir", str(tmp_path)]
    reads, writes = os.pipe()
    os.close(reads)
    ended = subprocess.run(argv, stdout=writes, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    os.close(writes)
    assert (ended.returncode, ended.stderr) == (BROKEN_PIPE, "")
