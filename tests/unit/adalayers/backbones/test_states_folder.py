"""Hidden states from elsewhere: the same study as on the backbone that wrote them, and every refusal."""

import dataclasses
import json
import runpy
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from adalayers.backbones import sources
from adalayers.backbones.states_folder import read
from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.models.saved import load, save
from adalayers.request import DataRequest
from adalayers.storage.folder import Folder
from adalayers.training.trainer import train
from tests.helpers.documented import snippet

CPU = torch.device("cpu")


def written(folder, prepared, features, dtype, shard=50):
    """Write the hidden states of a prepared task, several files a split, and return the folder."""
    states = prepared.source.states
    for role, split in features.items():
        (folder / role).mkdir(parents=True)
        for first in range(0, len(split), shard):
            examples = np.arange(first, min(first + shard, len(split)))
            read_states = split.features.read(examples, states, CPU)
            arrays = {state.key: read_states[state].to(dtype) for state in states}
            lengths = torch.from_numpy(split.lengths(examples))
            save_file({**arrays, "lengths": lengths}, folder / role / f"{first:05d}.safetensors")
    meta = {"model": "m", "states": [state.key for state in states], "embeddings": True, "final_norm": False}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def scores(outcome):
    return {name: value for name, value in outcome.row.items() if name.startswith(("val/", "test/", "mix/"))}


@pytest.fixture(scope="module")
def asked(world):
    return DataRequest(str(world["backbone"]), str(world["dataset"]))


@pytest.fixture(scope="module")
def folder(asked, tmp_path_factory):
    prepared = prepare(asked)
    splits = prepared.data("live").splits
    return written(tmp_path_factory.mktemp("given") / "given", prepared, splits, torch.float32)


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "given")


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [
        (torch.float16, "float16"),  # float32 would keep more than such a folder has
        (torch.float32, "float16"),
        (torch.float32, "float32"),
    ],
)
def test_a_study_scores_as_on_the_backbone_that_wrote_the_states(asked, dtype, precision, tmp_path):
    own = prepare(dataclasses.replace(asked, precision=precision, train_examples=80))
    whole = prepare(dataclasses.replace(own.request, train_examples=None, precision="float32"))
    folder = written(tmp_path / "s", whole, whole.data("memory", cache=tmp_path / "c").splits, dtype)
    given = prepare(dataclasses.replace(own.request, backbone=f"states:{folder}"))
    config = trial_config(k=8, epochs=3, batch_size=16)
    stored, copied, live = (
        scores(train(config, prepared.data(mode, cache=tmp_path / "c"), seed=1, test=True))
        for prepared, mode in ((own, "memory"), (given, "memory"), (given, "live"))
    )
    assert stored == copied
    if precision == "float32":
        assert copied == live


def test_the_script_of_the_docs_writes_such_a_folder(world, tmp_path, monkeypatch):
    for file in world["dataset"].glob("*.parquet"):
        rows = pd.read_parquet(file).astype({"label": str})
        rows.to_csv(tmp_path / f"{file.name.partition('-')[0]}.csv", index=False)
    script = tmp_path / "write_states.py"
    script.write_text(snippet("write-states", "docs/states.md"))
    monkeypatch.setattr(sys, "argv", ["", str(world["backbone"]), str(tmp_path), str(tmp_path / "made")])
    runpy.run_path(str(script))
    ours = prepare(DataRequest(str(world["backbone"]), str(world["dataset"])))
    given = prepare(DataRequest(f"states:{tmp_path / 'made'}", str(world["dataset"])))
    examples = np.array([3, 0])
    for role in ("train", "test"):
        a, b = (prepared.data("live").splits[role].features for prepared in (ours, given))
        read_a, read_b = (each.read(examples, ours.source.states, CPU) for each in (a, b))
        for state in ours.source.states:
            torch.testing.assert_close(read_a[state], read_b[state], atol=5e-3, rtol=5e-3)


def test_states_without_embeddings_and_of_a_decoder(copy):
    meta = json.loads((copy / "meta.json").read_text())
    names = meta["states"][1:]
    now = {"model": "m", "states": names, "final_norm": True, "causal": True}
    (copy / "meta.json").write_text(json.dumps(now))
    source = sources.resolve(f"states:{copy}")
    assert [state.name for state in source.states] == [f"decoder_{i:02d}" for i in range(1, len(names) + 1)]
    assert "lies behind a final norm" in source.note
    assert source.fingerprint != sources.resolve(f"states:{copy}").name


