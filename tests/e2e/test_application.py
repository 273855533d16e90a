"""The worked example of docs/application.md, run as it stands there with the real MiniLM and small trained tasks."""

import contextlib
import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch

from adalayers.__main__ import main
from adalayers.command.flags import parse
from adalayers.command.studies import find_study
from tests.helpers.documented import fenced
from tests.helpers.long_form import MINILM
from tests.helpers.made_tasks import made_task
from tests.helpers.studying import ROOT

pytestmark = MINILM

PAGE, README = ROOT / "docs" / "application.md", ROOT / "README.md"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the results that the pages' first commands leave, of tasks that are trained for a moment."""
    root = tmp_path_factory.mktemp("worked")
    for dataset in ("acceptability-demo", "entities-demo"):
        made_task(root / "results" / "search" / f"minilm-{dataset}", "minilm", dataset)
    demo = root / "results" / "single_layer" / "minilm-entities-demo-demo"
    shutil.copytree(root / "results" / "search" / "minilm-entities-demo", demo)
    with contextlib.chdir(root):
        yield root


def test_its_python_runs_and_the_base_model_does_its_own(here):
    (first, *others) = fenced(PAGE, "python")
    found = {}
    exec(compile(first, "docs/application.md", "exec"), found)
    with torch.no_grad():
        alone = found["base"](**found["inputs"]).last_hidden_state
    assert torch.equal(alone, found["output"].last_hidden_state)
    assert found["vectors"].shape == (2, 384)
    assert set(found["labels"]) <= {"acceptable", "unacceptable"}
    assert found["outputs"]["entities"].shape[:2] == found["inputs"]["input_ids"].shape
    assert [answer.tags for answer in found["answers"]["entities"]]
    for other in others:
        exec(compile(other, "docs/application.md", "exec"), found)
    assert (here / "acceptability" / "README.md").is_file()


def test_the_readmes_lines_run(here, capsys):
    """As printed, over what `make demo` leaves."""
    (shown,) = [block for block in fenced(README, "python") if "adalayers.attach" in block]
    exec(compile(shown, "README.md", "exec"), {})
    assert re.match(r"none|PER|ORG|LOC|MISC", capsys.readouterr().out)


def test_the_readme_reads_results_and_is_short(monkeypatch, capsys):
    (shown,) = [block for block in fenced(README, "python") if "adalayers.results(" in block]
    monkeypatch.chdir(ROOT)
    exec(compile(shown, "README.md", "exec"), {})
    assert "verdict" in capsys.readouterr().out
    text = README.read_text()
    assert len(text.splitlines()) <= 110
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= 40
    for link in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (ROOT / link).exists(), link


def test_its_commands_run(here, capsys):
    lines = [line for block in fenced(PAGE, "bash") for line in block.splitlines() if line.strip()]
    for words in map(shlex.split, lines):
        if words[0] == "adalayers":
            assert main(words[1:]) == 0, capsys.readouterr().err
            assert capsys.readouterr().out
        elif words[1].startswith("studies/"):
            name = Path(words[1]).stem
            (request,) = parse(find_study(name), words[2:]).requests
            assert (here / "results" / name / f"{request.backbone}-{request.dataset}").is_dir()
        else:
            assert words[0] == "make"
