"""What answers before anything is loaded: --help and a mistyped flag wait for no library and take under a second."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from adalayers.console.command_line import BROKEN_PIPE
from tests.helpers.studying import ROOT

HEAVY = (
    *("ray", "torch", "numpy", "scipy", "pandas", "pyarrow", "matplotlib"),
    *("transformers", "datasets", "huggingface_hub", "mlflow", "optuna"),
)
STUDIES = sorted(path for path in (ROOT / "studies").glob("*.py") if path.stem != "__init__")
BARRED = f"""
import runpy, sys
for name in {HEAVY}:
    sys.modules[name] = None  # an import of it fails
"""


def start(first, argv):
    """Run a script without the heavy libraries; return the process as it ended, and the seconds of CPU it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", BARRED + first, *argv],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=60,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Traceback" not in done.stderr, done.stderr
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("study", "argv", "code", "said"),
    [
        *((study, ["--help"], 0, "--backbone") for study in STUDIES),
        (STUDIES[0], ["--backbon", "minilm"], 2, "did you mean '--backbone'"),
        (STUDIES[0], ["--trials", "-1"], 2, "--trials of at least 0"),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_a_study_script_answers_at_once(study, argv, code, said):
    done, seconds = start(f"runpy.run_path({str(study)!r}, run_name='__main__')", argv)
    assert done.returncode == code, done.stderr
    assert said in (done.stdout if code == 0 else done.stderr.splitlines()[0])
    assert seconds < 1, "CPU seconds: what other processes do is not the script's"


@pytest.mark.parametrize(
    ("module", "argv"),
    [
        ("reports", []),
        *(("adalayers", [name]) for name in ("study", "report", "new-study", "cache", "sync", "export")),
        *(("adalayers", [name]) for name in ("repeat", "predict", "inspect")),
    ],
    ids=str,
)
def test_the_other_commands_explain_themselves_at_once(module, argv):
    done, seconds = start(f"runpy.run_module('{module}', run_name='__main__')", [*argv, "--help"])
    assert done.returncode == 0, done.stderr
    assert f"usage: {' '.join(['adalayers', *argv]) if argv else 'python -m reports'} " in done.stdout
    assert seconds < 1


@pytest.mark.parametrize("command", [["adalayers", "cache"], ["reports", "nowhere"]])
def test_a_reader_that_leaves_is_no_error(command, tmp_path):
    """As `| head` does, once it has its lines."""
    for number in range(2000):
        (tmp_path / f"store-{number}").mkdir()
        (tmp_path / f"store-{number}" / "meta.json").write_text("{}")
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "ADALAYERS_CACHE": str(tmp_path)},
    )
    process.stdout.close()
    said, code = process.stderr.read(), process.wait(60)
    process.stderr.close()
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert code == (BROKEN_PIPE if command[0] == "adalayers" else 2)
