"""What is loaded is what the fingerprint is of: nothing else in a model's folder, or named in its files, is read; a
backbone whose files are wrong is refused before anything is computed from it."""

import json
import math
import os
import pickle
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from adalayers.backbones import pretrained
from adalayers.backbones.backbone import Backbone
from adalayers.backbones.check import last_state_problem
from adalayers.backbones.families import Family
from adalayers.backbones.loading import load
from adalayers.backbones.sources import resolve
from adalayers.backbones.tokens import load_tokenizer
from adalayers.data.prepare import prepare
from adalayers.request import DataRequest
from adalayers.states import Stream
from tests.helpers.refusing import refused
from tests.helpers.tiny import batch, says, tiny_backbone

WEIGHTS = pretrained.WEIGHTS_FILE


@pytest.fixture
def folder(world, tmp_path):
    """A copy of a small BERT that a test may spoil."""
    return shutil.copytree(world["backbone"], tmp_path / "tiny")


def read(folder):
    """Return all hidden states of a batch [states, batch, time, width], and the token ids of a text."""
    source = resolve(str(folder))
    states = torch.stack([*load(source)(*batch([6, 4])).values()])
    return states, load_tokenizer(source)("the cat sleeps in London")["input_ids"]


def save_weights(path, weights):
    save_file(weights, path, metadata={"format": "pt"})


