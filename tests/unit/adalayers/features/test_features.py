"""The feature store: the right numbers, the right key, nothing half-made, nothing writable."""

import dataclasses
import errno
import json
import os
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from adalayers.backbones import loading, sources, tokens
from adalayers.errors import BadInput, CannotWrite
from adalayers.features import features
from adalayers.features.extract import extraction_batches
from adalayers.features.features import LiveFeatures, StoredFeatures, Subset, store_folder, stored
from adalayers.features.store import META, Writer
from tests.helpers.states import encoder
from tests.helpers.tiny import tiny_backbone

CPU = torch.device("cpu")
(STATE_1,) = encoder(1)
TEXTS = ["abba abc", "cab", "a bad cab had a dab of jade", "dad", "fab bag"] * 4


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return sources.resolve(str(tiny_backbone(tmp_path_factory.mktemp("tiny") / "model")))


@pytest.fixture(scope="module")
def encoded(source):
    return tokens.encode(tokens.load_tokenizer(source), TEXTS, 16)


def make(root, source, encoded, **options):
    return stored(root, source, encoded, lambda: loading.load(source), **options)


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_half_precision_rounds_once(source, encoded, tmp_path, precision):
    full = make(tmp_path, source, encoded, precision="float32")
    half = make(tmp_path, source, encoded, precision=precision)
    assert full.folder != half.folder
    every, dtype = np.arange(len(TEXTS)), getattr(torch, precision)
    read = half.read(every, encoder(3, 0), CPU)
    for state, values in full.read(every, encoder(0, 3), CPU).items():
        assert torch.equal(read[state], values.to(dtype))


def test_live_in_memory_and_on_disk_agree(source, encoded, tmp_path):
    disk = make(tmp_path, source, encoded, precision="float32")
    memory = StoredFeatures(disk.folder, resident=True)
    live = LiveFeatures(source, encoded)
    examples = np.array([3, 0, 7])
    for state in encoder(0, 1, source.layers):
        a, b, c = (f.read(examples, [state], CPU)[state] for f in (disk, memory, live))
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "first-token", "last-token"])
def test_a_pooled_store_has_one_vector_of_each_sequence(source, encoded, tmp_path, pooling):
    of_texts = dataclasses.replace(source, pooling=pooling)
    whole, few = (make(tmp_path, base, encoded, precision="float32") for base in (source, of_texts))
    assert whole.folder != few.folder
    assert (few.lengths == whole.lengths).all()
    examples = np.array([3, 0, 7])
    for state in source.states:
        rows = whole.read(examples, [state], CPU)[state].split(whole.lengths[examples].tolist())
        wanted = [{"mean": x.mean(0), "first-token": x[0], "last-token": x[-1]}[pooling] for x in rows]
        torch.testing.assert_close(few.read(examples, [state], CPU)[state], torch.stack(wanted))
    stored(tmp_path, of_texts, encoded, never, precision="float32")
    assert len(pickle.loads(pickle.dumps(few)).read(examples, [STATE_1], CPU)[STATE_1]) == 3


def never():
    raise AssertionError("computed again")


def test_every_ingredient_changes_the_store(source, encoded, tmp_path, monkeypatch):
    other = dataclasses.replace(source, fingerprint="f" * 16)
    turned = dataclasses.replace(encoded, input_ids=encoded.input_ids[::-1].copy())
    cut = dataclasses.replace(encoded, offsets=encoded.offsets + np.r_[0, 1, np.zeros(len(TEXTS) - 1, int)])
    keys = [store_folder(tmp_path, *given) for given in ((source, encoded), (other, encoded))]
    keys += [store_folder(tmp_path, source, tokens) for tokens in (turned, cut)]
    keys += [store_folder(tmp_path, source, encoded, precision) for precision in ("float32", "bfloat16")]
    with monkeypatch.context() as patched:
        patched.setattr("importlib.metadata.version", lambda name: "0.0.1")
        keys.append(store_folder(tmp_path, source, encoded))
    monkeypatch.setattr("adalayers.features.features.STORE_FORMAT", 99)
    keys.append(store_folder(tmp_path, source, encoded))
    assert len(set(keys)) == len(keys)


