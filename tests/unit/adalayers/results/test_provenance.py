"""On what a study ran."""

import subprocess

import pytest

from adalayers.results.provenance import git_state


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


def test_a_change_of_the_code_is_said(checkout):
    assert git_state(checkout / "adalayers")["dirty"] is False
    (checkout / "adalayers" / "mix.py").write_text("2\n")
    state = git_state(checkout / "adalayers")
    assert state["dirty"] is True
    assert len(state["commit"]) == 40


def test_a_new_file_of_the_code_is_one_too(checkout):
    (checkout / "studies").mkdir()
    (checkout / "studies" / "mine.py").write_text("1\n")
    assert git_state(checkout / "adalayers")["dirty"] is True


def test_results_and_pages_in_the_checkout_are_no_change_of_the_code(checkout):
    (checkout / "docs").mkdir()
    (checkout / "docs" / "report.md").write_text("1\n")
    assert git_state(checkout / "adalayers")["dirty"] is False


def test_without_a_checkout_nothing_is_known(tmp_path):
    assert git_state(tmp_path) == {"commit": None, "dirty": None}
