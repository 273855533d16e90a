"""The feature store: the right numbers, the right key, nothing half-made, nothing writable."""

import dataclasses
import errno
import os
import pickle
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch

from adalayers.backbones import loading, sources, tokens
from adalayers.errors import BadInput, CannotWrite
from adalayers.features import features
from adalayers.features.features import LiveFeatures, StoredFeatures, Subset, store_folder, stored
from adalayers.features.store import META, Writer
from tests.helpers.refusing import refused
from tests.helpers.states import encoder

CPU = torch.device("cpu")
(STATE_1,) = encoder(1)
TEXTS = ["abba abc", "cab", "a bad cab had a dab of jade", "dad", "fab bag"] * 4


@pytest.fixture(scope="module")
def source(world):
    return sources.resolve(str(world["backbone"]))


@pytest.fixture(scope="module")
def encoded(source):
    return tokens.encode(tokens.load_tokenizer(source), TEXTS, 16)


@pytest.fixture
def turned(encoded):
    """Other token ids of the same number."""
    return dataclasses.replace(encoded, input_ids=encoded.input_ids[::-1].copy())


@pytest.fixture
def make(source, encoded, tmp_path):
    """Return what makes a store, or reads it where it is there."""

    def make(name="", *, source=source, encoded=encoded, change=None, **options):
        def backbone():
            made = loading.load(source)
            if change:
                whole = made.forward
                made.forward = lambda *given: change(whole(*given))
            return made

        return stored(tmp_path / name, source, encoded, backbone, **options)

    return make


def read(features, *numbers, examples=(3, 0, 7)):
    """Return hidden states of some examples, one after the other."""
    states = encoder(*(numbers or (1,)))
    given = features.read(np.array(examples), states, CPU)
    return torch.stack([given[state] for state in states])


def never(*_):
    raise AssertionError("computed again")


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_half_precision_rounds_once(make, precision, source, encoded):
    full, half, every = make(precision="float32"), make(precision=precision), range(len(TEXTS))
    assert full.folder != half.folder
    rounded = read(full, 3, 0, examples=every).to(getattr(torch, precision))
    assert torch.equal(read(half, 3, 0, examples=every), rounded)
    live = read(LiveFeatures(source, encoded, precision), 3, 0, examples=every)
    assert live.dtype == torch.float32, "numbers that half precision does not hold stay as they are"
    assert torch.equal(live, live.to(getattr(torch, precision)).float())


def test_live_in_memory_and_on_disk_agree_and_only_the_path_travels(source, encoded, make):
    disk, numbers = make(precision="float32"), (0, 1, source.layers)
    expected = read(disk, *numbers)
    torch.testing.assert_close(read(LiveFeatures(source, encoded), *numbers), expected, atol=1e-5, rtol=1e-5)
    sent = pickle.dumps(disk)
    assert len(sent) < 1000
    for other in (StoredFeatures(disk.folder, resident=True), pickle.loads(sent)):
        assert torch.equal(read(other, *numbers), expected)


@pytest.mark.parametrize("pooling", ["mean", "first-token", "last-token"])
def test_a_pooled_store_has_one_vector_of_each_sequence(source, make, pooling):
    pooled = dataclasses.replace(source, pooling=pooling)
    whole, few = (make(source=each, precision="float32") for each in (source, pooled))
    assert whole.folder != few.folder
    assert (few.lengths == whole.lengths).all()
    for number in range(source.layers + 1):
        rows = read(whole, number)[0].split(whole.lengths[[3, 0, 7]].tolist())
        wanted = [{"mean": x.mean(0), "first-token": x[0], "last-token": x[-1]}[pooling] for x in rows]
        torch.testing.assert_close(read(few, number)[0], torch.stack(wanted))
    make(source=pooled, precision="float32", change=never, on_progress=never)


def test_every_ingredient_changes_the_store(source, encoded, turned, tmp_path, monkeypatch):
    other = dataclasses.replace(source, fingerprint="f" * 16)
    cut = dataclasses.replace(encoded, offsets=encoded.offsets + np.r_[0, 1, np.zeros(len(TEXTS) - 1, int)])
    given = [(source, encoded), (other, encoded), (source, turned), (source, cut)]
    given.append((dataclasses.replace(source, dtype="bfloat16"), encoded))
    given += [(source, encoded, precision) for precision in ("float32", "bfloat16")]
    keys = [store_folder(tmp_path, *each) for each in given]
    monkeypatch.setattr("adalayers.features.features.STORE_FORMAT", 99)
    keys.append(store_folder(tmp_path, source, encoded))
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.1")
    keys.append(store_folder(tmp_path, source, encoded))
    assert len(set(keys)) == len(keys)


