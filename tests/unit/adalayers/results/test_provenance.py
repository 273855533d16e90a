"""On what a study ran."""

import subprocess

from adalayers.results.provenance import device, git_state
from adalayers.results.study_file import GitRecord


def test_a_change_of_the_code_is_said_and_one_of_its_results_is_none(tmp_path):
    (tmp_path / "adalayers").mkdir()
    (tmp_path / "adalayers" / "mix.py").write_text("1\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init"], ["add", "-A"], ["commit", "-m", "first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    for path, dirty in (("docs/report.md", False), ("studies/mine.py", True)):
        assert git_state(tmp_path).dirty is False
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text("2\n")
        state = git_state(tmp_path)
        assert (state.dirty, len(state.commit)) == (dirty, 40)
    # Without a checkout of its own nothing is known.
    (tmp_path / "site-packages").mkdir()
    assert git_state(tmp_path / "site-packages") == GitRecord()


def test_trials_that_take_no_gpu_ran_on_the_cpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda index: "H100")
    assert device(gpu=True) == "H100"
    assert device(gpu=False).startswith("cpu (")
