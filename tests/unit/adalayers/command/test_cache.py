"""adalayers cache: lists and removes stores, and nothing else."""

import os
import time

import numpy as np
import pytest

from adalayers.__main__ import main
from adalayers.command import cache
from adalayers.features.store import META, USED, exclusive, reading, write_meta


def make(root, name, *, size, days_ago, finished=True):
    folder = root / name
    folder.mkdir(parents=True)
    np.save(folder / "encoder_00.npy", np.zeros(size, np.int8))
    if finished:
        about = {"dataset": "cola", "path": "/data/cola", "split": "train", "splits": "train = train"}
        about |= {"examples": 9, "tokens": 99, "stored_as": "float16"}
        write_meta(folder, {**about, "files": {}})
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


def left(root):
    return sorted(path.name for path in root.iterdir() if path.is_dir())


def test_lists_size_age_and_key(root, capsys):
    assert main(["cache", "--cache-dir", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["minilm-aaa", "roberta-ccc", "minilm-bbb"]
    assert "3.0 MB" in lines[2]
    assert "cola train, 9 sequences, 99 tokens, float16; from /data/cola: train = train" in lines[0]
    assert "not finished" in lines[1]
    assert lines[-1].startswith("3 stores, 6.0 MB")


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        (["--remove", "minilm-aaa"], {"minilm-aaa"}),
        (["--remove", "minilm-*"], {"minilm-aaa", "minilm-bbb"}),
        (["--keep-gb", "0.0032"], {"minilm-bbb"}),
        (["--keep-gb", "0.0012"], {"minilm-bbb", "roberta-ccc"}),
        (["--keep-gb", "1"], set()),
        (["--remove", "minilm-aaa", "--keep-gb", "0.0005"], {"minilm-aaa", "minilm-bbb", "roberta-ccc"}),
    ],
)
def test_removes_by_name_age_and_size(root, rule, gone):
    before = set(left(root))
    assert main(["cache", "--cache-dir", str(root), *rule]) == 0
    assert before - set(left(root)) == gone


def test_a_dry_run_removes_nothing(root, capsys):
    before = left(root)
    assert main(["cache", "--cache-dir", str(root), "--remove", "*", "--dry-run"]) == 0
    assert left(root) == before
    assert capsys.readouterr().out.count("would remove") == 3


def test_a_missing_cache_is_no_error_and_a_name_that_is_not_there_or_a_file_is(root, tmp_path, capsys):
    assert main(["cache", "--cache-dir", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out.startswith("0 stores")
    assert main(["cache", "--cache-dir", str(root), "--remove", "nothing"]) == 2
    assert "minilm-aaa" in capsys.readouterr().err
    assert main(["cache", "--cache-dir", str(root / "somebody-elses" / "file")]) == 2
    assert "file is a file; name another --cache-dir" in capsys.readouterr().err.splitlines()[0]


def test_a_store_that_is_being_computed_is_left(root, capsys):
    entry = next(entry for entry in cache.entries(root) if entry.name == "minilm-aaa")
    with exclusive(entry.folder):
        assert main(["cache", "--cache-dir", str(root), "--remove", "minilm-aaa"]) == 0
    assert "minilm-aaa" in left(root)
    assert "another process" in capsys.readouterr().out


@pytest.mark.parametrize("names", [["minilm-aaa"], ["*"], ["minilm-a*", "minilm-bbb"]])
def test_a_store_that_is_read_is_left(root, capsys, names):
    let_go = reading(root / "minilm-aaa")
    assert main(["cache", "--cache-dir", str(root), "--remove", *names]) == 0
    assert "left minilm-aaa: another process computes or reads it" in capsys.readouterr().out
    assert "minilm-aaa" in left(root)
    assert ("minilm-bbb" in left(root)) == (len(names) == 1 and names != ["*"])
    assert main(["cache", "--cache-dir", str(root), "--keep-gb", "0"]) == 0
    assert left(root) == ["minilm-aaa", "somebody-elses"]
    let_go()
    assert main(["cache", "--cache-dir", str(root), "--remove", "minilm-aaa"]) == 0
    assert left(root) == ["somebody-elses"]


@pytest.mark.parametrize(
    "text", ["[]", "null", "[" * 100_000, '{"files": {"encoder_00.npy": 3}}', "a pipe", "a folder"]
)
def test_a_store_with_an_odd_description_is_said_to_be_damaged(root, capsys, text):
    path = root / "minilm-aaa" / META
    path.unlink()
    if text == "a pipe":
        os.mkfifo(path)
    elif text == "a folder":
        path.mkdir()
    else:
        path.write_text(text)
    assert main(["cache", "--cache-dir", str(root)]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "minilm-aaa" in line]
    assert "damaged" in line
    assert "computes it again" in line


def test_of_a_link_to_a_store_the_link_alone_goes(root, tmp_path_factory, capsys):
    elsewhere = make(tmp_path_factory.mktemp("elsewhere"), "minilm-ddd", size=10, days_ago=1)
    (root / "minilm-ddd").symlink_to(elsewhere)
    (root / "gone").symlink_to(root / "nowhere")
    (root / "round").symlink_to(root / "round")
    assert main(["cache", "--cache-dir", str(root), "--remove", "minilm-d*"]) == 0
    assert "minilm-ddd" not in left(root)
    assert (elsewhere / META).exists()


def test_a_store_that_cannot_be_removed_is_bad_input(root, capsys, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(cache.shutil, "rmtree", refuse)
    assert main(["cache", "--cache-dir", str(root), "--remove", "minilm-aaa"]) == 2
    assert "failed (Permission denied)" in capsys.readouterr().err
