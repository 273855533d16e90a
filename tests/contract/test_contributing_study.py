"""The studies that our guides show work as they stand there: two files each."""

import re
import runpy
import sys
from importlib.util import find_spec

import pytest

import search_spaces
from adalayers.backbones.sources import MINILM_PACKAGE
from tests.helpers.studying import ROOT

SNIPPET = re.compile(
    r"^```python\n# (?P<path>(?:studies|search_spaces)/\w+\.py)\n(?P<text>.*?)^```$", re.M | re.S
)


SHOWN = {
    "dropout": ("CONTRIBUTING.md", "\n## A study\n", "3 and the best of the search", 11),
    "batch": ("search_spaces/README.md", "\n## Worked through", "3 and the bests of 3 searches", 21),
}
"""Study -> where it is shown, below which heading, its arms in a smoke run, their trials."""


@pytest.fixture(scope="module", params=SHOWN)
def written(request, tmp_path_factory):
    """Write the files of a study that is shown to a folder of their own; return it and the study's name."""
    page, heading, *_ = SHOWN[request.param]
    _, _, rest = (ROOT / page).read_text().partition(heading)
    section = rest.partition("\n## ")[0]
    folder = tmp_path_factory.mktemp("contributed")
    paths = []
    for snippet in SNIPPET.finditer(section):
        paths.append(snippet["path"])
        (folder / snippet["path"]).parent.mkdir(exist_ok=True)
        (folder / snippet["path"]).write_text(snippet["text"])
    assert paths == [f"search_spaces/{request.param}.py", f"studies/{request.param}.py"]
    assert not any((ROOT / path).exists() for path in paths), (
        "the example is not one of the project's own studies"
    )
    return folder, request.param


def run(written, monkeypatch, capsys, *argv):
    """Run the study; its `search_spaces` joins the project's own, as if the file stood there. Return its output."""
    folder, name = written
    script = str(folder / "studies" / f"{name}.py")
    monkeypatch.setattr(search_spaces, "__path__", [*search_spaces.__path__, str(folder / "search_spaces")])
    monkeypatch.setattr(sys, "argv", [script, *argv])
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(script, run_name="__main__")
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    return said.out


@pytest.mark.skipif(find_spec(MINILM_PACKAGE) is None, reason="the demo's backbone is not installed")
def test_the_dry_run_plans_its_arms_on_the_embedded_demo(written, monkeypatch, capsys):
    said = run(written, monkeypatch, capsys, "--smoke", "--dry-run")
    assert "minilm" in said
    assert "acceptability-demo" in said
    *_, arms, trials = SHOWN[written[1]]
    assert re.search(rf"arms +{arms}, 2 seeds each; a verdict takes 6 seeds", said), said
    assert re.search(rf"trials +{trials}, 0 done", said), said
    assert not (written[0] / "results").exists()
