"""How commands end: exit codes, and what stdout and stderr take."""

import io
import sys
from unittest import mock

import pytest

from adalayers.__main__ import main
from adalayers.console.command_line import run_command


def test_what_a_terminal_cannot_show_is_escaped(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert run_command(lambda: print("caf\xe9") or 0) == 0
    assert stream.buffer.getvalue() == b"caf\\xe9\n"


@pytest.mark.parametrize("argv", [["cache", "--keep-gb", "much"], ["nothing"], [], ["inspect"]])
def test_a_mistyped_command_is_named_first(argv, capsys):
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "usage" not in said


def test_ctrl_c_ends_a_command_without_a_traceback(capsys):
    assert run_command(mock.Mock(side_effect=KeyboardInterrupt)) == 130
    assert capsys.readouterr().err == "interrupted\n"
