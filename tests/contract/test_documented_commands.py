"""Every command that a page prints is one: its program is there, and takes these flags with these values."""

import contextlib
import importlib
import re
import shlex
import warnings
from importlib.util import find_spec

import click
import pytest

from adalayers.__main__ import main
from adalayers.command.flags import parse
from adalayers.command.studies import find_study
from tests.helpers.studying import ROOT

GUIDES = ("README.md", "CONTRIBUTING.md", "search_spaces/README.md", "docs/results/README.md")
PAGES = [*(ROOT / page for page in GUIDES), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/clusters/*")]
PROGRAM = re.compile(r"(?:python studies/|python -m |adalayers |make |ray |mlflow )[^`#|]*")
SHORT = re.compile(r"`([A-Z]+)`(?: stands)? for\s`(--[^`]+)`")
"""What a page says that a name in its commands stands for."""
ELSEWHERE = {"batch", "dropout", "mean_or_mix", "..."}
"""Studies that a page writes, and another test runs."""


def printed():
    """Yield the commands of all pages, in blocks and in the text."""
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        for name, flags in SHORT.findall(text):
            text = re.sub(rf"\b{name}\b(?=.*`)", flags, text)
        lines = [line for line in text.splitlines() if "|" not in line]
        for shown in [*re.findall(r"`([^`\n]+)`", text), *lines]:
            if (found := PROGRAM.search(shown)) and not shown[: found.start()].rstrip(" -").strip():
                yield found[0].strip()


@pytest.mark.parametrize("command", sorted(set(printed())))
def test_a_command_that_a_page_prints_is_one(command, capsys):
    program, what, *rest = shlex.split(command)
    if program in ("ray", "mlflow"):
        with warnings.catch_warnings(action="ignore"):  # of MLflow's own types
            module = importlib.import_module({"ray": "ray.scripts.scripts", "mlflow": "mlflow.cli"}[program])
        command = module.cli.commands[what]
        while isinstance(command, click.Group):
            command = command.commands[rest.pop(0)]
        with contextlib.suppress(click.MissingParameter):
            command.make_context(what, rest)
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert {what, *rest} <= set(targets)
    elif what == "-m":
        assert find_spec(rest[0])
    elif program == "python" or what == "study":
        name = re.sub(r"studies/|\.py", "", what if program == "python" else rest.pop(0))
        if name not in ELSEWHERE:
            assert parse(find_study(name), [word for word in rest if word != "..."]).requests
    else:
        assert main([what, "--help"]) == 0
        known = capsys.readouterr().out
        assert all(word in known for word in rest if word.startswith("--")), known


def test_every_flag_is_on_a_page(capsys):
    text = "".join(page.read_text() for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")])
    assert main(["--help"]) == 0
    commands = re.findall(r"^ {4}([a-z-]+)", capsys.readouterr().out, re.M)
    assert {"study", "report", "decide", "repeat"} <= {*commands}
    for command in [*commands, "study single_layer"]:
        assert main([*command.split(), "--help"]) == 0
        flags = {*re.findall(r"--[a-z-]+", capsys.readouterr().out)} - {"--help"}
        assert [flag for flag in flags if not re.search(rf"{flag}(?![a-z-])", text)] == [], command
