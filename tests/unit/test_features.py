"""The feature store: the right numbers, the right key, nothing half-made, nothing writable."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
import torch

from adalayers import backbone as backbones
from adalayers import sources, tokens
from adalayers.errors import BadInput
from adalayers.features import (
    META,
    LiveFeatures,
    StoredFeatures,
    extraction_batches,
    ragged_index,
    store_folder,
    stored,
)
from tests.tiny import tiny_backbone

CPU = torch.device("cpu")
TEXTS = ["abba abc", "cab", "a bad cab had a dab of jade", "dad", "fab bag"] * 4


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return sources.resolve(str(tiny_backbone(tmp_path_factory.mktemp("tiny") / "model")))


@pytest.fixture(scope="module")
def encoded(source):
    return tokens.encode(tokens.load_tokenizer(source), TEXTS, 16)


def make(root, source, encoded, **options):
    return stored(root, source, encoded, lambda: backbones.load(source), **options)


def test_stored_states_are_the_backbones_own(source, encoded, tmp_path):
    features = make(tmp_path, source, encoded, precision="float32")
    backbone = backbones.load(source)
    for i in range(len(TEXTS)):
        ids = torch.from_numpy(
            encoded.input_ids[encoded.offsets[i] : encoded.offsets[i + 1]].astype(np.int64)
        )[None]
        alone = backbone(ids, torch.ones_like(ids))
        read = features.read(np.array([i]), range(source.layers + 1), CPU)
        for state, expected in enumerate(alone):
            torch.testing.assert_close(read[state], expected[0], atol=1e-5, rtol=1e-5)


def test_half_precision_is_near(source, encoded, tmp_path):
    full, half = make(tmp_path, source, encoded, precision="float32"), make(tmp_path, source, encoded)
    assert full.folder != half.folder
    every = np.arange(len(TEXTS))
    for state, value in full.read(every, [0, 2], CPU).items():
        torch.testing.assert_close(half.read(every, [0, 2], CPU)[state], value, atol=5e-3, rtol=2e-3)


def test_live_in_memory_and_on_disk_agree(source, encoded, tmp_path):
    disk = make(tmp_path, source, encoded, precision="float32")
    memory = StoredFeatures(disk.folder, in_memory=True)
    live = LiveFeatures(source, encoded)
    examples = np.array([3, 0, 7])
    for state in (0, 1, source.layers):
        a, b, c = (f.read(examples, [state], CPU)[state] for f in (disk, memory, live))
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, atol=1e-5, rtol=1e-5)


def test_a_second_call_computes_nothing(source, encoded, tmp_path):
    make(tmp_path, source, encoded)

    def no_backbone():
        raise AssertionError("computed again")

    stored(tmp_path, source, encoded, no_backbone)


def test_every_ingredient_changes_the_store(source, encoded, tmp_path):
    folder = store_folder(tmp_path, source, encoded)
    other_ids = dataclasses.replace(encoded, input_ids=encoded.input_ids[::-1].copy())
    other_cuts = dataclasses.replace(
        encoded, offsets=encoded.offsets + np.r_[0, 1, np.zeros(len(TEXTS) - 1, int)]
    )
    folders = {
        folder,
        store_folder(tmp_path, dataclasses.replace(source, fingerprint="f" * 16), encoded),
        store_folder(tmp_path, source, other_ids),
        store_folder(tmp_path, source, other_cuts),
        store_folder(tmp_path, source, encoded, "float32"),
    }
    assert len(folders) == 5


def test_a_kill_leaves_no_store(source, encoded, tmp_path):
    def kill(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, source, encoded, on_progress=kill)
    assert not store_folder(tmp_path, source, encoded).exists()
    assert list(tmp_path.iterdir()) == []
    make(tmp_path, source, encoded)


def test_states_beyond_half_precision_are_stored_as_float32(source, encoded, tmp_path):
    class Loud(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = backbones.load(source)

        def forward(self, ids, mask):
            return [state * 1e6 for state in self.inner(ids, mask)]

    features = stored(tmp_path, source, encoded, Loud)
    assert features.meta["stored_as"] == "float32"
    assert torch.isfinite(features.read(np.arange(3), [1], CPU)[1]).all()


def test_too_small_a_disk_is_bad_input(source, encoded, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    with pytest.raises(BadInput, match="--cache-dir"):
        make(tmp_path, source, encoded)


def test_what_is_read_cannot_change_the_store(source, encoded, tmp_path):
    features = make(tmp_path, source, encoded)
    before = {f.name: f.read_bytes() for f in features.folder.iterdir()}
    features.read(np.arange(4), [0, 1], CPU)[1].fill_(7.0)
    with pytest.raises(ValueError, match="read-only"):
        features._array(1)[0] = 1.0
    assert {f.name: f.read_bytes() for f in features.folder.iterdir()} == before


def test_only_the_path_travels(source, encoded, tmp_path):
    features = make(tmp_path, source, encoded)
    features.read(np.arange(4), [0, 1], CPU)
    assert len(pickle.dumps(features)) < 1000
    again = pickle.loads(pickle.dumps(features))
    assert torch.equal(again.read(np.arange(2), [1], CPU)[1], features.read(np.arange(2), [1], CPU)[1])


def test_meta_says_what_it_is(source, encoded, tmp_path):
    meta = json.loads((make(tmp_path, source, encoded).folder / META).read_text())
    assert meta["key"]["backbone"] == source.fingerprint
    assert meta["stored_as"] == "float16"


def test_ragged_index():
    offsets = np.array([0, 2, 2, 5, 6])
    assert ragged_index(offsets, np.array([2, 0, 1, 3])).tolist() == [2, 3, 4, 0, 1, 5]


def test_extraction_batches_hold_each_sequence_once_within_the_limit():
    lengths = np.random.default_rng(0).integers(2, 900, 200)
    batches = extraction_batches(lengths)
    assert sorted(np.concatenate(batches).tolist()) == list(range(200))
    assert all(len(batch) == 1 or len(batch) * lengths[batch].max() <= 4096 for batch in batches)
