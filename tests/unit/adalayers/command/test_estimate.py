"""What the dry run says of the data."""

import json
import re

from adalayers.backbones import loading
from adalayers.command.estimate import backbone_line
from adalayers.command.main import main
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.request import DataRequest
from studies import capacity
from studies.backbones import STUDY
from tests.helpers.studying import NoPages
from tests.helpers.tiny import tiny_backbone


def llama(folder, **sizes):
    """Make a folder of a decoder of bfloat16 weights, its weights left out."""
    tiny_backbone(folder, "llama", layers=2)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16", **sizes}))
    (folder / "model.safetensors").unlink()
    sizes = {"train_examples": 40, "eval_examples": 20, "test_examples": 20, "max_length": 32}
    return DataRequest(str(folder), "acceptability-demo", **sizes)


def test_a_decoder_of_seven_billions_is_priced_from_its_config(tmp_path, monkeypatch):
    """Llama 2 7B's sizes: 6.61 billion parameters, the head that predicts words not counted."""
    monkeypatch.setattr(loading, "device_bytes", lambda: 24 << 30)
    sizes = {"hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000}
    heads = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128}
    prepared = prepare(llama(tmp_path / "llama", **sizes, **heads), weights=False)
    counted = 32 * (4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096) + 32000 * 4096 + 4096
    assert prepared.backbone_parameters == (counted, 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096)
    assert backbone_line(prepared) == (
        "6,607 million parameters; about 13.21 GB on disk, no weights in its folder; 13.21 GB of memory, "
        "computes in bfloat16"
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
        *("--train-examples", "40", "--eval-examples", "20", "--test-examples", "20"),
    ]
    assert main(STUDY, NoPages, [*argv, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "on disk, no weights in its folder; 0.00 GB of memory, computes in float32" in said
    assert "time        without the base model's passes, as it is not loaded; a trial at most" in said
    assert re.search(r"cache +\d+ MB in .*, all of test among it unless --test-examples caps it", said)
    assert "; of each text every token" in said
    of_texts = ("--set", "fusion=layer-set", "read_out=mean", "--dry-run")
    assert main(capacity.STUDY, NoPages, [*argv, *of_texts]) == 0
    said = capsys.readouterr().out
    assert "; of each text mean" in said
    assert re.search(r"cache +0 MB", said)
    assert not (tmp_path / "results").exists()
    assert main(STUDY, NoPages, argv) == 2
    assert "wanted safetensors weights" in capsys.readouterr().err
