"""The decoder study on kinds of task that no other contract test runs: each ends in a complete report.

Small random models: a decoder alone on classes of words, an encoder with its decoder on pairs of texts.
"""

import json
import re

import pytest

from reports.reading.load import load
from studies.decoder_layers import STUDY
from tests.helpers.studying import RAYS_OWN, flags, run_here
from tests.helpers.tiny import tiny_backbone
from tests.helpers.trials_here import trials_here

pytestmark = RAYS_OWN


SMALL = """--smoke --show-text --tracking-uri none --max-concurrent 1 --trials 0 --seeds 1 --epochs 1
    --train-examples 64 --eval-examples 40 --test-examples 40 --max-length 48 --set feedforward=16"""
WORDS = (
    *("gpt2", "word-classes-demo", "accuracy", "word classification", "learning_curves"),
    *("hidden_states word_position read_out", "decoder", ()),
)
PAIRS = (
    *("bart", "similarity-demo", "pearson", "regression of pairs of texts", "learning_curves"),
    *("stream hidden_states read_out", "encoder decoder", ("read_out=mean",)),
)


@pytest.mark.parametrize("case", [WORDS, PAIRS], ids=["words", "pairs"])
def test_every_trial_is_scored_and_the_report_complete(tmp_path, case):
    family, dataset, metric, task, figure, factors, streams, fixed = case
    backbone = tiny_backbone(tmp_path / "tiny", family, layers=2, width=16, heads=2)
    argv = flags({"backbone": backbone, "dataset": dataset}, tmp_path / "out", *SMALL.split(), *fixed)
    with trials_here():
        run_here(argv, study=STUDY)
    folder = tmp_path / "out" / "decoder_layers" / f"tiny-{dataset}-smoke"
    results = load(folder)
    assert not results.problems
    assert set(results.trials["status"]) == {"completed"}
    assert results.trials[f"test/{metric}"].notna().any()
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["metric"] for claim in claims} == {metric}

    study = json.loads((folder / "study.json").read_text())
    request, on = study["request"], study["environment"]["dataset"]
    assert (on["task"], request["metric"]) == (task, metric)
    assert set(on["distribution"]) == {"train", "validation", "test"}
    assert {factor["name"] for factor in request["factors"]} == {*factors.split()}
    assert {stream["name"] for stream in study["environment"]["backbone"]["streams"]} == {*streams.split()}
    simple = [pair for pair in request["comparisons"] if len(pair["changes"]) == 1 and not pair["at"]]
    # Of the read-out there is one level here.
    assert {pair["changes"][0]["factor"] for pair in simple} == {*factors.split()} - {"read_out"}

    details = (folder / "details.md").read_text()
    pages = (folder / "report.md").read_text() + details
    for words in (task, f"(figures/{figure}.png)", *on["distribution"]["train"]):
        assert words in details
    for link in re.findall(r"\(figures/(\w+)\.png\)", pages):
        assert (folder / "figures" / f"{link}.svg").exists()
    # The bootstrap over examples finds each trial's own score in its predictions.
    assert "does not give the score" not in pages
    assert "not known how" not in pages
