"""One driver at a time: a lock that dies with its process, and a stamp where there is no lock."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pyarrow import fs

from adalayers.errors import BadInput
from adalayers.storage import lock
from adalayers.storage.folder import Folder
from adalayers.storage.lock import one_driver

ROOT = Path(__file__).parents[4]
DRIVER = """
import sys
from adalayers.errors import BadInput
from adalayers.storage.folder import Folder
from adalayers.storage.lock import one_driver

try:
    with one_driver(Folder(sys.argv[1]), "python studies/x.py --label 'a b'"):
        print("holds", flush=True)
        sys.stdin.readline()
except BadInput as error:
    print(error, flush=True)
"""


@pytest.fixture
def driver(tmp_path):
    """Start a driver of the study in a process of its own; return it and its first line."""
    started = []

    def start():
        argv = [sys.executable, "-c", DRIVER, str(tmp_path / "study")]
        process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_second_driver_is_told_of_the_first(driver, tmp_path):
    first, said = driver()
    assert said == "holds"
    _, told = driver()
    assert told.startswith(f"wanted {tmp_path / 'study'} for this run alone, process {first.pid} on ")
    assert "(python studies/x.py --label 'a b') works on it; wait until that one ends or stop it" in told
    assert "--label NAME" in told
    first.communicate("\n")
    assert driver()[1] == "holds"


def test_the_lock_dies_with_its_process(driver):
    first, said = driver()
    assert said == "holds"
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert driver()[1] == "holds"


def test_the_folder_may_be_renamed_while_it_is_held(tmp_path):
    folder = Folder(tmp_path / "study")
    folder.write_bytes("a", b"")
    with one_driver(folder, "x"):
        folder.move("", Folder(tmp_path / "aside"))
        with pytest.raises(BadInput, match="works on it"), one_driver(folder, "y"):
            pass
    with one_driver(folder, "y"):
        pass


def test_a_linked_lock_or_folder_is_refused(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/.study.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(BadInput, match="it is a link"), one_driver(Folder(tmp_path / "root/study"), "x"):
        pass
    assert (tmp_path / "victim").read_text() == "precious"
    (tmp_path / "root/other").symlink_to(tmp_path)
    other = Folder(tmp_path / "root").child("other")
    with pytest.raises(BadInput, match="it is a link"), one_driver(other, "x"):
        pass


def test_a_place_that_cannot_be_written_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("")
    study = Folder(tmp_path / "file/study")
    with pytest.raises(BadInput, match="choose another --output"), one_driver(study, "x"):
        pass


# A stamp


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder that is not on this machine's disk, as far as anyone can tell."""
    there = Folder(tmp_path)
    there._fs, there.is_local = fs.SubTreeFileSystem("/", there._fs), False
    there._base = "s3://user:secret@bucket"
    monkeypatch.setattr(lock, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(
        lock, "RENEW_SECONDS", 0.25
    )  # seldom: here, unlike at a URI, a reader may see half a write
    monkeypatch.setattr(Folder, "parent", lambda self: there)
    monkeypatch.setattr(lock.os, "_exit", _ends_no_test_run)
    return there


def _ends_no_test_run(code):
    raise AssertionError(f"a driver would have ended its process with {code}")


def stamped(store, **more):
    driver = {"host": "far", "pid": 1, "since": "then", "command": "python studies/x.py", "id": "other"}
    store.write_json(STAMP, {**driver, "time": time.time(), **more})


STAMP = ".study.driver.json"


def within_time(holds):
    """Return whether something holds within what a busy machine takes."""
    end = time.monotonic() + 30
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def test_a_stamp_keeps_the_second_driver_out_while_it_is_renewed(store):
    with one_driver(store.child("study"), "python studies/x.py"):
        first = store.read_json(STAMP)["time"]
        assert within_time(lambda: lock._read(store, STAMP).get("time", 0) > first)
        said = r"process \d+ on .* \(python studies/x\.py\) works on it"
        with pytest.raises(BadInput, match=said) as refused, one_driver(store.child("study"), "y"):
            pass
    assert "secret" not in str(refused.value)
    assert not store.exists(STAMP)


@pytest.mark.parametrize("damage", [{"time": 0.0}, b"", b"{", b"[]", b'{"time": "now"}'])
def test_a_stamp_that_is_old_or_damaged_keeps_nobody_out(store, damage):
    if isinstance(damage, bytes):
        store.write_bytes(STAMP, damage)
    else:
        stamped(store, **damage)
    with one_driver(store.child("study"), "x"):
        assert store.read_json(STAMP)["command"] == "x"


def test_of_two_that_begin_at_once_one_goes_on(store, monkeypatch):
    monkeypatch.setattr(
        lock, "SETTLE_SECONDS", 1.0
    )  # longer than a busy machine keeps a thread from its write
    outcome, done = [], threading.Event()

    def drive(number):
        try:
            with one_driver(store.child("study"), str(number)):
                outcome.append(str(number))
                done.wait(10)
        except BadInput:
            pass

    drivers = [threading.Thread(target=drive, args=(number,)) for number in range(4)]
    for driver in drivers:
        driver.start()
    assert within_time(lambda: sum(driver.is_alive() for driver in drivers) == 1 == len(outcome))
    assert within_time(lambda: outcome == [lock._read(store, STAMP).get("command")])
    done.set()
    for driver in drivers:
        driver.join()


def test_a_driver_that_stood_still_for_too_long_writes_nothing_more(store, monkeypatch, capsys):
    left = threading.Event()
    monkeypatch.setattr(lock.os, "_exit", lambda code: left.set())
    with one_driver(store.child("study"), "x"):
        stamped(store)
        assert left.wait(5)
    assert "process 1 on far, since then" in capsys.readouterr().err
    assert store.read_json(STAMP)["pid"] == 1, "nor takes the other's stamp away"