class Kill(BaseException):
    """Stands for SIGKILL: nothing that handles errors handles it."""


class Progress:
    """Counts the batches that are computed, and ends the work in one of them."""

    def __init__(self, kill_at=None):
        self.batches, self.kill_at = 0, kill_at

    def __call__(self, done, total):
        self.batches += 1
        if self.batches == self.kill_at:
            raise Kill


@pytest.fixture
def n_batches(encoded, monkeypatch):
    """How many there are of few tokens; progress is kept after each."""
    monkeypatch.setattr("adalayers.features.features.EXTRACT_TOKENS", 24)
    monkeypatch.setattr("adalayers.features.store.KEEP_SECONDS", 0.0)
    return len(features.extraction_batches(np.diff(encoded.offsets)))


def test_a_killed_store_is_continued_and_equals_one_that_was_not(make, n_batches):
    whole, progress = make("whole"), Progress()
    with pytest.raises(Kill):
        make("killed", on_progress=Progress(3))
    folder = whole.folder.parent.with_name("killed") / whole.folder.name
    refused(r"it has no meta\.json", StoredFeatures, folder)
    with (folder / "encoder_01.npy").open("ab") as file:
        file.write(b"what a kill left half-written")
    resumed = make("killed", on_progress=progress)
    assert progress.batches == n_batches - 3
    for file in whole.folder.glob("*.npy"):
        assert (folder / file.name).read_bytes() == file.read_bytes()
    assert resumed.meta["files"] == whole.meta["files"]
    assert not (folder / "progress.json").exists()


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("encoder_02.npy", lambda data: data[:-1] + b"\x77"),
        ("encoder_02.npy", lambda data: b"not an array"),
        ("progress.json", lambda data: data.replace(torch.__version__.encode(), b"0.0.1")),
    ],
)
def test_a_started_store_that_was_changed_is_begun_again(make, n_batches, tmp_path, file, change):
    with pytest.raises(Kill):
        make(on_progress=Progress(1))
    (path,) = tmp_path.glob(f"*/{file}")
    path.write_bytes(change(path.read_bytes()))
    make(on_progress=(progress := Progress()))
    assert progress.batches == n_batches, "rows that could not be trusted were kept"


def bit_turned(data):
    return data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("encoder_01.npy", bit_turned),
        ("starts.npy", bit_turned),
        (META, bit_turned),
        (META, lambda data: data.replace(b'"float16"', b'"bfloat16"')),
        (META, lambda data: data.replace(b'"stored_as"', b'"stored"')),
        (META, lambda data: b"[]"),
        ("encoder_02.npy", lambda data: data[:-2]),
    ],
)
def test_a_damaged_store_is_computed_again(make, capsys, file, change):
    features = make()
    before, path = read(features, 0, 1, 2), features.folder / file
    path.write_bytes(change(path.read_bytes()))
    if file in (META, "encoder_02.npy"):  # seen as a trial opens it
        refused("wanted a whole store", StoredFeatures, features.folder)
    assert torch.equal(read(make(), 0, 1, 2), before)
    assert "computed again" in capsys.readouterr().err


def test_a_store_under_anothers_name_is_not_taken_for_it(source, encoded, turned, make, tmp_path, capsys):
    make(encoded=turned).folder.rename(store_folder(tmp_path, source, encoded))
    right = make()
    assert "something else" in capsys.readouterr().err
    assert torch.equal(read(right), read(make("clean")))


def test_a_second_process_waits_for_the_first(make, capfd):
    """Two ask for one store: the first computes, the other waits, says so, and computes nothing."""
    second = threading.Thread(target=lambda: ended.append(make(on_progress=never)))
    said, ended = "", []

    def first_is_at_it(states):
        nonlocal said
        if not second.ident:
            second.start()
        deadline = time.monotonic() + 60
        while "another process" not in said and second.is_alive() and time.monotonic() < deadline:
            time.sleep(0.1)
            said += capfd.readouterr().err
        assert second.is_alive(), "the second did not wait"
        return states

    make(change=first_is_at_it)
    second.join(60)
    assert "another process" in said
    assert ended


@pytest.mark.parametrize("scale", [1e6, 1e-7])
def test_states_beyond_half_precision_are_stored_as_float32(make, scale):
    features = make(change=lambda states: {state: values * scale for state, values in states.items()})
    assert features.meta["stored_as"] == "float32"
    assert torch.isfinite(read(features)).all()