@pytest.fixture
def small_batches(monkeypatch):
    """Few tokens at a time, and a progress that is kept after each batch."""
    monkeypatch.setattr("adalayers.features.extract.EXTRACT_TOKENS", 24)
    monkeypatch.setattr("adalayers.features.features.EXTRACT_TOKENS", 24)
    monkeypatch.setattr("adalayers.features.store.KEEP_SECONDS", 0.0)


class Kill(BaseException):
    """Stands for SIGKILL: nothing that handles errors handles it."""


def test_a_killed_store_is_continued_and_equals_one_that_was_not(source, encoded, tmp_path, small_batches):
    whole = make(tmp_path / "whole", source, encoded)
    computed = []

    def kill(done, total):
        computed.append(done)
        if len(computed) == 3:
            raise Kill

    root = tmp_path / "killed"
    with pytest.raises(Kill):
        make(root, source, encoded, on_progress=kill)
    folder = store_folder(root, source, encoded)
    assert not (folder / META).exists()
    with pytest.raises(BadInput, match=r"it has no meta\.json"):
        StoredFeatures(folder)
    with (folder / "encoder_01.npy").open("ab") as file:
        file.write(b"what a kill left half-written")
    resumed = []
    features = make(root, source, encoded, on_progress=lambda done, total: resumed.append(done))
    assert resumed[0] > computed[2], "it began again"
    ours, theirs = ({f.name: f.read_bytes() for f in at.glob("*.npy")} for at in (folder, whole.folder))
    assert ours == theirs
    assert features.meta["files"] == whole.meta["files"]
    assert not (folder / "progress.json").exists()


@pytest.mark.parametrize("what", ["rows", "spec", "file", "header"])
def test_a_started_store_that_was_changed_is_begun_again(
    source, encoded, tmp_path, monkeypatch, small_batches, what
):

    def kill(done, total):
        raise Kill

    with pytest.raises(Kill):
        make(tmp_path, source, encoded, on_progress=kill)
    folder = store_folder(tmp_path, source, encoded)
    if what == "rows":
        with (folder / "encoder_02.npy").open("r+b") as file:
            file.seek(-1, 2)
            file.write(b"\x77")
    elif what == "file":
        (folder / "encoder_02.npy").unlink()
    elif what == "header":
        (folder / "encoder_02.npy").write_bytes(b"not an array")
    else:
        monkeypatch.setattr("torch.__version__", "0.0.1")
    done, batches = [], extraction_batches(np.diff(encoded.offsets))
    make(tmp_path, source, encoded, on_progress=lambda n, total: done.append(n))
    assert len(done) == len(batches), "rows that could not be trusted were kept"


@pytest.mark.parametrize(
    "change",
    [
        *("encoder_01.npy", "starts.npy", META),  # of which a bit is turned
        *({"stored_as": "bfloat16"}, {"stored_as": None}, {"width": 16}, None),  # in what is said of it
    ],
)
def test_a_damaged_store_is_computed_again(source, encoded, tmp_path, capsys, change):
    features = make(tmp_path, source, encoded)
    before = features.read(np.arange(5), encoder(0, 1, 2), CPU)
    if isinstance(change, str):
        damaged = bytearray((features.folder / change).read_bytes())
        damaged[-20] ^= 1
        (features.folder / change).write_bytes(damaged)
    else:
        meta = json.loads((features.folder / META).read_text()) | (change or {})
        kept = [] if change is None else {name: value for name, value in meta.items() if value is not None}
        (features.folder / META).write_text(json.dumps(kept))
        with pytest.raises(BadInput, match="wanted a whole store"):
            StoredFeatures(features.folder)
    again = make(tmp_path, source, encoded)
    assert "computed again" in capsys.readouterr().err
    for state, values in again.read(np.arange(5), encoder(0, 1, 2), CPU).items():
        assert torch.equal(values, before[state])


