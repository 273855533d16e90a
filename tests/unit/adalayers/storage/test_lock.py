"""One driver at a time: a lock that dies with its process, and a lease where there is no lock."""

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
from adalayers.storage.lock import Lease, one_driver

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
    with (
        pytest.raises(BadInput, match="it is a link"),
        one_driver(Folder(tmp_path / "root").child("other"), "x"),
    ):
        pass


def test_a_place_that_cannot_be_written_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(BadInput, match="choose another --output"),
        one_driver(Folder(tmp_path / "file/study"), "x"),
    ):
        pass


# A lease


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder that is not on this machine's disk, as far as anyone can tell."""
    there = Folder(tmp_path)
    there._fs, there.is_local = fs.SubTreeFileSystem("/", there._fs), False
    monkeypatch.setattr(lock, "Folder", lambda uri: there)
    monkeypatch.setattr(lock, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.05)
    return there


def lease(store, pid):
    return Lease(
        store,
        ".study.lease.json",
        "s3://user:secret@bucket/study",
        {"host": "far", "pid": pid, "since": "then", "command": "python studies/x.py"},
    )


def test_a_lease_keeps_the_second_driver_out_while_it_is_renewed(store):
    with one_driver(store.child("study"), "python studies/x.py"):
        first = store.read_json(".study.lease.json")["renewed"]
        time.sleep(0.5)
        assert store.read_json(".study.lease.json")["renewed"] > first
        with pytest.raises(BadInput, match=r"process \d+ on .* \(python studies/x\.py\) works on it"):
            lease(store, 2).take()
    assert not store.exists(".study.lease.json")
    lease(store, 2).take()


def test_a_lease_that_is_not_renewed_is_stale(store, monkeypatch):
    lease(store, 1).take()
    with pytest.raises(BadInput, match="process 1 on far, since then") as refused:
        lease(store, 2).take()
    assert "secret" not in str(refused.value)
    monkeypatch.setattr(lock, "STALE_SECONDS", 0.0)
    lease(store, 2).take()
    assert store.read_json(".study.lease.json")["pid"] == 2


def test_of_two_that_take_a_lease_at_once_one_has_it(store, monkeypatch):
    monkeypatch.setattr(lock, "SETTLE_SECONDS", 0.3)
    outcome = []

    def take(pid):
        try:
            lease(store, pid).take()
            outcome.append(pid)
        except BadInput:
            pass

    drivers = [threading.Thread(target=take, args=(pid,)) for pid in range(4)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert outcome == [store.read_json(".study.lease.json")["pid"]]


def test_a_driver_that_stood_still_until_its_lease_was_stale_writes_nothing_more(store, monkeypatch, capsys):
    mine = lease(store, 1)
    mine.take()
    monkeypatch.setattr(lock, "STALE_SECONDS", 0.0)
    lease(store, 2).take()
    monkeypatch.setattr(lock, "STALE_SECONDS", 120.0)
    with pytest.raises(SystemExit):
        mine.renew_until(threading.Event(), lost=sys.exit)
    assert "process 2 on far" in capsys.readouterr().err
    mine.give_back()
    assert store.read_json(".study.lease.json")["pid"] == 2, "nor takes the other's lease away"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"renewed": "now"}'])
def test_a_damaged_lease_keeps_nobody_out(store, text):
    store.write_bytes(".study.lease.json", text)
    lease(store, 1).take()
