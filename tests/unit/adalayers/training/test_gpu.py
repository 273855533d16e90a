"""On a GPU: resident features in bfloat16, and trials that share one. Skipped without one."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from adalayers.backbones import loading, sources, tokens
from adalayers.features.features import StoredFeatures, stored
from tests.helpers.studying import ROOT
from tests.helpers.tiny import tiny_backbone

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: its paths are not tested here")


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_bfloat16_states_computed_there_are_those_of_the_cpu_but_for_rounding(tmp_path, family):
    """In its memory, and copied to it."""
    source = sources.resolve(str(tiny_backbone(tmp_path / "model", family)))
    every = source.reads([state for stream in source.streams for state in stream.states()])
    half = dataclasses.replace(every, dtype="bfloat16")
    encoded = tokens.encode(tokens.load_tokenizer(source), ["abba abc", "cab", "a bad cab"] * 5, 16)
    cpu, cuda, examples = torch.device("cpu"), torch.device("cuda"), np.array([3, 0, 7])
    found = stored(tmp_path, half, encoded, lambda: loading.load(half), device=cuda)
    exact = stored(tmp_path, every, encoded, lambda: loading.load(every), device=cpu)
    assert found.folder != exact.folder
    expected, copied = exact.read(examples, every.states, cpu), found.read(examples, half.states, cpu)
    for features in (found, StoredFeatures(found.folder, resident=True)):
        for state, values in features.read(examples, half.states, cuda).items():
            assert torch.equal(values.cpu(), copied[state])
            largest = float(expected[state].abs().max())
            torch.testing.assert_close(copied[state], expected[state], rtol=0, atol=0.1 * largest)


def test_four_trials_share_one(tmp_path):
    """In a process of its own: Ray that runs here may have been started without GPUs."""
    argv = [
        *("--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache"), "--smoke"),
        *("--backbone", str(tiny_backbone(tmp_path / "tiny")), "--dataset", "acceptability-demo"),
        *("--backbone-dtype", "bfloat16", "--gpus-per-trial", "0.25", "--tracking-uri", "none"),
    ]
    script = ROOT / "studies" / "backbones.py"
    subprocess.run([sys.executable, str(script), *argv], check=True, timeout=300)
    study = json.loads((tmp_path / "results/backbones/tiny-acceptability-demo-smoke/study.json").read_text())
    assert study["environment"]["backbone"]["dtype"] == "bfloat16"
