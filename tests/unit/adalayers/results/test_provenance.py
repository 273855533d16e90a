"""On what a study ran."""

import subprocess

import pytest

from adalayers.results.provenance import git_state
from adalayers.results.study_file import GitRecord


@pytest.fixture
def checkout(tmp_path):
    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True)

    (tmp_path / "adalayers").mkdir()
    (tmp_path / "adalayers" / "mix.py").write_text("1\n")
    git("init")
    git("add", "-A")
    git("commit", "-m", "first")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "dirty"), [("adalayers/mix.py", True), ("studies/mine.py", True), ("docs/report.md", False)]
)
def test_a_change_of_the_code_is_said_and_one_of_its_results_is_none(checkout, path, dirty):
    assert git_state(checkout).dirty is False
    (checkout / path).parent.mkdir(exist_ok=True)
    (checkout / path).write_text("2\n")
    state = git_state(checkout)
    assert state.dirty is dirty
    assert len(state.commit) == 40


def test_without_a_checkout_of_its_own_nothing_is_known(tmp_path, checkout):
    (tmp_path / "site-packages").mkdir()
    assert git_state(tmp_path / "site-packages") == GitRecord()