def test_a_store_under_anothers_name_is_not_taken_for_it(source, encoded, tmp_path, capsys):
    other = dataclasses.replace(encoded, input_ids=encoded.input_ids[::-1].copy())
    wrong = make(tmp_path, source, other)
    wrong.folder.rename(store_folder(tmp_path, source, encoded))
    right = make(tmp_path, source, encoded)
    assert "something else" in capsys.readouterr().err
    clean = make(tmp_path / "clean", source, encoded)
    one, other = (each.read(np.arange(3), encoder(1), CPU)[STATE_1] for each in (right, clean))
    assert torch.equal(one, other)


def test_a_file_cut_short_is_noticed_when_a_trial_opens_the_store(source, encoded, tmp_path):
    features = make(tmp_path, source, encoded)
    path = features.folder / "encoder_02.npy"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(BadInput, match=r"encoder_02\.npy"):
        StoredFeatures(features.folder)


def test_a_second_process_waits_for_the_first(source, encoded, tmp_path, capfd):
    """Two ask for one store: the first computes, the other waits, says so, and computes nothing."""
    second = threading.Thread(target=lambda: ended.append(stored(tmp_path, source, encoded, never)))
    said, ended = "", []

    def backbone():
        nonlocal said
        second.start()
        deadline = time.monotonic() + 60
        while "another process" not in said and second.is_alive() and time.monotonic() < deadline:
            time.sleep(0.1)
            said += capfd.readouterr().err
        assert second.is_alive(), "the second did not wait"
        return loading.load(source)

    stored(tmp_path, source, encoded, backbone)
    second.join(60)
    assert "another process" in said
    assert ended


def changed(source, change):
    """Return a backbone that gives its hidden states changed."""
    backbone = loading.load(source)
    whole = backbone.forward
    backbone.forward = lambda *given: change(whole(*given))
    return backbone


def test_states_beyond_half_precision_are_stored_as_float32(source, encoded, tmp_path):
    def loud(states):
        return {state: values * 1e6 for state, values in states.items()}

    features = stored(tmp_path, source, encoded, lambda: changed(source, loud))
    assert features.meta["stored_as"] == "float32"
    assert torch.isfinite(features.read(np.arange(3), encoder(1), CPU)[STATE_1]).all()


@pytest.mark.parametrize(
    ("how", "what"), [(0.0, "same number"), (7.0, "same number"), (float("nan"), "NaN or infinity")]
)
def test_states_that_tell_nothing_apart_are_refused_by_name(source, encoded, tmp_path, how, what):
    def broken(states):
        return {**states, STATE_1: torch.full_like(states[STATE_1], how)}

    with pytest.raises(BadInput, match=f"hidden states of .*, {STATE_1.key} .*{what}"):
        stored(tmp_path, source, encoded, lambda: changed(source, broken))
    assert not list(tmp_path.glob("*/*"))


