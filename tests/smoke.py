"""Every study, tiny, from start to report: make smoke.

A tiny study is mostly what starts before its trials and the pages after them, none of which uses a second core: two
processes take one study after another. Trials run there too, but for two studies, which have Ray: what it starts for
one trial takes longer than all of a study's.
"""

import importlib
import time

import pytest

from adalayers.command.main import DONE, main
from adalayers.results.files import REPORT
from reports.reading.load import load
from tests.helpers.studying import RAYS_OWN, ROOT, without_figures
from tests.helpers.trials_here import trials_here

pytestmark = [*RAYS_OWN, pytest.mark.filterwarnings("ignore")]

SECONDS = 120
"""The contract's promise for one study."""
LONGEST = ("methods", "few_shot", "capacity", "small_data")
"""Those that start first."""
WHOLE = ("search", "backbones")
"""Those with Ray, MLflow and figures, one case and several, for one process; of the others no file is drawn."""
STUDIES = (path.stem for path in (ROOT / "studies").glob("[!_]*.py"))


@pytest.mark.parametrize(
    "name", sorted(STUDIES, key=lambda name: (name not in WHOLE, name not in LONGEST, name))
)
def test_a_study_ends_with_its_reports(name, tmp_path_factory, request):
    output, began = tmp_path_factory.getbasetemp() / "smoke", time.monotonic()
    flags = ["--smoke", "--max-concurrent", "1"]
    flags += ["--output", str(output), "--cache-dir", str(output / "cache")]
    study = importlib.import_module(f"studies.{name}").STUDY
    if name in WHOLE:
        request.getfixturevalue("ray_here")
        code = main(study, flags)
    else:
        with trials_here(), without_figures():
            code = main(study, [*flags, "--tracking-uri", "none"])
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
