"""A new study is whole: it has a space, arms and flags, and runs where it was written."""

import importlib
import sys
from unittest import mock

import pytest

from adalayers.__main__ import main
from adalayers.command.main import main as run_study
from tests.helpers.planning import planned, setting_of
from tests.helpers.states import made_shape


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_new_study_is_planned_as_it_stands(monkeypatch, capsys):
    assert main(["new-study", "mine"]) == 0
    assert "python mine.py --dry-run" in capsys.readouterr().out
    study = importlib.import_module("mine").STUDY
    setting = setting_of(study, made_shape("sequence", 2, layers=6, width=384))
    assert [arm.name for arm in planned(study, setting).arms] == ["dropout=0", "dropout=0.1", "dropout=0.3"]
    monkeypatch.setattr(sys, "argv", ["mine.py", "--help"])
    assert run_study(study) == 0
    assert capsys.readouterr().out.startswith("usage: mine.py")


def test_a_name_that_would_hide_a_module_or_file_and_a_folder_that_takes_none(tmp_path, capsys, monkeypatch):
    (tmp_path / "linked_space.py").symlink_to(tmp_path / "elsewhere.py")
    for name, said in (
        ("ray", "wanted a name that no module has, Python or a package has a 'ray'"),
        ("reports", "has a 'reports'"),
        ("single_layer", "has a 'single_layer'"),  # whose folders it would share
        ("Not-a-name", "small letters"),
        ("linked", "linked_space.py is there"),  # a dangling link is not written through
    ):
        assert main(["new-study", name]) == 2
        assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["linked_space.py"]
    monkeypatch.setattr("pathlib.Path.open", mock.Mock(side_effect=PermissionError(13, "Permission denied")))
    assert main(["new-study", "another"]) == 2
    assert "failed (Permission denied)" in capsys.readouterr().err
