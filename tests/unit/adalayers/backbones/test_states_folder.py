"""Hidden states from elsewhere: the same study as on the backbone that wrote them, and every refusal."""

import dataclasses
import json
import runpy
import shutil
import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

from adalayers.backbones import sources
from adalayers.backbones.states_folder import read
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.models.saved import load, save
from adalayers.request import DataRequest
from adalayers.storage.folder import Folder
from adalayers.training.trainer import train
from tests.helpers.documented import snippet
from tests.helpers.interrupting import assert_same
from tests.helpers.refusing import refused

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def wanted(world):
    return DataRequest(str(world["backbone"]), str(world["dataset"]))


@pytest.fixture(scope="module")
def folder(world, tmp_path_factory):
    """What the script of the docs writes, fifty examples a file."""
    root = tmp_path_factory.mktemp("given")
    for file in world["dataset"].glob("*.parquet"):
        rows = pd.read_parquet(file).astype({"label": str})
        rows.to_csv(root / f"{file.name.partition('-')[0]}.csv", index=False)
    script = root / "write_states.py"
    script.write_text(snippet("write-states", "docs/states.md").replace("1000", "50"))
    with mock.patch.object(sys, "argv", ["", str(world["backbone"]), str(root), str(root / "given")]):
        runpy.run_path(str(script))
    return root / "given"


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "given")


def test_the_states_are_the_backbones_and_a_study_scores_alike_over_both(wanted, folder, tmp_path):
    own = prepare(wanted)
    given = prepare(dataclasses.replace(wanted, backbone=f"states:{folder}", train_examples=80))
    whole = prepare(dataclasses.replace(given.request, train_examples=None))
    examples = np.array([3, 0, 55])
    for role in ("train", "validation", "test"):
        ours, theirs = (
            prepared.data("live").splits[role].features.read(examples, own.source.states, CPU)
            for prepared in (own, whole)
        )
        for state in own.source.states:
            torch.testing.assert_close(theirs[state], ours[state], atol=5e-3, rtol=5e-3)
    assert own.also_in_train
    assert not given.also_in_train, "nothing reads the texts"
    config = trial_config(k=8, epochs=3, batch_size=16)
    read_as = (given.data(mode, cache=tmp_path) for mode in ("memory", "live"))
    assert_same(*(train(config, data, seed=1, test=True) for data in read_as))


def test_states_without_embeddings_and_of_a_decoder(copy):
    names = json.loads((copy / "meta.json").read_text())["states"][1:]
    now = {"model": "m", "states": names, "final_norm": True, "causal": True}
    (copy / "meta.json").write_text(json.dumps(now))
    source = sources.resolve(f"states:{copy}")
    assert [state.name for state in source.states] == [f"decoder_{i:02d}" for i in range(1, len(names) + 1)]
    assert "lies behind a final norm" in source.note


@pytest.mark.parametrize(
    ("meta", "word"),
    [
        ("{", "meta.json"),
        ({"model": 3}, "model"),
        ({"final_norm": None}, "final_norm"),
        ({"states": []}, "lowest first"),
        ({"states": ["layer_1", "layer_10", "layer_2"]}, "lowest first"),
        ({"states": [1, 2]}, "lowest first"),
        ("[" * 10**5, "meta.json"),
        ({"states": ["embeddings", "other"]}, "other"),
        ({"states": ["lengths", "layer_1"]}, "lowest first"),
    ],
)
def test_a_meta_that_says_too_little_is_refused(copy, meta, word):
    path = copy / "meta.json"
    path.write_text(meta if isinstance(meta, str) else json.dumps(json.loads(path.read_text()) | meta))
    refused(word, read, copy)


STATES = ("embeddings", "layer_1", "layer_2", "layer_3", "layer_4")


@pytest.mark.parametrize(
    ("names", "change", "words"),
    [
        (["layer_2"], lambda values: None, "layer_2"),
        (["layer_2"], lambda values: values[:-1], "one shape"),
        (["layer_2"], torch.Tensor.double, "float16, bfloat16 or float32"),
        (["layer_2"], lambda values: values / 0, "NaN"),
        (["lengths"], lambda values: values[:-1], "lengths"),
        (["lengths"], lambda values: torch.cat([values, values[:1] * 0]), "lengths"),
        (["lengths"], torch.Tensor.float, "lengths"),
        (["lengths"], torch.Tensor.bfloat16, "lengths"),
        (STATES, lambda values: values[:, :0].clone(), "one shape"),
        (STATES, lambda values: values[:, :8].clone(), "one width"),
        (STATES, lambda values: values[:, 0].clone(), "one shape"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_with_their_file(copy, names, change, words):
    path = sorted((copy / "train").iterdir())[0]
    there = load_file(path)
    there |= {name: change(there[name]) for name in names}
    save_file({name: values for name, values in there.items() if values is not None}, path)
    assert "safetensors" in refused(words, read, copy)


def test_rows_and_folders_that_are_missing_are_named(copy, world, tmp_path):
    refused(str(tmp_path / "none"), read, tmp_path / "none")
    refused("meta.json", read, tmp_path)
    (copy / "train" / "x.safetensors").mkdir()
    refused("a folder", read, copy)
    (copy / "train" / "x.safetensors").rmdir()
    shutil.copy(sorted((copy / "train").iterdir())[0], copy / "validation" / "x.safetensors")
    refused("got what train has too", read, copy)
    (copy / "validation" / "x.safetensors").unlink()
    sorted((copy / "train").iterdir())[0].unlink()
    request = DataRequest(f"states:{copy}", str(world["dataset"]))
    assert "got 70" in refused("120 examples", prepare, request)


def test_files_whose_names_do_not_sort_as_their_numbers_do_are_refused(copy):
    for number, file in zip((2, 10), sorted((copy / "train").iterdir()), strict=False):
        file.rename(file.with_name(f"part-{number}.safetensors"))
    refused("got part-10.safetensors before part-2.safetensors", read, copy)


def test_words_want_a_row_each(tmp_path):
    task = prepare(DataRequest("minilm", "entities-demo")).task
    for role, split in task.splits.items():
        (tmp_path / role).mkdir()
        lengths = np.array([len(words) for words in split.inputs], dtype=np.uint16)
        lengths[0] += role == "test"
        arrays = {"a": np.ones((lengths.sum(), 4), dtype=np.float32), "lengths": lengths}
        save_arrays(arrays, tmp_path / role / "0.safetensors")
    (tmp_path / "meta.json").write_text(json.dumps({"model": "m", "states": ["a"], "final_norm": False}))
    refused("a row for each of the", prepare, DataRequest(f"states:{tmp_path}", "entities-demo"))


def test_what_needs_a_base_model_is_refused(folder, wanted, tmp_path):
    refused("base model after random:", sources.canonical, f"random:states:{folder}")
    given = dataclasses.replace(wanted, backbone=f"states:{folder}")
    refused("bfloat16", prepare, dataclasses.replace(given, backbone_dtype="bfloat16"))
    prepared = prepare(given)
    said = "base_model to be frozen where hidden states were computed elsewhere"
    refused(said, trial_config(base_model="fine-tuned").check, prepared.shape)
    data = prepared.data("live")
    model = train(trial_config(k=4, heads=2, epochs=1), data, seed=0).model
    save(model, Folder(tmp_path), about=dataclasses.asdict(data.provenance))
    assert load(tmp_path).shape == prepared.shape
    refused("run texts through", load, tmp_path, backbone="minilm")
