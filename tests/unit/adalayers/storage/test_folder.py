"""A folder from elsewhere: nothing is written, deleted or waited for outside it, and no write is half done."""

import errno
import functools
import os
import stat
import time
from unittest import mock

import pytest
from pyarrow import fs

from adalayers.errors import BadInput, CannotWrite
from adalayers.storage import folder as folders
from adalayers.storage.folder import Folder
from tests.helpers.refusing import refused


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study").mkdir()
    return Folder(tmp_path / "study")


@pytest.fixture
def victim(tmp_path):
    """A file and a folder that are no business of any study, and are as they were afterwards."""
    (tmp_path / "victim").mkdir()
    files = tmp_path / "victim" / "precious.txt", tmp_path / "precious.txt"
    for file in files:
        file.write_text("precious")
    yield tmp_path / "victim"
    assert [file.read_text() for file in files] == ["precious"] * 2
    assert [*(tmp_path / "victim").iterdir()] == [files[0]]


def test_a_uri_with_a_query_keeps_its_bucket_and_shows_no_credentials():
    query = "?region=eu-west-1&endpoint_override=http%3A%2F%2F127.0.0.1%3A9%2Fx"
    folder = Folder(f"s3://key:hunter2@bucket/results/{query}")
    below = folder.child("alpha_lambda/tiny")
    assert (folder.uri, below.uri) == ("s3://***@bucket/results", "s3://***@bucket/results/alpha_lambda/tiny")
    assert below.address == f"s3://key:hunter2@bucket/results/alpha_lambda/tiny{query}"
    assert below.name == "tiny"
    assert below._at("trials.csv") == "bucket/results/alpha_lambda/tiny/trials.csv"
    again = Folder(below.address)
    assert (again.uri, again.address) == (below.uri, below.address)
    assert again.parent().parent().address == folder.address


ROOTS = ["~nouser-of-this-name/x", "foo://bucket/x", "s3://[::1", "a\0b", "s3://", "gs://", "s3:///results"]


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_that_cannot_be_opened(root):
    refused(r"wanted a folder or a URI that can be opened|names no bucket", Folder, root)


def test_a_link_in_a_files_place_is_replaced_and_deleted_not_followed(folder, victim):
    for name in ("trials.csv", "trials.csv.partial"):
        folder.path(name).symlink_to(victim / "precious.txt")
    folder.write_bytes("trials.csv", b"rows")
    assert folder.read_bytes("trials.csv") == b"rows"
    assert not folder.path("trials.csv").is_symlink()
    folder.path("work").symlink_to(victim)
    folder.delete("work")
    assert not folder.path("work").is_symlink()


@pytest.mark.parametrize("name", ["best/precious.txt", "work/t0123456789ab/precious.txt"])
def test_nothing_is_written_or_deleted_through_a_linked_folder(folder, victim, name):
    inside = folder.path(name).parent
    inside.parent.mkdir(exist_ok=True)
    inside.symlink_to(victim)
    for attempt in (lambda: folder.write_bytes(name, b"mine"), lambda: folder.delete(name)):
        with pytest.raises(CannotWrite, match=r"it is a link to .*victim; put a folder in its place"):
            attempt()
    with pytest.raises(CannotWrite):
        folder.child(name.rpartition("/")[0]).write_bytes("precious.txt", b"mine")


@pytest.mark.parametrize("name", ["../victim", "work/../../victim", "/etc", "work//x", "."])
def test_no_name_leads_out(folder, victim, name):
    write = functools.partial(folder.write_bytes, data=b"")
    calls = (folder.exists, folder.read_bytes, folder.delete, folder.child, folder.names, folder.path, write)
    for attempt in calls:
        with pytest.raises(ValueError, match="wanted the name of something in"):
            attempt(name)


def test_a_root_that_is_a_link_is_what_the_user_named(tmp_path, folder):
    (tmp_path / "linked").symlink_to(folder.uri)
    Folder(tmp_path / "linked").write_bytes("a/b.txt", b"here")
    assert folder.read_bytes("a/b.txt") == b"here"


def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder.path("study.json"))
    with pytest.raises(OSError, match="it is no file"):
        folder.read_json("study.json")


def test_files_have_the_users_permissions(folder):
    before = os.umask(0o027)
    try:
        folder.write_bytes("a.txt", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.path("a.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "No space left on device; make room"), (errno.EROFS, "make it writable")],
)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(folder, monkeypatch, number, said):
    folder.write_bytes("trials.csv", b"old")

    monkeypatch.setattr(folders.os, "fsync", mock.Mock(side_effect=OSError(number, os.strerror(number))))
    with pytest.raises(CannotWrite, match=said) as failed:
        folder.write_bytes("trials.csv", b"new")
    assert isinstance(failed.value, BadInput)
    assert f"{folder.uri}/trials.csv" in str(failed.value)
    assert folder.names() == ["trials.csv"]
    assert folder.read_bytes("trials.csv") == b"old"


class Objects:
    """A store as S3 is: it moves objects, and no folder."""

    def __getattr__(self, name):
        return getattr(fs.LocalFileSystem(), name)

    def move(self, path, to):
        if os.path.isdir(path):
            raise OSError("NO_SUCH_KEY")
        os.renames(path, to)


def test_a_folder_of_a_store_that_moves_none_is_moved(tmp_path):
    folder, aside = Folder(tmp_path / "study"), Folder(tmp_path / "aside")
    for name in ("trials.csv", "work/t1/progress.json"):
        folder.write_bytes(name, name.encode())
    folder.write_bytes("history.parquet", b"damaged")
    folder.is_local, folder._fs = False, Objects()
    folder.move("history.parquet", folder.child("history.parquet.damaged"))
    folder.move("", aside)
    assert not folder.exists()
    assert aside.names() == ["history.parquet.damaged", "trials.csv", "work"]
    assert aside.read_bytes("work/t1/progress.json") == b"work/t1/progress.json"


S3, GS = "s3://bucket/x?region=r&scheme=http&", "gs://anonymous@bucket/x?scheme=http&"
CALLS = {
    "exists": lambda folder: folder.exists("study.json"),
    "names": lambda folder: folder.names(),
    "read": lambda folder: folder.read_bytes("study.json"),
    "write": lambda folder: folder.write_bytes("study.json", b"{}"),
    "delete": lambda folder: folder.delete("study.json"),
    "move": lambda folder: folder.move("study.json", folder.child("other")),
}


# One of S3: while a call of an earlier client goes unanswered, making the next client takes six seconds.
UNANSWERED = [(S3, "exists"), *((GS, call) for call in CALLS)]


@pytest.mark.parametrize(("uri", "call"), UNANSWERED)
def test_a_store_that_does_not_answer_is_named_in_time(uri, call, monkeypatch, silent):
    """A store accepts what it is sent and never answers."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    store = Folder(f"{uri}endpoint_override={silent.replace(':', '%3A')}")
    monkeypatch.setattr(folders, "CALL_SECONDS", 0.3)
    monkeypatch.setattr(folders, "SLOW_SECONDS", 0.3)
    began = time.monotonic()
    said = r"reach (s3|gs)://.*bucket/x, which failed \(TimeoutError: no answer within"
    refused(said, CALLS[call], store)
    assert time.monotonic() - began < 2
