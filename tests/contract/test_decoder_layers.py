"""The decoder study, with --smoke, on small random models: a decoder alone, and an encoder with its decoder."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

import reports
from adalayers.command.main import main
from adalayers.results.files import load
from studies.decoder_layers import STUDY
from tests.helpers.studying import RAYS_OWN
from tests.helpers.tiny import tiny_backbone

pytestmark = RAYS_OWN


@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize(
    ("family", "dataset", "more", "factors", "read"),
    [
        ("gpt2", "word-classes-demo", (), {"hidden_states", "word_position", "read_out"}, {"decoder"}),
        (
            "bart",
            "similarity-demo",
            ("read_out=mean",),
            {"stream", "hidden_states", "read_out"},
            {"encoder", "decoder"},
        ),
    ],
)
def test_a_smoke_run_ends_in_a_report_that_compares_what_the_backbone_has(
    tmp_path, family, dataset, more, factors, read
):
    backbone = tiny_backbone(tmp_path / "tiny", family, layers=2, width=16, heads=2)
    argv = ["--backbone", str(backbone), "--dataset", dataset, "--smoke", "--tracking-uri", "none"]
    argv += [
        "--output",
        str(tmp_path / "out"),
        "--cache-dir",
        str(tmp_path / "cache"),
        "--train-examples",
        "48",
    ]
    argv += ["--seeds", "1", "--epochs", "1", "--set", "k=8", "heads=2", "feedforward=16", *more]
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        code = main(STUDY, reports, argv)
    assert code == 0, err.getvalue()
    folder = tmp_path / "out" / "decoder_layers" / f"tiny-{dataset}-smoke"
    results = load(folder)
    assert set(results.trials["status"]) == {"completed"}
    assert not results.problems
    study = json.loads((folder / "study.json").read_text())
    assert {factor["name"] for factor in study["asked"]["factors"]} == factors
    assert {stream["name"] for stream in study["on"]["backbone"]["streams"]} == read
    compared = {
        one["arm"].partition("=")[0] for one in study["asked"]["comparisons"] if one["kind"] == "factor"
    }
    assert compared == factors - {"read_out"}  # of which there is one level here
    report = (folder / "report.md").read_text() + (folder / "details.md").read_text()
    assert "nothing of what follows" in report
