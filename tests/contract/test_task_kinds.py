"""The decoder study on kinds of task that no other contract test runs: each ends in a complete report.

Small random models: a decoder alone on classes of words, an encoder with its decoder on pairs of texts.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from reports.reading.load import Loaded, load
from studies.decoder_layers import STUDY
from tests.helpers.studying import RAYS_OWN, run_here
from tests.helpers.tiny import tiny_backbone

pytestmark = RAYS_OWN


@dataclass(frozen=True)
class Case:
    """A family of backbones on a dataset, and what must come of it."""

    family: str
    dataset: str
    metric: str
    task: str
    figure: str
    factors: str
    streams: str
    fixed: tuple[str, ...] = ()


WORDS = Case(
    *("gpt2", "word-classes-demo", "accuracy", "word classification", "confusion"),
    *("hidden_states word_position read_out", "decoder"),
)
PAIRS = Case(
    *("bart", "similarity-demo", "pearson", "regression of pairs of texts", "learning_curves"),
    *("stream hidden_states read_out", "encoder decoder", ("read_out=mean",)),
)


@dataclass(frozen=True)
class Left:
    """What a study left: its case, its folder and its files."""

    case: Case
    folder: Path
    results: Loaded

    @property
    def study(self):
        return json.loads((self.folder / "study.json").read_text())

    @property
    def pages(self):
        return (self.folder / "report.md").read_text() + (self.folder / "details.md").read_text()


@pytest.fixture(scope="module", params=(WORDS, PAIRS), ids=lambda case: case.task)
def ran(request, ray_here, tmp_path_factory):
    case, root = request.param, tmp_path_factory.mktemp("kind")
    backbone = tiny_backbone(root / "tiny", case.family, layers=2, width=16, heads=2)
    argv = [
        *("--backbone", str(backbone), "--dataset", case.dataset, "--smoke", "--tracking-uri", "none"),
        *("--output", str(root / "out"), "--cache-dir", str(root / "cache"), "--show-text"),
        *("--train-examples", "64", "--eval-examples", "40", "--test-examples", "40"),
        *("--max-length", "48", "--max-concurrent", "1", "--trials", "0"),
        *("--seeds", "1", "--epochs", "1", "--set", "k=8", "heads=2", "feedforward=16", *case.fixed),
    ]
    ended = run_here(argv, study=STUDY)
    assert ended.code == 0, ended.err
    folder = root / "out" / "decoder_layers" / f"tiny-{case.dataset}-smoke"
    return Left(case, folder, load(folder))


def test_every_trial_ends_and_is_scored_as_its_task_asks(ran):
    assert set(ran.results.trials["status"]) == {"completed"}
    assert not ran.results.problems
    assert ran.results.trials[f"test/{ran.case.metric}"].notna().any()
    study = ran.study
    assert study["environment"]["dataset"]["task"] == ran.case.task
    assert study["request"]["metric"] == ran.case.metric
    assert set(study["environment"]["dataset"]["distribution"]) == {"train", "validation", "test"}
    claims = json.loads((ran.folder / "claims.json").read_text())
    assert {claim["metric"] for claim in claims} == {ran.case.metric}


def test_the_report_is_complete(ran):
    details = (ran.folder / "details.md").read_text()
    assert f"(figures/{ran.case.figure}.png)" in details
    for link in re.findall(r"\(figures/(\w+)\.png\)", ran.pages):
        assert (ran.folder / "figures" / f"{link}.svg").exists()
    assert all(label in details for label in ran.study["environment"]["dataset"]["distribution"]["train"])
    assert ran.case.task in details
    # The bootstrap over examples finds each trial's own score in its predictions.
    assert "does not give the score" not in ran.pages
    assert "not known how" not in ran.pages


def test_what_the_backbone_has_is_compared(ran):
    study = ran.study
    factors, streams = {*ran.case.factors.split()}, {*ran.case.streams.split()}
    assert {factor["name"] for factor in study["request"]["factors"]} == factors
    assert {stream["name"] for stream in study["environment"]["backbone"]["streams"]} == streams
    compared = {
        pair["changes"][0]["factor"]
        for pair in study["request"]["comparisons"]
        if len(pair["changes"]) == 1 and not pair["at"]
    }
    assert compared == factors - {"read_out"}  # of which there is one level here
