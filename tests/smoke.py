"""Every study, tiny, from start to report: make smoke.

A tiny study is mostly what starts before its trials and the pages after them, none of which uses a second core: two
processes take one study after another, each with one Ray session for all of its own.
"""

import contextlib
import importlib
import time

import pytest

import reports
from adalayers.command.main import DONE, main
from adalayers.results.files import REPORT
from reports.reading.load import load
from tests.helpers.studying import RAYS_OWN, ROOT, without_figures

pytestmark = [*RAYS_OWN, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("ray_here")]

SECONDS = 120
"""The contract's promise for one study."""
LONGEST = ("methods", "few_shot", "capacity", "small_data")
"""Those that start first."""
WHOLE = ("search", "backbones")
"""Those whose runs go to MLflow and whose figures are drawn, one case and several: of the others no file is drawn."""
STUDIES = (path.stem for path in (ROOT / "studies").glob("[!_]*.py"))


@pytest.mark.parametrize("name", sorted(STUDIES, key=lambda name: (name not in LONGEST, name)))
def test_a_study_ends_with_its_reports(name, tmp_path_factory):
    output, began = tmp_path_factory.getbasetemp() / "smoke", time.monotonic()
    flags = [
        "--smoke",
        "--max-concurrent",
        "1",
        "--output",
        str(output),
        "--cache-dir",
        str(output / "cache"),
    ]
    study = importlib.import_module(f"studies.{name}").STUDY
    with contextlib.nullcontext() if name in WHOLE else without_figures():
        code = main(study, reports, flags if name in WHOLE else [*flags, "--tracking-uri", "none"])
    seconds = time.monotonic() - began
    assert code == DONE
    folders = [*(output / name).glob("*-smoke")]
    for folder in folders:
        results = load(folder)
        assert not results.problems
        assert (results.trials["status"] != "failed").all()
        assert (folder / REPORT).exists()
    assert folders
    assert (output / name / REPORT).exists() == (len(folders) > 1)
    assert seconds <= SECONDS
