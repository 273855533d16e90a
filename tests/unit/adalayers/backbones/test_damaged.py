"""A backbone whose files are wrong is refused before anything is computed from it, and says which."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from adalayers.backbones import pretrained
from adalayers.backbones.loading import load
from adalayers.backbones.sources import resolve
from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.request import DataRequest
from tests.helpers.tiny import tiny_backbone


@pytest.fixture
def folder(world, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(world["backbone"], tmp_path / "tiny")


def says(folder, **changes):
    """Change what a config says."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(folder, value):
    weights = load_file(folder / pretrained.WEIGHTS_FILE)
    name = next(name for name in weights if "layer.1" in name and name.endswith("weight"))
    weights[name].view(-1)[-1] = value
    save_file(weights, folder / pretrained.WEIGHTS_FILE, metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"wanted finite weights of 'tiny'.*layer\.1.*NaN or infinity"):
        load(resolve(str(folder)))


def test_token_ids_beyond_the_embeddings(world, folder):
    says(folder, vocab_size=5)
    with pytest.raises(BadInput, match=r"token ids below 5, the embeddings of tiny, its tokeniser gives \d+"):
        prepare(DataRequest(str(folder), str(world["dataset"]), max_length=16))


@pytest.mark.parametrize("pad", [None, -1, 10_000])
def test_no_id_of_padding_where_positions_count_from_it(tmp_path, pad):
    folder = tiny_backbone(tmp_path / "roberta", "roberta", layers=1)
    says(folder, pad_token_id=pad)
    with pytest.raises(BadInput, match=rf"wanted pad_token_id in the config\.json.*got {pad}"):
        resolve(str(folder))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_an_id_of_padding_beyond_the_vocabulary(tmp_path, family):
    folder = tiny_backbone(tmp_path / family, family, layers=1)
    says(folder, pad_token_id=10**6)
    with pytest.raises(BadInput, match=r"pad_token_id|Padding_idx|index out of range"):
        load(resolve(str(folder)))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("num_hidden_layers", 10**7, "config.json of 'tiny' describes 10000000 layers of width 32"),
        ("hidden_size", 10**9, "config.json of 'tiny' describes 4 layers of width 1000000000"),
        ("num_hidden_layers", 0, "config.json of 'tiny' describes 0 layers"),
        ("hidden_size", -32, "config.json of 'tiny' describes 4 layers of width -32"),
        ("num_attention_heads", 3, "config.json of 'tiny' in .* that makes a model"),
        ("num_attention_heads", -1, "wanted a backbone that reads tokens, 'tiny'"),
    ],
)
def test_sizes_that_no_model_has_are_refused_at_once(folder, name, value, said):
    says(folder, **{name: value})
    with pytest.raises(BadInput, match=said):
        load(resolve(str(folder)))


def test_no_id_of_padding_where_nothing_counts_from_it(world, folder):
    says(folder, pad_token_id=None)
    prepared = prepare(DataRequest(str(folder), str(world["dataset"]), max_length=16))
    assert load(prepared.source).pad_id == 0
