"""What the dry run says of the data."""

import re

from adalayers.backbones import loading
from adalayers.command import estimate
from adalayers.command.cases import cases
from adalayers.command.estimate import backbone_line
from adalayers.command.flags import parse
from adalayers.command.main import main
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.request import DataRequest
from studies import capacity
from studies.backbones import STUDY
from tests.helpers.tiny import says, tiny_backbone


def llama(folder, **sizes):
    """Make a folder of a decoder of bfloat16 weights, its weights left out."""
    tiny_backbone(folder, "llama", layers=2)
    says(folder, dtype="bfloat16", **sizes)
    (folder / "model.safetensors").unlink()
    return str(folder)


def test_a_decoder_of_seven_billions_is_priced_from_its_config(tmp_path, monkeypatch):
    """Llama 2 7B's sizes: 6.61 billion parameters, the head that predicts words not counted."""
    monkeypatch.setattr(loading, "device_bytes", lambda: 24 << 30)
    sizes = {"hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000, "head_dim": 128}
    names = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    folder = llama(tmp_path / "llama", **sizes, **dict.fromkeys(names, 32))
    examples = {"train_examples": 40, "eval_examples": 20, "test_examples": 20, "max_length": 32}
    prepared = prepare(DataRequest(folder, "acceptability-demo", **examples), weights=False)
    layer = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
    assert prepared.backbone_parameters == (32 * layer + 32000 * 4096 + 4096, layer)
    said = "6,607 million parameters; its weights are not here yet; 13.21 GB of memory, computes in bfloat16"
    assert backbone_line(prepared) == said
    # Embeddings, 32 layers and the last one before its norm, 4096 numbers of 2 bytes each.
    assert prepared.store_bytes == prepared.n_tokens * 34 * 4096 * 2
    some = prepared.reading([trial_config(hidden_states="layers:1,6,12")])
    assert some.store_bytes == prepared.n_tokens * 3 * 4096 * 2


def test_a_trial_takes_epochs_and_evaluations_and_a_confirmed_one_its_variants_and_test(monkeypatch, world):
    """In seconds, where an example takes one in an epoch, a quarter of it without a backward pass."""
    monkeypatch.setattr(estimate, "_seconds_per_example", lambda *given: 1.0)
    sizes = {"train_examples": 40, "eval_examples": 20, "test_examples": 10}
    prepared = prepare(DataRequest(str(world["backbone"]), "acceptability-demo", **sizes))
    often, seldom = trial_config(epochs=8), trial_config(epochs=8, evaluate_every=4, train_examples=20)
    _, epochs, last = estimate._seconds(prepared, [often, seldom], live=False, variants=6)
    assert epochs == {often: 8 * (30 + 5), seldom: 8 * (15 + 5 / 4)}
    assert last == dict.fromkeys([often, seldom], (7 * 20 + 10) / 4)
    no_test = prepare(DataRequest(str(world["backbone"]), str(world["dataset"]), splits=("test=none",)))
    n_validation = len(no_test.task.splits["validation"])
    assert estimate._seconds(no_test, [often], live=False, variants=1)[2] == {often: 2 * n_validation / 4}


def test_a_dry_run_needs_no_weights_and_says_that_it_estimates(tmp_path, capsys):
    argv = [
        *("--backbone", llama(tmp_path / "llama"), "--dataset", "acceptability-demo"),
        *("--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")),
        *("--train-examples", "40", "--eval-examples", "20", "--test-examples", "20"),
    ]
    of_texts = ("--set", "fusion=layer-set", "read_out=mean")
    for study, more, stored in ((STUDY, (), r"[1-9]\d* MB"), (capacity.STUDY, of_texts, "0 MB")):
        assert main(study, [*argv, *more, "--dry-run"]) == 0
        said = capsys.readouterr().out
        assert "; its weights are not here yet; 0.00 GB of memory, computes in float32" in said
        assert "time        without the base model's passes, as it is not loaded; a trial at most" in said
        assert f"; of each text {'mean' if more else 'every token'}" in said
        assert re.search(rf"cache +{stored} in ", said)
    flags = parse(capacity.STUDY, [*argv, "--set", "train_examples=5000", "--dry-run"])
    (case,) = cases(capacity.STUDY, flags)
    assert {arm.name.partition("train_examples=")[2] for arm in case.plan.arms} == {"40"}, "all there are"
    assert not (tmp_path / "results").exists()
    assert main(STUDY, argv) == 2
    assert "wanted safetensors weights" in capsys.readouterr().err