def test_a_store_that_went_on_as_float32_is_continued(make, n_batches):
    passes = []

    def beyond(states):
        if len(passes) == 3:  # the second in float32
            passes.append("stopped")
            raise KeyboardInterrupt
        passes.append("passed")
        return {state: values * 1e6 for state, values in states.items()}

    with pytest.raises(KeyboardInterrupt):
        make(change=beyond)
    assert make(change=beyond).meta["stored_as"] == "float32"
    assert passes.count("passed") == 1 + n_batches, "one that did not fit, and each once"


@pytest.mark.parametrize(("how", "what"), [(7.0, "same number"), (float("nan"), "NaN or infinity")])
def test_states_that_tell_nothing_apart_are_refused_by_name(make, tmp_path, how, what):
    with pytest.raises(BadInput, match=f"hidden states of .*, {STATE_1.key} .*{what}"):
        make(change=lambda states: {**states, STATE_1: torch.full_like(states[STATE_1], how)})
    assert not list(tmp_path.glob("*/*"))
    once = mock.Mock(side_effect=lambda states: {**states, STATE_1: torch.full_like(states[STATE_1], how)})
    refused(what, make, change=once, precision="float32")
    assert once.call_count == 1, "no more precise store is tried"


def test_a_disk_that_is_too_small_or_a_cache_that_cannot_be_made(make, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    refused("--cache-dir", make, "file/cache")
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10))
    refused(r"wanted \d+\.\d kB for hidden .* 10 bytes are free.*--cache-dir", make)


@pytest.mark.parametrize("batches", [0, 2])
def test_a_full_disk_is_said_and_the_next_run_goes_on(make, n_batches, tmp_path, monkeypatch, batches):
    """The disk takes half of a batch's rows in one of its files; what was kept before is gone on with."""
    append = Writer.append

    def fills_the_disk(writer, states):
        if writer.batches == batches:
            writer._files[0].write(b"half of it")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(writer, states)

    with monkeypatch.context() as full:
        full.setattr(Writer, "append", fills_the_disk)
        with pytest.raises(CannotWrite, match=f"states in {tmp_path}, .*No space left on device; make room"):
            make()
    features = make(on_progress=(progress := Progress()))
    assert progress.batches == n_batches - batches
    assert features.meta["files"] == make("whole").meta["files"]


def test_a_cache_that_may_only_be_read_is_read_and_what_it_lacks_is_said(make, turned, monkeypatch):
    """As a mount refuses every write: a test run as root cannot use chmod."""
    before = read(make())

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    mkdir = Path.mkdir
    made = lambda path, *a, **k: mkdir(path, *a, **k) if path.exists() else refuse()  # noqa: E731
    monkeypatch.setattr("adalayers.features.store.os.access", lambda path, mode: False)
    monkeypatch.setattr("adalayers.features.store.FileLock", refuse)
    for name, instead in (("touch", refuse), ("mkdir", made)):
        monkeypatch.setattr(Path, name, instead)
    assert torch.equal(read(make(on_progress=never)), before)
    with pytest.raises(CannotWrite, match=r"Read-only file system; .*make it writable, .*other --cache-dir"):
        make(encoded=turned)


def test_what_is_read_cannot_change_the_store(make):
    features = make()
    before = {file: file.read_bytes() for file in features.folder.iterdir()}
    read(features, 0, 1)
    features.read(np.arange(4), [STATE_1], CPU)[STATE_1].fill_(7.0)
    features._tensor(STATE_1).fill_(7.0)  # not even from inside
    assert {file: file.read_bytes() for file in features.folder.iterdir()} == before


def test_of_an_earlier_case_nothing_stays_in_a_gpus_memory(source, encoded, make, monkeypatch):
    first, second = make("first"), make("second")
    held = {(each.folder, STATE_1, torch.device("cuda")): torch.zeros(1) for each in (first, second)}
    monkeypatch.setattr(features, "_ON_GPU", held)
    features.drop_resident_but_of([second, LiveFeatures(source, encoded)])
    assert [folder for folder, *_ in held] == [second.folder]


def test_a_part_of_a_part_is_read_where_the_whole_is(make):
    disk = make()
    part = Subset(Subset(disk, np.arange(10, 20)), np.array([9, 4, 2]))
    whole, numbers = features.in_whole(part, np.array([1, 0]))
    assert whole is disk
    assert numbers.tolist() == [14, 19]
    assert torch.equal(read(part, examples=(1, 0)), read(disk, examples=(14, 19)))
