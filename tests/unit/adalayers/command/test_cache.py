"""adalayers cache: lists and removes stores, and nothing else."""

import os
import time
from unittest import mock

import numpy as np
import pytest

from adalayers.__main__ import main
from adalayers.command import cache
from adalayers.features.store import META, USED, exclusive, reading
from adalayers.storage.folder import Folder


def make(root, name, *, size, days_ago, finished=True):
    folder = root / name
    folder.mkdir(parents=True)
    np.save(folder / "encoder_00.npy", np.zeros(size, np.int8))
    if finished:
        about = {"dataset": "cola", "path": "/data/cola", "split": "train", "splits": "train = train"}
        about |= {"examples": 9, "tokens": 99, "stored_as": "float16"}
        Folder(folder).write_sealed(META, {**about, "files": {}})
    (folder / USED).touch()
    then = time.time() - days_ago * 86400
    for path in folder.iterdir():
        os.utime(path, (then, then))
    return folder


@pytest.fixture
def root(tmp_path):
    make(tmp_path, "minilm-aaa", size=1_000_000, days_ago=1)
    make(tmp_path, "minilm-bbb", size=3_000_000, days_ago=40)
    make(tmp_path, "roberta-ccc", size=2_000_000, days_ago=10, finished=False)
    (tmp_path / "somebody-elses").mkdir()
    (tmp_path / "somebody-elses" / "file").touch()
    return tmp_path


@pytest.fixture
def ran(root, capsys):
    """Return what runs the command and returns its code, what it says, and which stores are left."""

    def ran(*argv, cache_dir=root):
        code = main(["cache", "--cache-dir", str(cache_dir), *argv])
        out, err = capsys.readouterr()
        left = {path.name[-3:] for path in root.iterdir() if path.is_dir()} - {"ses"}
        assert (root / "somebody-elses" / "file").exists()
        return code, out + err, left

    return ran


ALL = {"aaa", "bbb", "ccc"}


def test_lists_size_age_and_key(ran):
    code, said, _ = ran()
    lines = said.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines[:3]] == ["minilm-aaa", "roberta-ccc", "minilm-bbb"]
    assert "3.0 MB" in lines[2]
    assert "cola train, 9 sequences, 99 tokens, float16; from /data/cola: train = train" in lines[0]
    assert "not finished" in lines[1]
    assert lines[-1].startswith("3 stores, 6.0 MB")


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        ("--remove minilm-aaa", {"aaa"}),
        ("--keep-gb 0.0032", {"bbb"}),
        ("--keep-gb 0.0012", {"bbb", "ccc"}),
        ("--remove minilm-aaa --keep-gb 0.0005", ALL),
        ("--remove * --dry-run", set()),
    ],
)
def test_removes_by_name_age_and_size(ran, rule, gone):
    code, said, left = ran(*rule.split())
    assert (code, left) == (0, ALL - gone)
    assert said.count("would remove") == (3 if "dry" in rule else 0)


def test_a_missing_cache_is_no_error_and_what_cannot_be_removed_is(ran, root, monkeypatch):
    code, said, _ = ran(cache_dir=root / "none")
    assert (code, said[:8]) == (0, "0 stores")
    assert ran(cache_dir=__file__)[0] == 2
    refused = mock.Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr(cache.shutil, "rmtree", refused)
    for names, why in (("minilm-b* nothing", "nothing"), ("minilm-aaa", "Permission denied")):
        code, said, _ = ran("--remove", *names.split())
        assert code == 2
        assert why in said


def test_a_store_that_is_computed_or_read_is_left(ran, root):
    with exclusive(root / "minilm-aaa"):
        assert ran("--remove", "minilm-aaa")[2] == ALL
    let_go = reading(root / "minilm-aaa")
    code, said, left = ran("--remove", "minilm-a*", "minilm-bbb")
    assert (code, left) == (0, {"aaa", "ccc"})
    assert "left minilm-aaa: another process computes or reads it" in said
    assert ran("--keep-gb", "0")[2] == {"aaa"}
    let_go()
    assert ran("--remove", "*")[2] == set()


@pytest.mark.parametrize("text", ["[]", "[" * 100_000, '{"files": {"encoder_00.npy": 3}}', "a pipe"])
def test_a_store_with_an_odd_description_is_said_to_be_damaged(ran, root, text):
    path = root / "minilm-aaa" / META
    path.unlink()
    if text == "a pipe":
        os.mkfifo(path)
    else:
        path.write_text(text)
    code, said, _ = ran()
    assert code == 0
    [line] = [line for line in said.splitlines() if "minilm-aaa" in line]
    assert "damaged" in line
    assert "computes it again" in line


def test_a_link_to_a_store_stays(ran, root, tmp_path_factory):
    elsewhere = make(tmp_path_factory.mktemp("elsewhere"), "minilm-ddd", size=10, days_ago=1)
    (root / "minilm-ddd").symlink_to(elsewhere)
    (root / "gone").symlink_to(root / "nowhere")
    (root / "round").symlink_to(root / "round")
    code, said, left = ran("--remove", "minilm-d*")
    assert (code, "symbolic link" in said, left) == (2, True, {*ALL, "ddd"})
    assert (elsewhere / META).exists()
