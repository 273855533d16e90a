"""What is loaded is what the fingerprint is of: nothing else in a model's folder, or named in its files, is read."""

import json
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
from adalayers.errors import BadInput, CannotWrite
from adalayers.states import Stream
from tests.helpers.tiny import batch, tiny_backbone

TEXT = "the cat sleeps in London"


@pytest.fixture
def folder(world, tmp_path):
    """A copy of a small BERT that a test may add to."""
    return shutil.copytree(world["backbone"], tmp_path / "tiny")


def says(folder, name="config.json", **changes):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def read(folder):
    """Return all hidden states of a batch [states, batch, time, width], and the token ids of a text."""
    source = resolve(str(folder))
    return torch.stack([*load(source)(*batch([6, 4])).values()]), load_tokenizer(source)(TEXT)["input_ids"]


def other_weights(folder, name):
    weights = load_file(folder / pretrained.WEIGHTS_FILE)
    save_file({key: -values for key, values in weights.items()}, folder / name, metadata={"format": "pt"})


class Bomb:
    """Once it is unpickled there is a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("transformers_weights", "other.safetensors"),
        ("transformers_weights", "../other.safetensors"),
        ("quantization_config", {"quant_method": "bitsandbytes", "load_in_8bit": True}),
        ("text_config", {"quantization_config": {"quant_method": "fp8"}}),
    ],
)
def test_an_entry_that_makes_other_weights_be_read_is_refused(folder, entry, value):
    other_weights(folder, "other.safetensors")
    says(folder, **{entry: value})
    with pytest.raises(BadInput, match=r"config\.json of 'tiny' .* without (transformers_w|quantization_c)"):
        resolve(str(folder))
    resolve(f"random:{folder}")  # reads none


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_an_adapter_beside_weights_is_refused(folder, name):
    """It would be applied or not by whether peft is installed."""
    (folder / name).write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "base"}))
    with pytest.raises(BadInput, match=r"wanted weights alone of 'tiny', .* holds an adapter too"):
        resolve(str(folder))


@pytest.mark.parametrize("family", ["llama", "gpt2", "t5"])
def test_the_last_state_lies_behind_the_final_norm_whatever_a_config_says(tmp_path, family):
    folder = tiny_backbone(tmp_path / family, family, layers=2)
    states, _ = read(folder)
    says(folder, tie_last_hidden_states=False)
    again, _ = read(folder)
    torch.testing.assert_close(again, states, rtol=0, atol=0)
    assert not torch.allclose(again[-1], again[-2]), "before the norm, and behind it"


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_final_norm_that_is_not_where_its_family_says_is_found(tmp_path, family):
    source = resolve(str(tiny_backbone(tmp_path / family, family, layers=2)))
    backbone = load(source)
    assert last_state_problem(backbone) == ""
    kind, norm = ("encoder", "embeddings.LayerNorm") if family == "bert" else ("decoder", "")
    streams = [Stream(kind, 2, final_norm=bool(norm))]
    wrong = Backbone(backbone.model, streams=streams, width=backbone.width, family=Family(kind, norm))
    where = ("behind the last layer", norm) if norm else ("behind ln_f", "the last layer")
    assert last_state_problem(wrong) == "that of the {} lies {}, not behind {}".format(kind, *where)


def test_files_that_are_no_part_of_it_change_nothing(folder, tmp_path):
    fingerprint, (states, ids) = resolve(str(folder)).fingerprint, read(folder)
    (folder / "generation_config.json").write_text("{")
    (folder / "modules.json").write_text('[{"path": "1_Pooling"}]')
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 2, "do_lower_case": true}')
    (folder / "chat_template.jinja").write_text("{{ '{' }}")
    (folder / "config.5.0.0.json").write_text('{"model_type": "gpt2"}')
    (folder / "tokenizer.5.0.0.json").write_text("{}")
    (folder / "other.model").write_bytes(b"\0")
    (folder / "modeling_tiny.py").write_text(f"import os; os.mkdir({str(tmp_path / 'ran')!r})")
    with (folder / "pytorch_model.bin").open("wb") as file:
        pickle.dump(Bomb(tmp_path / "unpickled"), file)
    other_weights(folder, "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": {"x": "model-00001-of-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))  # model.safetensors goes first
    again, ids_again = read(folder)
    assert resolve(str(folder)).fingerprint == fingerprint
    torch.testing.assert_close(again, states, rtol=0, atol=0)
    assert ids_again == ids
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "unpickled").exists()


def test_what_configs_name_beside_the_folder_is_not_read(folder, tmp_path):
    states, ids = read(folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {word: len(vocabulary) - 1 - i for word, i in vocabulary.items()}
    for place in (folder, tmp_path):
        (place / "tokenizer.4.0.0.json").write_text(json.dumps(tokenizer))
    (tmp_path / "vocab.txt").write_text("\n".join(reversed(vocabulary)))
    code = {"AutoModel": "modeling_tiny.Tiny", "AutoConfig": "modeling_tiny.Config"}
    (folder / "modeling_tiny.py").write_text(f"import os; os.mkdir({str(tmp_path / 'ran')!r})")
    (folder / "config.4.0.0.json").write_text(json.dumps({"model_type": "gpt2"}))
    says(
        folder,
        auto_map=code,
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


SHARDS = [
    *("../other.safetensors", "/tmp/other.safetensors", "../model.safetensors", "missing.safetensors"),
    *("pytorch_model.bin", "a/b.safetensors", "x.bin", 3),
]


@pytest.mark.parametrize(
    "index", ["", "[" * 100_000, *(json.dumps({"weight_map": {"a": shard}}) for shard in SHARDS)]
)
def test_an_index_names_safetensors_of_the_folder_alone(folder, tmp_path, index):
    other_weights(folder, "../other.safetensors")
    (folder / pretrained.WEIGHTS_FILE).rename(folder / "model-00001-of-00001.safetensors")
    for name in ("pytorch_model.bin", "x.bin"):
        with (folder / name).open("wb") as file:
            pickle.dump(Bomb(tmp_path / "unpickled"), file)
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(BadInput, match="holds none that are complete; other formats are not read"):
        resolve(str(folder))
    assert not (tmp_path / "unpickled").exists()


def test_weights_that_are_pickled_alone_are_none(folder, tmp_path):
    (folder / pretrained.WEIGHTS_FILE).unlink()
    torch.save({"a": torch.zeros(1)}, folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match="other formats are not read: save the model with save_pretrained"):
        resolve(str(folder))
    with (folder / pretrained.WEIGHTS_FILE).open("wb") as file:  # named as what it is not
        pickle.dump(Bomb(tmp_path / "unpickled"), file)
    with pytest.raises(BadInput, match="they cannot be loaded"):
        load(resolve(str(folder)))
    assert not (tmp_path / "unpickled").exists()


def test_weights_behind_a_link_are_known_by_what_they_are(folder, tmp_path):
    fingerprint, (states, _) = resolve(str(folder)).fingerprint, read(folder)
    other_weights(folder, "../other.safetensors")
    (folder / pretrained.WEIGHTS_FILE).rename(tmp_path / "weights")
    (folder / pretrained.WEIGHTS_FILE).symlink_to("../weights")
    assert resolve(str(folder)).fingerprint == fingerprint
    torch.testing.assert_close(read(folder)[0], states, rtol=0, atol=0)
    (folder / pretrained.WEIGHTS_FILE).unlink()
    (folder / pretrained.WEIGHTS_FILE).symlink_to("../other.safetensors")
    assert resolve(str(folder)).fingerprint != fingerprint


def test_no_place_for_temporary_files_is_bad_input(folder, monkeypatch):
    source = resolve(str(folder))
    monkeypatch.setattr(pretrained.tempfile, "tempdir", "/nowhere")
    with pytest.raises(CannotWrite, match=r"failed \(No such file or directory\); set TMPDIR to one"):
        load_tokenizer(source)


def test_the_published_fingerprint_of_minilm():
    """The store of hidden states, and docs/results, rest on it."""
    assert resolve("minilm").fingerprint == "ba25ff2953a38675"
    assert resolve("random:minilm").fingerprint == "f851ae92c20592cb"
