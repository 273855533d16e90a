"""A study of every kind of task that the other contract tests do not run ends in a complete report."""

from __future__ import annotations

import json
import re

import pytest

from adalayers.results.files import load
from tests.helpers.studying import RAYS_OWN, SMALL, run_here
from tests.helpers.tiny import tiny_backbone

pytestmark = RAYS_OWN
SIZES = ("--train-examples", "64", "--eval-examples", "40", "--max-length", "48", "--seeds", "2")


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return str(tiny_backbone(tmp_path_factory.mktemp("kinds") / "tiny", layers=2, width=16, heads=2))


@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize(
    ("dataset", "metric", "task", "figure"),
    [
        ("similarity-demo", "pearson", "regression of pairs of texts", "residuals"),
        ("word-classes-demo", "accuracy", "word classification", "confusion"),
    ],
)
def test_a_study_ends_in_a_complete_report(backbone, tmp_path, dataset, metric, task, figure):
    ran = run_here(
        [
            *("--backbone", backbone, "--dataset", dataset, "--output", str(tmp_path / "out")),
            *(
                "--cache-dir",
                str(tmp_path / "cache"),
                "--show-text",
                "--set",
                "k=8",
                "heads=2",
                "feedforward=16",
            ),
            *SMALL[2:],
            *SIZES,
        ],
        figures=True,
    )
    assert ran.code == 0, ran.err
    folder = tmp_path / "out" / "alpha_lambda" / f"tiny-{dataset}"
    results = load(folder)
    assert set(results.trials["status"]) <= {"completed", "stopped"}
    assert not results.problems
    assert results.trials[f"test/{metric}"].notna().any()
    study = json.loads((folder / "study.json").read_text())
    assert (study["on"]["dataset"]["task"], study["asked"]["metric"]) == (task, metric)
    assert set(study["on"]["dataset"]["distribution"]) == {"train", "validation", "test"}
    details = (folder / "details.md").read_text()
    assert f"(figures/{figure}.svg)" in details
    assert (folder / "figures" / f"{figure}.svg").exists()
    for link in re.findall(r"\(figures/(\w+)\.svg\)", details):
        assert (folder / "figures" / f"{link}.svg").exists()
    assert "## Labels" in details
    assert task in details
    # The bootstrap over examples finds each trial's own score in its predictions.
    report = (folder / "report.md").read_text()
    assert "does not give the score" not in report + details
    assert "not known how" not in report + details
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["metric"] for claim in claims} == {metric}
    examples = (folder / "examples.md").read_text()
    assert ("the largest 50 below" if dataset == "similarity-demo" else "the surest 50 below") in examples
    if dataset == "similarity-demo":
        assert " / " in examples  # both texts of a pair
