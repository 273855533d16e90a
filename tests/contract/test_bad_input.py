"""Bad input ends with exit 2 before any trial, without a traceback, in a message whose first line suffices.

Whatever is bad about it: of odd and damaged input a few cases of each kind; `python -m tests.fuzz` runs thousands.
"""

import re
import shlex
from unittest import mock

import huggingface_hub
import pytest

from adalayers.command.main import main
from adalayers.storage.hub import PROBE_SECONDS
from studies.alpha_lambda import STUDY
from tests.fuzz import KINDS, fuzz
from tests.helpers.studying import flags


def refuse(argv, capsys):
    """Run in this process; return the first line of the message."""
    with mock.patch("reports.write_report", side_effect=AssertionError("a report was written")):
        assert main(STUDY, argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err.splitlines()[0]


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        ("--trials many", "--trials"),
        ("--scheduler pbt", "has no identity"),
        ("--seeds 0", "--seeds of at least 1, got 0"),
        (f"--seed {10**30}", "--seed of at most"),
        ("--set k=0", "k of at least 1, got 0; raise k"),
        ("--set alhpa=3", "'alpha'"),
        ("--set epochs=3 --epochs 4", "--set epochs=3"),
        ("--set fusion=scalar-mix", "--set fusion=scalar-mix"),
        ("--smallest-effect nan", "--smallest-effect above 0"),
        ("--label ///", "--label"),
        (f"--label {'x' * 300}", "--label of at most 64 characters"),
        ("minilm", "wanted flags alone, got 'minilm'"),
        (f"--output {__file__} --dry-run", "a folder as --output"),
        ("--output ~nouser-of-this-name/r", "~nouser-of-this-name"),
        ("--dataset ~nouser-of-this-name/x", "~nouser-of-this-name"),
        ("--output ''", "a folder as --output, got none"),
        ("--output s3://", "'s3://' (ValueError: it names no bucket)"),
        ("--tracking-uri http://[::1", "an MLflow tracking URI"),
        ("--tracking-uri sqlite://", "a file as MLflow's database"),
        ("--gpus-per-trial 4096", "--gpus-per-trial"),
        (f"--address {'a' * 5000}:1", "a Ray cluster as --address"),
        ("--group all", "--group auto or a number of at least 1, got 'all'"),
        ("--dataset cola --data-dir /nowhere", "--data-dir"),
        ("--dataset similarity-demo --set class_weights=balanced", "class_weights=none"),
    ],
)
def test_flags(argv, wanted, capsys):
    assert wanted in refuse(shlex.split(argv), capsys)


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        ("--set cutoff=0.25", "below 1/4"),
        ("--max-length 100000", "--max-length of at most"),
        ("--dry-run --set lr=1e30 optimiser=adamw", "diverge within a few steps"),
    ],
)
def test_flags_that_the_backbone_or_the_data_refuse(argv, wanted, world, tmp_path, capsys):
    assert wanted in refuse([*flags(world, tmp_path / "results"), *argv.split()], capsys)
    assert not (tmp_path / "results").exists()


def test_a_case_that_is_named_twice(world, tmp_path, capsys):
    twice = ["--backbone", str(world["backbone"]), f"{world['backbone']}/."]
    assert "once, got" in refuse([*flags(world, tmp_path / "results"), *twice], capsys)


def test_a_hub_out_of_reach_is_said_soon(tmp_path, capsys, monkeypatch):
    """It is asked once, with a time limit: the libraries' own retries, which take most of a minute, are not begun."""
    session = mock.Mock(**{"head.side_effect": ConnectionRefusedError("nobody listens")})
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.example:9")
    monkeypatch.setattr("huggingface_hub.get_session", lambda: session)
    message = refuse(["--backbone", "someone/some-model", "--output", str(tmp_path / "r")], capsys)
    for said in ("--data-dir", "local folder", "http://hub.example:9: nobody listens"):
        assert said in message
    session.head.assert_called_once_with("http://hub.example:9", timeout=PROBE_SECONDS)
    assert PROBE_SECONDS <= 5


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HTTPS_PROXY", "http://user:geheim@proxy:99999"),
        ("HTTPS_PROXY", "http://[::1"),
        ("HF_ENDPOINT", "https://hub:port"),
    ],
)
def test_an_address_that_is_none(tmp_path, capsys, monkeypatch, variable, value):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv(variable, value)
    huggingface_hub.close_session()  # it has the environment of before
    argv = ["--backbone", "someone/some-model", "--dataset", "acceptability-demo"]
    message = refuse([*argv, "--output", str(tmp_path / "r")], capsys)
    huggingface_hub.close_session()
    assert "the Hugging Face hub, which is out of reach (" in message
    assert "geheim" not in message


def test_help_names_every_flag_of_the_contract(capsys):
    assert main(STUDY, ["--help"]) == 0
    contract = """backbone dataset data-dir output label search scheduler trials seeds seed epochs train-examples
        eval-examples test-examples max-length max-hours cache-dir features show-text cpus-per-trial gpus-per-trial
        max-concurrent address tracking-uri set dry-run smoke fresh text-column label-column metric
        smallest-effect precision"""
    assert {f"--{name}" for name in contract.split()} <= {*re.findall(r"--[a-z-]+", capsys.readouterr().out)}


@pytest.mark.filterwarnings("ignore")  # of libraries, about damaged files
def test_odd_input_is_done_with_or_refused(tmp_path):
    assert fuzz(tmp_path, cases=64, seed=1, kinds=list(KINDS)) == []
