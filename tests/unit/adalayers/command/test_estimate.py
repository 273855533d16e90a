"""What the dry run says of the data."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from adalayers.backbones import loading
from adalayers.command import expected
from adalayers.command.estimate import backbone_line, shared, timed_config
from adalayers.command.main import main
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.request import DataRequest
from adalayers.study import ConfirmedArm, Plan, Space
from adalayers.tuning.searcher import Rungs
from studies.backbones import STUDY
from tests.helpers.studying import NoPages
from tests.helpers.tiny import tiny_backbone


def test_examples_that_also_stand_in_train_are_said_where_there_are_any():
    assert shared({"validation": 0, "test": 0}) == ""
    assert shared({"validation": 3, "test": 0}) == "3 of validation are also in the training data"
    assert (
        shared({"validation": 3, "test": 1041})
        == "3 of validation and 1,041 of test are also in the training data"
    )


def test_without_a_search_the_control_arm_is_timed():
    base, control = trial_config(), trial_config(batch_size=600, epochs=96)
    plan = Plan(base, Space({}, {}, {}), [ConfirmedArm("control", "published", control)])
    assert timed_config(plan, 0) == control
    assert timed_config(plan, 3) == base


def test_a_scheduler_lets_some_trials_go_on_and_patience_ends_the_rest():
    many = expected.searched(64, 20, "asha")
    assert 2 / 20 < many.low < many.expected < many.high < 0.6
    assert expected.searched(64, 20, "asha") == many, "the same draws each time"
    assert expected.searched(1, 20, "asha") == (1, 1, 1), "the first has nothing to be compared with"
    assert expected.searched(64, 20, "fifo") == (1, 1, 1)
    assert expected.searched(64, 1, "asha") == (1, 1, 1)
    assert expected.patient(trial_config(epochs=20, patience=4)) == (0.25, 0.625, 1)
    assert expected.patient(trial_config(epochs=3, patience=5)) == (1, 1, 1)


def test_what_is_expected_is_what_the_scheduler_does():
    """Ray's own rungs, with trials one after the other that rank the same at all of them."""
    rng, epochs, shares = np.random.default_rng(1), 20, []
    for _ in range(20):
        rungs, trained = Rungs(SimpleNamespace(finished=list), epochs=epochs), 0
        for number, score in enumerate(rng.random(30)):
            trial = SimpleNamespace(trial_id=str(number))
            rungs.on_trial_add(None, trial)
            for epoch in range(1, epochs + 1):
                ends = epoch
                if (
                    epoch == epochs
                    or rungs.on_trial_result(None, trial, {"epoch": epoch, "best": score}) == "STOP"
                ):
                    break
            trained += ends
        shares.append(trained / (30 * epochs))
    assert np.mean(shares) == pytest.approx(expected.searched(30, epochs, "asha").expected, rel=0.1)


def llama(folder, **sizes):
    """Make a folder of a decoder of bfloat16 weights, its weights left out."""
    tiny_backbone(folder, "llama", layers=2)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16", **sizes}))
    (folder / "model.safetensors").unlink()
    return DataRequest(str(folder), "acceptability-demo", train_examples=40, eval_examples=20, max_length=32)


def test_a_decoder_of_seven_billions_is_priced_from_its_config(tmp_path, monkeypatch):
    """Llama 2 7B's sizes: 6.61 billion parameters, the head that predicts words not counted."""
    monkeypatch.setattr(loading, "device_bytes", lambda: 24 << 30)
    sizes = {"hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000}
    heads = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128}
    prepared = prepare(llama(tmp_path / "llama", **sizes, **heads), weights=False)
    counted = 32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096) + 32000 * 4096 + 4096
    assert prepared.backbone_parameters == (counted, 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)
    assert backbone_line(prepared) == (
        "6,607 million parameters; about 13.21 GB on disk, not fetched yet; 13.21 GB of memory, computes in bfloat16"
    )
    # Embeddings, 32 layers and the last one before its norm, 4096 numbers of 2 bytes each.
    assert prepared.store_bytes == prepared.n_tokens * 34 * 4096 * 2
    some = prepared.reading([trial_config(hidden_states="layers:1,6,12")])
    assert some.store_bytes == prepared.n_tokens * 3 * 4096 * 2


def test_a_dry_run_needs_no_weights_and_says_that_it_estimates(tmp_path, capsys):
    request = llama(tmp_path / "llama")
    argv = [
        *("--backbone", request.backbone, "--dataset", request.dataset),
        *("--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")),
        *("--train-examples", "40", "--eval-examples", "20"),
    ]
    assert main(STUDY, NoPages, [*argv, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "on disk, not fetched yet; 0.00 GB of memory, computes in float32" in said
    assert "without a pass of the backbone" in said
    assert "hidden states" in said
    assert not (tmp_path / "results").exists()
    assert main(STUDY, NoPages, argv) == 2
    assert "wanted safetensors weights" in capsys.readouterr().err
