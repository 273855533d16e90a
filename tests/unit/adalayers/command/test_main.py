"""The command that an interrupted study goes on with."""

import sys
from types import SimpleNamespace

import pytest

from adalayers.command import cases, run
from adalayers.command.main import main
from adalayers.storage.folder import Folder
from tests.unit.adalayers.command.test_flags import STUDY

ARGV = ["--tracking-uri", "none", "--fresh", "--seeds", "3"]


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    folder = Folder(tmp_path / "results")
    folder.write_json("study.json", {})
    of_study = SimpleNamespace(folder=folder)

    def planned(study, flags, hold):
        of_study.command = flags.study.command
        return [of_study]

    monkeypatch.setattr(cases, "cases", planned)
    monkeypatch.setattr(run, "run", lambda *given, **more: "interrupted")
    return of_study


def last_line(capsys):
    return capsys.readouterr().err.splitlines()[-1]


def test_a_study_that_set_another_aside_is_not_set_aside_by_the_command_that_continues_it(earlier, capsys):
    assert main(STUDY, argv=ARGV) == 130
    assert not earlier.folder.exists()
    assert earlier.command == "python studies/made.py --tracking-uri none --seeds 3"
    assert last_line(capsys) == (
        "interrupted; continue with: python studies/made.py --tracking-uri none --seeds 3"
    )


def test_before_that_the_command_is_the_same(earlier, monkeypatch, capsys):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(cases, "cases", interrupted)
    assert main(STUDY, argv=ARGV) == 130
    assert earlier.folder.exists()
    assert "--fresh" in last_line(capsys)


def test_a_script_is_named_as_it_was_typed(earlier, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["../my studies/made.py", *ARGV])
    assert main(STUDY) == 130
    assert "continue with: python '../my studies/made.py' --tracking-uri" in last_line(capsys)
