"""What a command takes from its environment: what is cleared, set, refused, and put back."""

import os
import sys
import warnings
from unittest import mock

import pytest

from adalayers import environ
from adalayers.console.command_line import run_command
from adalayers.environ import prepared
from adalayers.errors import local_path
from adalayers.storage.folder import Folder
from tests.helpers.refusing import refused

CLEARED = "MPLBACKEND TUNE_RESULT_DIR TUNE_MAX_PENDING_TRIALS_PG RAY_AIR_LOCAL_CACHE_DIR RAY_RUNTIME_ENV_HOOK"


@pytest.mark.parametrize(
    ("name", "value", "within"),
    [
        *((name, "x", None) for name in (*CLEARED.split(), "GIT_DIR", "MLFLOW_EXPERIMENT_NAME")),
        ("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "1", "0"),
        ("TUNE_DISABLE_SIGINT_HANDLER", "0", "1"),
        ("RAY_USAGE_STATS_ENABLED", "1", "1"),  # the user's own word stays
        ("RAY_ADDRESS", "head:6379", "head:6379"),
        ("GIT_CONFIG_COUNT", "0", "0"),
    ],
)
def test_a_variable_is_cleared_set_or_left_and_then_as_it_was(name, value, within, monkeypatch):
    monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with prepared():
        assert os.environ.get(name) == within
        assert {name: os.environ[name] for name in environ.SET} == environ.SET
    assert dict(os.environ) == before


def test_a_user_without_a_name_or_home_gets_both_for_the_command(monkeypatch, tmp_path):
    for name in ("ADALAYERS_CACHE", "XDG_CACHE_HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    monkeypatch.setattr("pwd.getpwuid", mock.Mock(side_effect=KeyError))
    with prepared():
        home = os.environ["HOME"]
        assert os.path.isdir(home)
        assert os.environ["USER"] == f"user-{os.getuid()}"
        assert environ.default_cache().is_relative_to(home)
    assert not os.path.exists(home)
    assert os.environ["HOME"] == str(tmp_path / "none")


def test_warnings_are_no_errors_of_a_command_and_a_missing_folder_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "warnoptions", ["error"])
    with warnings.catch_warnings(), prepared():
        warnings.warn("of a library", UserWarning, stacklevel=1)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run_command(lambda: 0) == 2
    assert capsys.readouterr().err.startswith("error: wanted a current folder, this one is gone")


@pytest.mark.parametrize(
    ("locale", "name"), [("ascii", "jürgen"), ("utf-8", "j\udcfcrgen"), ("latin-1", "jürgen")]
)
def test_a_path_that_libraries_read_otherwise_is_refused(locale, name, tmp_path, monkeypatch):
    said = rf"a path that is UTF-8, got .*rgen in .* as {locale}; set PYTHON"
    for opened in (Folder, lambda path: local_path(path, "--cache-dir")):
        with monkeypatch.context() as patched:
            opened(str(tmp_path / "jürgen"))
            patched.setattr(sys, "getfilesystemencoding", lambda: locale)
            refused(said, opened, str(tmp_path / name))
            opened(str(tmp_path / "plain"))