class Bomb:
    """Once it is unpickled there is a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


COUNTED = r"wanted pad_token_id in the config\.json.*got "
QUANTISED = {"quantization_config": {"quant_method": "fp8"}}


@pytest.mark.parametrize(
    ("family", "name", "value", "said"),
    [
        ("bert", "num_hidden_layers", 10**7, "describes 10000000 layers of width 32"),
        ("bert", "hidden_size", -32, "describes 1 layers of width -32"),
        ("bert", "num_attention_heads", 3, "config.json of 'bert' in .* that makes a model"),
        ("bert", "num_attention_heads", -1, "wanted a backbone that reads tokens, 'bert'"),
        ("bert", "is_decoder", True, "'bert' model as it was pretrained, .* set up as a decoder"),
        ("bert", "model_type", "of-another-library", r"config\.json of 'bert'"),
        ("bert", "transformers_weights", "other.safetensors", "without transformers_weights"),
        ("bert", "quantization_config", {"quant_method": "bitsandbytes"}, "without quantization_config"),
        ("bert", "text_config", QUANTISED, "without quantization_config"),
        ("roberta", "pad_token_id", None, COUNTED + "None"),
        ("roberta", "pad_token_id", 10_000, COUNTED + "10000"),
        ("llama", "pad_token_id", 10**6, "pad_token_id|Padding_idx|index out of range"),
    ],
)
def test_an_entry_that_no_model_has_or_that_has_other_weights_read(tmp_path, family, name, value, said):
    folder = tiny_backbone(tmp_path / family, family, layers=1)
    says(folder, **{name: value})
    refused(said, read, folder)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", None, r"no config\.json"),
        ("config.json", "{}", r"config\.json of 'tiny'"),
        (WEIGHTS, None, "holds none that are complete"),
        ("tokenizer.json", None, "wanted a tokeniser"),
        ("tokenizer.json", "{}", "cannot be loaded"),
        # It would be applied or not by whether peft is installed.
        ("adapter_model.safetensors", "", "wanted weights alone of 'tiny', .* holds an adapter too"),
    ],
)
def test_a_file_that_is_missing_or_none_and_an_adapter(folder, file, content, said):
    (folder / file).unlink(missing_ok=True)
    if content is not None:
        (folder / file).write_text(content)
    refused(said, read, folder)


def test_weights_that_are_no_numbers_missing_or_a_pickle(folder, tmp_path):
    whole = load_file(folder / WEIGHTS)
    name = next(name for name in whole if "layer.1" in name and name.endswith("weight"))
    for value in (math.nan, math.inf):
        broken = whole[name].clone()
        broken.view(-1)[-1] = value
        save_weights(folder / WEIGHTS, {**whole, name: broken})
        refused(r"wanted finite weights of 'tiny'.*layer\.1.*NaN or infinity", read, folder)
    save_weights(folder / WEIGHTS, {name: tensor for name, tensor in whole.items() if "layer.2." not in name})
    refused(r"lack 16 of them \(encoder\.layer\.2", read, folder)
    (folder / WEIGHTS).write_bytes(pickle.dumps(Bomb(tmp_path / "unpickled")))
    refused("they cannot be loaded", read, folder)
    assert not (tmp_path / "unpickled").exists()


def test_token_ids_and_padding_that_do_or_do_not_fit_the_embeddings(world, folder):
    says(folder, pad_token_id=None)  # nothing counts from it
    request = DataRequest(str(folder), str(world["dataset"]), max_length=16)
    assert load(prepare(request).source).pad_id == 0
    says(folder, vocab_size=5)
    refused(r"token ids below 5, the embeddings of tiny, its tokeniser gives \d+", prepare, request)


@pytest.mark.parametrize("family", ["llama", "gpt2", "t5"])
def test_the_last_state_lies_behind_the_final_norm_whatever_a_config_says(tmp_path, family):
    folder = tiny_backbone(tmp_path / family, family, layers=2)
    states, _ = read(folder)
    says(folder, tie_last_hidden_states=False)
    again, _ = read(folder)
    torch.testing.assert_close(again, states, rtol=0, atol=0)
    assert not torch.allclose(again[-1], again[-2]), "before the norm, and behind it"


@pytest.mark.parametrize(
    ("family", "kind", "norm", "problem"),
    [
        ("bert", "encoder", "embeddings.LayerNorm", "the last layer, not behind embeddings.LayerNorm"),
        ("gpt2", "decoder", "", "ln_f, not behind the last layer"),
    ],
)
def test_a_final_norm_that_is_not_where_its_family_says_is_found(tmp_path, family, kind, norm, problem):
    backbone = load(resolve(str(tiny_backbone(tmp_path / family, family, layers=2))))
    assert last_state_problem(backbone) == ""
    streams = [Stream(kind, 2, final_norm=bool(norm))]
    wrong = Backbone(backbone.model, streams=streams, width=backbone.width, family=Family(kind, norm))
    assert last_state_problem(wrong) == f"that of the {kind} lies behind {problem}"


def test_files_that_are_no_part_of_it_and_what_configs_name_beside_the_folder_are_not_read(folder, tmp_path):
    fingerprint, (states, ids) = resolve(str(folder)).fingerprint, read(folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {word: len(vocabulary) - 1 - i for word, i in vocabulary.items()}
    negated = {name: -values for name, values in load_file(folder / WEIGHTS).items()}
    save_weights(folder / "model-00001-of-00001.safetensors", negated)
    index = {"metadata": {}, "weight_map": {"x": "model-00001-of-00001.safetensors"}}
    for name, text in {
        "generation_config.json": "{",
        "sentence_bert_config.json": '{"max_seq_length": 2, "do_lower_case": true}',
        "chat_template.jinja": "{{ '{' }}",
        "config.4.0.0.json": '{"model_type": "gpt2"}',
        "tokenizer.4.0.0.json": json.dumps(tokenizer),
        "../tokenizer.4.0.0.json": json.dumps(tokenizer),
        "../vocab.txt": "\n".join(reversed(vocabulary)),
        "modeling_tiny.py": f"import os; os.mkdir({str(tmp_path / 'ran')!r})",
        "model.safetensors.index.json": json.dumps(index),  # model.safetensors goes first
    }.items():
        (folder / name).write_text(text)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "unpickled")))
    assert resolve(str(folder)).fingerprint == fingerprint
    says(
        folder,
        auto_map={"AutoModel": "modeling_tiny.Tiny", "AutoConfig": "modeling_tiny.Config"},
        configuration_files=["config.4.0.0.json"],
        _attn_implementation="somebody/kernel",
        attn_implementation="somebody/kernel",
    )
    says(
        folder,
        "tokenizer_config.json",
        vocab_file=str(tmp_path / "vocab.txt"),
        tokenizer_file=str(tmp_path / "tokenizer.4.0.0.json"),
        fast_tokenizer_files=["tokenizer.4.0.0.json"],
        init_inputs=[str(tmp_path / "vocab.txt")],
        auto_map={"AutoTokenizer": ["modeling_tiny.Slow", "modeling_tiny.Fast"]},
    )
    again, ids_again = read(folder)
    torch.testing.assert_close(again, states, rtol=0, atol=0)
    assert ids_again == ids
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "unpickled").exists()


SHARDS = ("../tiny.safetensors", "/tmp/other.safetensors", "missing.safetensors", "x.bin", 3)


@pytest.mark.parametrize(
    "index", ["", "[" * 100_000, *(json.dumps({"weight_map": {"a": shard}}) for shard in SHARDS)]
)
def test_an_index_names_safetensors_of_the_folder_alone(folder, tmp_path, index):
    shutil.copy(folder / WEIGHTS, tmp_path / "tiny.safetensors")
    (folder / WEIGHTS).rename(folder / "model-00001-of-00001.safetensors")
    (folder / "x.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "unpickled")))
    (folder / "model.safetensors.index.json").write_text(index)
    refused("holds none that are complete; other formats are not read", read, folder)
    assert not (tmp_path / "unpickled").exists()


def test_weights_behind_a_link_are_known_by_what_they_are(folder, tmp_path):
    fingerprint, (states, _) = resolve(str(folder)).fingerprint, read(folder)
    path = (folder / WEIGHTS).rename(tmp_path / "weights")
    (folder / WEIGHTS).symlink_to("../weights")
    assert resolve(str(folder)).fingerprint == fingerprint
    torch.testing.assert_close(read(folder)[0], states, rtol=0, atol=0)
    save_weights(path, {name: -values for name, values in load_file(path).items()})
    assert resolve(str(folder)).fingerprint != fingerprint


def test_no_place_for_temporary_files_is_bad_input(folder, monkeypatch):
    source = resolve(str(folder))
    monkeypatch.setattr(pretrained.tempfile, "tempdir", "/nowhere")
    refused(r"cannot be loaded \(FileNotFoundError: .*/nowhere", load_tokenizer, source)


def test_the_published_fingerprint_of_minilm():
    """The store of hidden states, and docs/results, rest on it."""
    assert resolve("minilm").fingerprint == "ba25ff2953a38675"
    assert resolve("random:minilm").fingerprint == "f851ae92c20592cb"
