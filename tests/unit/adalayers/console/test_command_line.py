"""How commands end: exit codes, and what stdout and stderr take."""

import subprocess
import sys

import pytest

from adalayers.__main__ import main
from adalayers.console.command_line import run_command
from tests.conftest import ROOT


def test_what_a_terminal_cannot_show_is_escaped(tmp_path):
    code = (
        "from adalayers.console.command_line import run_command; run_command(lambda: print('caf\\xe9') or 0)"
    )
    environment = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert (done.stdout, done.stderr) == ("caf\\xe9\n", "")


@pytest.mark.parametrize("argv", [["cache", "--keep-gb", "much"], ["nothing"], [], ["inspect"]])
def test_a_mistyped_command_is_named_first(argv, capsys):
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "usage" not in said


def test_ctrl_c_ends_a_command_without_a_traceback(capsys):
    def interrupted():
        raise KeyboardInterrupt

    assert run_command(interrupted) == 130
    assert capsys.readouterr().err == "interrupted\n"
