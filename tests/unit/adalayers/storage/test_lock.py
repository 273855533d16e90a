"""One driver at a time: a lock that dies with its process, and a stamp where there is no lock."""

import contextlib
import os
import threading
import time
from unittest import mock

import pytest
from pyarrow import fs

from adalayers.errors import BadInput
from adalayers.storage import lock
from adalayers.storage.folder import Folder
from adalayers.storage.lock import one_driver
from tests.helpers.refusing import refused


def test_the_second_driver_is_told_of_the_first_also_where_the_folder_was_renamed(tmp_path):
    """That the lock dies with its process, `tests/contract/test_disturbed.py` sees."""
    folder = Folder(tmp_path / "study")
    folder.write_bytes("a", b"")
    with one_driver(folder, "python studies/x.py --label 'a b'"):
        folder.move("", Folder(tmp_path / "aside"))
        told = refused("for this run alone", one_driver(folder, "y").__enter__)
    assert told.startswith(f"wanted {tmp_path / 'study'} for this run alone, process {os.getpid()} on ")
    assert "(python studies/x.py --label 'a b') works on it; wait until that one ends or stop it" in told
    assert "--label NAME" in told
    with one_driver(folder, "y"):
        pass


def test_a_linked_lock_or_folder_and_a_place_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/.study.lock").symlink_to(tmp_path / "victim")
    (tmp_path / "root/other").symlink_to(tmp_path)
    for study, said in (
        (Folder(tmp_path / "root/study"), "it is a link"),
        (Folder(tmp_path / "root").child("other"), "it is a link"),
        (Folder(tmp_path / "victim/study"), "choose another --output"),
    ):
        refused(said, one_driver(study, "x").__enter__)
    assert (tmp_path / "victim").read_text() == "precious"


# A stamp


STAMP = ".study.driver.json"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder that is not on this machine's disk, as far as anyone can tell."""
    there = Folder(tmp_path)
    there._fs, there.is_local = fs.SubTreeFileSystem("/", there._fs), False
    there._base = "s3://user:secret@bucket"
    monkeypatch.setattr(lock, "SETTLE_SECONDS", 0.01)
    # Seldom: here, unlike at a URI, a reader may see half a write.
    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.25)
    monkeypatch.setattr(Folder, "parent", lambda self: there)
    monkeypatch.setattr(lock.os, "_exit", mock.Mock(side_effect=AssertionError("it would end this process")))
    return there


def within_time(holds):
    """Return whether something holds within what a busy machine takes."""
    end = time.monotonic() + 30
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def test_a_stamp_keeps_the_second_driver_out_while_it_is_renewed(store):
    with one_driver(store.child("study"), "python studies/x.py"):
        first = store.read_json(STAMP)["time"]
        assert within_time(lambda: store.read_object(STAMP).get("time", 0) > first)
        said = r"process \d+ on .* \(python studies/x\.py\) works on it"
        assert "secret" not in refused(said, one_driver(store.child("study"), "y").__enter__)
    assert not store.exists(STAMP)


@pytest.mark.parametrize("content", [b'{"time": 0.0}', b"{", b"[]", b'{"time": "now"}'])
def test_a_stamp_that_is_old_or_damaged_keeps_nobody_out(store, content):
    store.write_bytes(STAMP, content)
    with one_driver(store.child("study"), "x"):
        assert store.read_json(STAMP)["command"] == "x"


def test_of_some_that_begin_at_once_one_goes_on(store, tmp_path, monkeypatch):
    # Longer than a busy machine keeps a thread from its write.
    monkeypatch.setattr(lock, "SETTLE_SECONDS", 1.0)
    outcome, done, looked, write = [], threading.Event(), threading.Barrier(4), Folder.write_json
    local = Folder(tmp_path)  # writes whole files, as a URI does

    def write_once_all_have_looked(folder, name, value):
        if (driver := threading.current_thread()) in new:
            new.remove(driver)
            looked.wait(30)
        write(local, name, value)

    def drive(number):
        with contextlib.suppress(BadInput), one_driver(store.child("study"), str(number)):
            outcome.append(str(number))
            done.wait(10)

    monkeypatch.setattr(Folder, "write_json", write_once_all_have_looked)
    drivers = [threading.Thread(target=drive, args=(number,)) for number in range(4)]
    new = set(drivers)
    for driver in drivers:
        driver.start()
    assert within_time(lambda: sum(driver.is_alive() for driver in drivers) == 1 == len(outcome))
    assert outcome == [store.read_object(STAMP)["command"]]
    done.set()
    for driver in drivers:
        driver.join()


def test_a_driver_that_stood_still_for_too_long_writes_nothing_more(store, monkeypatch, capsys):
    left = threading.Event()
    other = {"host": "far", "pid": 1, "since": "then", "command": "python studies/x.py", "id": "other"}
    monkeypatch.setattr(lock.os, "_exit", lambda code: left.set())
    with one_driver(store.child("study"), "x"):
        # Again where a renewal that had read its own stamp wrote it over this one.
        assert within_time(lambda: store.write_json(STAMP, {**other, "time": time.time()}) or left.wait(0.5))
    assert "process 1 on far, since then" in capsys.readouterr().err
    assert store.read_json(STAMP)["pid"] == 1, "nor takes the other's stamp away"
