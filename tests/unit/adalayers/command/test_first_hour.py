"""What a new user calls first: a study from Python, the list of results, the version."""

import re

import pytest

import adalayers
from adalayers.__main__ import main
from adalayers.command import from_python
from adalayers.errors import BadInput
from adalayers.results.study_file import read_study
from adalayers.storage.folder import Folder
from adalayers.storage.lock import one_driver
from tests.helpers.absolute_links import absolute
from tests.helpers.documented import ROOT, fenced

PUBLISHED = ROOT / "docs" / "results"


@pytest.fixture
def ran(monkeypatch):
    """What `run_study` was called with; it ends as `ended` says, with these folders."""
    calls = {"ended": "done", "folders": [Folder(PUBLISHED / "single_layer" / "minilm-cola")]}

    def run_study(study, argv, program, interrupts):
        calls.update(argv=argv, program=program)
        interrupts.last_words = f"continue with: {program}"
        return calls["ended"], calls["folders"]

    monkeypatch.setattr(from_python, "run_study", run_study)
    return calls


def test_a_study_runs_from_python_and_returns_its_results(ran):
    results = adalayers.study(
        "single_layer",
        backbone=["minilm", "gpt2"],
        seeds=6,
        set={"k": 32, "positions": True},
        fresh=True,
        label=None,
    )
    assert ran["argv"] == [
        *("--backbone", "minilm", "gpt2", "--seeds", "6", "--set", "k=32", "positions=true", "--fresh"),
    ]
    assert ran["program"] == "adalayers study single_layer"
    assert results.arms["arm"].iloc[0] == "mix"
    ran["folders"] = ran["folders"] * 2
    with pytest.raises(BadInput, match="each study once"):
        adalayers.study("single_layer")


def test_the_readmes_study_runs(ran, capsys):
    (block,) = (code for code in fenced(ROOT / "README.md", "python") if "adalayers.study(" in code)
    exec(compile(block, "README.md", "exec"), {})
    assert ran["argv"] == ["--backbone", "minilm", "--dataset", "cola"]
    assert "verdict" in capsys.readouterr().out


def test_links_of_the_readme_lead_to_the_repository_in_a_release():
    text = absolute((ROOT / "README.md").read_text(), "https://host/a/b", "v1")
    assert "![Test Matthews" in text
    assert "https://host/a/b/raw/v1/docs/results/single_layer/" in text
    assert not re.findall(r"\]\((?!https://)[^)]*", text)


def test_what_cannot_be_run_is_raised(ran):
    with pytest.raises(BadInput, match="unknown study"):
        adalayers.study("single_layers")
    ran["ended"] = "interrupted"
    with pytest.raises(KeyboardInterrupt, match="continue with: adalayers study single_layer"):
        adalayers.study("single_layer", seeds=3)


def test_functions_stay_functions_where_modules_have_their_names():
    import adalayers.study
    from adalayers.study import Study

    assert Study.__name__ == "Study"
    assert adalayers.study.__doc__.startswith("Run a study")
    assert adalayers.results.__doc__.startswith("Return what a study has left")


def test_studies_are_listed_with_their_state(capsys, tmp_path):
    assert main(["list", str(PUBLISHED)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1 + len([*PUBLISHED.glob("*/*/study.json")])
    assert any(line.split() == ["ablation/minilm-cola", "finished", "14", "84"] for line in said), said
    assert main(["list", str(tmp_path)]) == 0
    assert str(tmp_path) in capsys.readouterr().out


def test_time_left_is_told_of_a_study_that_has_not_ended(capsys, tmp_path):
    place = PUBLISHED / "single_layer" / "minilm-cola"
    folder = tmp_path / "single_layer" / "minilm-cola"
    folder.mkdir(parents=True)
    rows = (place / "trials.csv").read_text().splitlines(keepends=True)
    (folder / "trials.csv").write_text("".join(rows[:43]))
    study = Folder(place).read_json("study.json")
    study["runs"]["state"] = "running"
    Folder(folder).write_json("study.json", study)
    assert read_study(Folder(folder)).runs.state == "running"
    main(["list", str(tmp_path)])  # its driver was killed
    assert re.search("interrupted .* about", capsys.readouterr().out)
    with one_driver(Folder(folder), "a command"):
        main(["list", str(tmp_path)])
    assert re.search("running .* about", capsys.readouterr().out)


def test_the_version_names_the_commit(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"adalayers {adalayers.__version__} (")
