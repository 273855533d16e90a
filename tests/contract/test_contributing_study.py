"""The study that CONTRIBUTING.md shows works as it stands there: two files, and no other."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from adalayers.backbones.sources import MINILM_PACKAGE
from tests.helpers.studying import ROOT

SNIPPET = re.compile(
    r"^```python\n# (?P<path>(?:studies|search_spaces)/\w+\.py)\n(?P<text>.*?)^```$", re.M | re.S
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write the files of the section "A study" to a folder of their own; return it and their paths."""
    _, _, rest = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## A study\n")
    section = rest.partition("\n## ")[0]
    folder = tmp_path_factory.mktemp("contributed")
    paths = []
    for snippet in SNIPPET.finditer(section):
        paths.append(snippet["path"])
        (folder / snippet["path"]).parent.mkdir(exist_ok=True)
        (folder / snippet["path"]).write_text(snippet["text"])
    assert paths == ["search_spaces/dropout.py", "studies/dropout.py"]
    assert not any((ROOT / path).exists() for path in paths), (
        "the example is not one of the project's own studies"
    )
    return folder


def run(written, *argv):
    """Run the study; its `search_spaces` joins the project's own, as if the file stood there."""
    start = (
        "import runpy, search_spaces\n"
        f"search_spaces.__path__.append({str(written / 'search_spaces')!r})\n"
        f"runpy.run_path({str(written / 'studies' / 'dropout.py')!r}, run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-c", start, *argv],
        capture_output=True,
        text=True,
        cwd=written,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), "ADALAYERS_CACHE": str(written / "cache")},
    )


def test_help_says_the_question(written):
    done = run(written, "--help")
    assert done.returncode == 0, done.stderr
    assert "studies/dropout.py" in done.stdout
    assert "influence of dropout in the head" in done.stdout


@pytest.mark.skipif(find_spec(MINILM_PACKAGE) is None, reason="the demo's backbone is not installed")
def test_the_dry_run_plans_its_arms_on_the_embedded_demo(written):
    done = run(written, "--smoke", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "minilm" in done.stdout
    assert "acceptability-demo" in done.stdout
    assert "3 trials by optuna" in done.stdout
    assert re.search(r"arms +3 and the best of the search, 2 seeds each: 8 trials", done.stdout)
    assert not (written / "results").exists()