@pytest.fixture
def changed(copy):
    """Return what changes arrays of train's first file."""

    def change(**arrays):
        path = sorted((copy / "train").iterdir())[0]
        there = load_file(path)
        there |= {name: make(there[name]) for name, make in arrays.items()}
        save_file({name: values for name, values in there.items() if values is not None}, path)
        return copy

    return change


def refused(folder, dataset=None):
    with pytest.raises(BadInput) as error:
        prepare(DataRequest(f"states:{folder}", str(dataset))) if dataset else read(folder)
    return str(error.value)


def test_a_folder_that_is_missing_or_has_no_meta_is_named(tmp_path):
    assert str(tmp_path / "none") in refused(tmp_path / "none")
    assert "meta.json" in refused(tmp_path)
    assert str(tmp_path) in refused(tmp_path)


@pytest.mark.parametrize(
    ("meta", "word"),
    [
        ("{", "meta.json"),
        ({"model": 3}, "model"),
        ({"final_norm": None}, "final_norm"),
        ({"states": []}, "lowest first"),
        ({"states": ["encoder_00", "other"]}, "other"),
        ({"states": ["lengths", "encoder_01"]}, "lowest first"),
    ],
)
def test_a_meta_that_says_too_little_is_refused(copy, meta, word):
    there = json.loads((copy / "meta.json").read_text())
    (copy / "meta.json").write_text(meta if isinstance(meta, str) else json.dumps(there | meta))
    assert word in refused(copy)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"encoder_02": lambda values: None}, "encoder_02"),
        ({"encoder_02": lambda values: values[:-1]}, "one shape"),
        ({"encoder_02": lambda values: values[:, 0].clone()}, "one shape"),
        ({"encoder_02": lambda values: values.double()}, "float16, bfloat16 or float32"),
        ({"encoder_02": lambda values: values / 0}, "NaN"),
        ({"lengths": lambda values: values[:-1]}, "lengths"),
        ({"lengths": lambda values: values * 0}, "lengths"),
        ({"lengths": lambda values: values.float()}, "lengths"),
        ({f"encoder_{i:02d}": lambda values: values[:, :8].clone() for i in range(5)}, "one width"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_with_their_file(changed, arrays, words):
    message = refused(changed(**arrays))
    assert words in message
    assert "safetensors" in message


def test_other_rows_than_the_datasets_are_refused(copy, world):
    sorted((copy / "train").iterdir())[0].unlink()
    message = refused(copy, world["dataset"])
    assert "120 examples" in message
    assert "got 70" in message


def test_words_want_a_row_each(tmp_path):
    task = prepare(DataRequest("minilm", "entities-demo")).task
    for role, split in task.splits.items():
        (tmp_path / role).mkdir()
        lengths = torch.tensor([len(words) for words in split.inputs])
        lengths[0] += role == "test"
        arrays = {"a": torch.randn(int(lengths.sum()), 4), "lengths": lengths}
        save_file(arrays, tmp_path / role / "0.safetensors")
    (tmp_path / "meta.json").write_text(json.dumps({"model": "m", "states": ["a"], "final_norm": False}))
    assert "a row for each of the" in refused(tmp_path, "entities-demo")


def test_what_needs_a_base_model_is_refused(folder, asked, tmp_path):
    with pytest.raises(BadInput, match="base model after random:"):
        sources.canonical(f"random:states:{folder}")
    given = dataclasses.replace(asked, backbone=f"states:{folder}")
    with pytest.raises(BadInput, match="bfloat16"):
        prepare(dataclasses.replace(given, backbone_dtype="bfloat16"))
    prepared = prepare(given)
    with pytest.raises(BadInput, match="base_model to be frozen where hidden states were computed elsewhere"):
        trial_config(base_model="fine-tuned").check(prepared.shape)
    data = prepared.data("live")
    model = train(trial_config(k=4, heads=2, epochs=1), data, seed=0).model
    save(model, Folder(tmp_path), about=dataclasses.asdict(data.provenance))
    assert load(tmp_path).shape == prepared.shape
    with pytest.raises(BadInput, match="run texts through"):
        load(tmp_path, backbone="minilm")
