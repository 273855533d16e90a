"""What a new user calls first: a study from Python, the list of results."""

import re
import shutil

import numpy as np
import pytest

import adalayers
from adalayers.__main__ import main
from adalayers.command import from_python
from adalayers.console.command_line import DONE
from adalayers.console.interrupts import INTERRUPTED
from adalayers.storage.folder import Folder
from adalayers.storage.lock import one_driver
from tests.helpers.absolute_links import absolute
from tests.helpers.documented import KEPT, RESULTS, ROOT, fenced
from tests.helpers.refusing import refused

NAME = "ablation/minilm-conll2003-whole"
STUDY = RESULTS / NAME


@pytest.fixture
def ran(monkeypatch):
    """What `run_study` was called with; it ends as `ended` says, with these folders."""
    calls = {"ended": DONE, "folders": [Folder(STUDY)]}

    def run_study(study, argv, program, interrupts):
        calls.update(argv=argv, program=program)
        interrupts.last_words = f"continue with: {program}"
        return calls["ended"], calls["folders"]

    monkeypatch.setattr(from_python, "run_study", run_study)
    return calls


def test_a_study_runs_from_python_and_returns_its_results(ran):
    how = {
        "backbone": ["minilm", "gpt2"],
        "seeds": np.int64(6),
        "set": {"k": 32, "positions": True},
        "fresh": True,
    }
    results = adalayers.study("single_layer", **how, label=None, rates=[])
    words = "--backbone minilm gpt2 --seeds 6 --set k=32 positions=True --fresh"
    assert (ran["argv"], ran["program"]) == (words.split(), "adalayers study single_layer")
    assert results.arms["arm"].iloc[0] == "published"
    ran["folders"] = ran["folders"] * 2
    refused("each study once", adalayers.study, "single_layer")
    refused("unknown study", adalayers.study, "single_layers")
    ran["ended"] = INTERRUPTED
    with pytest.raises(KeyboardInterrupt, match="continue with: adalayers study single_layer"):
        adalayers.study("single_layer", seeds=3)


def test_the_readmes_study_runs_and_its_links_lead_to_the_repository_in_a_release(ran, capsys):
    (block,) = (code for code in fenced(ROOT / "README.md", "python") if "adalayers.study(" in code)
    exec(compile(block, "README.md", "exec"), {})
    assert ran["argv"] == ["--backbone", "minilm", "--dataset", "cola"]
    assert "verdict" in capsys.readouterr().out
    text = absolute((ROOT / "README.md").read_text(), "https://host/a/b", "v1")
    assert "https://host/a/b/raw/v1/docs/results/single_layer/" in text
    assert not re.findall(r"\]\((?!https://)[^)]*", text)


def test_functions_stay_functions_where_modules_have_their_names():
    import adalayers.study
    from adalayers.study import Study

    assert Study.__name__ == "Study"
    assert adalayers.study.__doc__.startswith("Run a study")
    assert adalayers.results.__doc__.startswith("Return what a study has left")


def test_studies_are_listed_with_their_state_and_the_time_left(capsys, tmp_path):
    def listed(folder):
        assert main(["list", str(folder)]) == 0
        return capsys.readouterr().out

    said = listed(RESULTS).splitlines()
    assert len(said) == 1 + len(KEPT)
    assert any(line.split() == [NAME, "finished", "16", "96"] for line in said), said
    assert str(tmp_path) in listed(tmp_path)
    assert f"results/{NAME} " in listed(RESULTS.parent)
    (tmp_path / "of").mkdir()
    (tmp_path / "of" / "link").symlink_to(shutil.copytree(STUDY, tmp_path / "often" / NAME))
    assert f"{tmp_path}/often/{NAME} " in listed(tmp_path / "of"), (
        "of's own name is not cut off another folder's"
    )
    shutil.rmtree(tmp_path / "often")
    folder, study = Folder(tmp_path / NAME), Folder(STUDY).read_json("study.json")
    study["runs"]["state"] = "running"
    study["request"]["rates"] = [1e-3, 3e-3]  # of the two trials of each arm at them none is there yet
    folder.write_json("study.json", study)
    folder.write_bytes("trials.csv", (STUDY / "trials.csv").read_bytes())
    assert re.search("interrupted .* about", listed(tmp_path)), "its driver was killed"
    with one_driver(folder, "a command"):
        assert re.search("running .* about", listed(tmp_path))
    # Of 96 trials all have ended, and a search's best, of six seeds, is not known yet: so many are left as have ended.
    study["request"].update(rates=[], arms=study["request"]["arms"][:10], spaces={"": {"k": {}}}, trials=36)
    study["runs"].update(concurrency=2, training_seconds=96 * 60.0)
    folder.write_json("study.json", study)
    assert "about 3 min" in listed(tmp_path)
    study["request"]["trials"] = 0  # its space is noted all the same
    folder.write_json("study.json", study)
    assert "about" not in listed(tmp_path)