def test_too_small_a_disk_is_bad_input(source, encoded, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    with pytest.raises(BadInput, match=r"wanted \d+\.\d kB for hidden .* 10 bytes are free.*--cache-dir"):
        make(tmp_path, source, encoded)


def test_a_cache_that_cannot_be_made_is_bad_input(source, encoded, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="--cache-dir"):
        make(tmp_path / "file" / "cache", source, encoded)


@pytest.mark.parametrize("batches", [0, 2])
def test_a_full_disk_is_said_and_the_next_run_goes_on(
    source, encoded, tmp_path, monkeypatch, small_batches, batches
):
    """The disk takes half of a batch's rows in one of its files; what was kept before is gone on with."""
    append = Writer.append

    def fills_the_disk(writer, states):
        if writer.batches == batches:
            writer._files[0].write(b"half of it")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(writer, states)

    with monkeypatch.context() as full:
        full.setattr(Writer, "append", fills_the_disk)
        with pytest.raises(CannotWrite, match=f"hidden states in {tmp_path}, .*the disk is full; make room"):
            make(tmp_path, source, encoded)
    done = []
    features = make(tmp_path, source, encoded, on_progress=lambda n, total: done.append(n))
    assert len(done) == len(extraction_batches(np.diff(encoded.offsets))) - batches
    assert features.meta["files"] == make(tmp_path / "whole", source, encoded).meta["files"]


def test_rows_that_are_lost_as_a_file_is_closed_are_said(source, encoded, tmp_path, monkeypatch):
    close = Writer.close

    def fills_the_disk(writer):
        close(writer)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(Writer, "close", fills_the_disk)
        with pytest.raises(CannotWrite, match="the disk is full"):
            make(tmp_path, source, encoded)
    assert not (store_folder(tmp_path, source, encoded) / META).exists()


@pytest.fixture
def read_only(monkeypatch):
    """Make a folder refuse every write, as a mount does that may only be read; a test run as root cannot use chmod."""

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def now():
        monkeypatch.setattr("adalayers.features.store.os.access", lambda path, mode: False)
        for name in ("touch", "write_text"):
            monkeypatch.setattr(Path, name, refuse)
        monkeypatch.setattr("adalayers.features.store.FileLock", refuse)
        mkdir = Path.mkdir
        made = lambda path, *a, **k: mkdir(path, *a, **k) if path.exists() else refuse()  # noqa: E731
        monkeypatch.setattr(Path, "mkdir", made)

    return now


def test_a_cache_that_may_only_be_read_is_read(source, encoded, tmp_path, read_only):
    before = make(tmp_path, source, encoded).read(np.arange(5), encoder(1), CPU)[STATE_1]
    read_only()
    after = stored(tmp_path, source, encoded, never).read(np.arange(5), encoder(1), CPU)[STATE_1]
    assert torch.equal(after, before)


def test_what_a_cache_that_may_only_be_read_lacks_is_said(source, encoded, tmp_path, read_only):
    read_only()
    with pytest.raises(CannotWrite, match=r"Read-only file system; make it writable, .* another --cache-dir"):
        make(tmp_path, source, encoded)


def test_what_is_read_cannot_change_the_store(source, encoded, tmp_path):
    features = make(tmp_path, source, encoded)
    before = {f.name: f.read_bytes() for f in features.folder.iterdir()}
    features.read(np.arange(4), encoder(0, 1), CPU)[STATE_1].fill_(7.0)
    features._tensor(STATE_1).fill_(7.0)  # not even from inside
    assert {f.name: f.read_bytes() for f in features.folder.iterdir()} == before


def test_only_the_path_travels(source, encoded, tmp_path):
    features = make(tmp_path, source, encoded)
    features.read(np.arange(4), encoder(0, 1), CPU)
    assert len(pickle.dumps(features)) < 1000
    again = pickle.loads(pickle.dumps(features))
    one, other = (each.read(np.arange(2), encoder(1), CPU)[STATE_1] for each in (again, features))
    assert torch.equal(one, other)


def test_extraction_batches_hold_each_sequence_once_within_the_limit():
    lengths = np.random.default_rng(0).integers(2, 900, 200)
    batches = extraction_batches(lengths)
    assert sorted(np.concatenate(batches).tolist()) == list(range(200))
    assert all(len(batch) == 1 or len(batch) * lengths[batch].max() <= 4096 for batch in batches)


def test_of_an_earlier_case_nothing_stays_in_a_gpus_memory(source, encoded, tmp_path, monkeypatch):
    first, second = (make(tmp_path / name, source, encoded) for name in ("first", "second"))
    held = {(each.folder, STATE_1, torch.device("cuda")): torch.zeros(1) for each in (first, second)}
    monkeypatch.setattr(features, "_ON_GPU", held)
    features.drop_resident_but_of([second, LiveFeatures(source, encoded)])
    assert [folder for folder, *_ in held] == [second.folder]


def test_a_part_of_a_part_is_read_where_the_whole_is(source, encoded, tmp_path):
    disk, examples = make(tmp_path, source, encoded), np.array([1, 0])
    part = Subset(Subset(disk, np.arange(10, 20)), np.array([9, 4, 2]))
    whole, numbers = features.in_whole(part, examples)
    assert whole is disk
    assert numbers.tolist() == [14, 19]
    assert torch.equal(
        part.read(examples, [STATE_1], CPU)[STATE_1], disk.read(np.array([14, 19]), [STATE_1], CPU)[STATE_1]
    )
