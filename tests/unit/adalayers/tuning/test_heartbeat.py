"""Heartbeats: written now and then; a worker without one for too long is killed, and no other process."""

from types import SimpleNamespace
from unittest import mock

import pytest

from adalayers.errors import Unreachable
from adalayers.storage.folder import Folder
from adalayers.tuning import heartbeat
from adalayers.tuning.heartbeat import HEARTBEAT, Heartbeat, Watch, heartbeat_seconds


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    clock = mock.Mock(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(heartbeat, "time", clock)
    return clock


def test_a_heartbeat_is_written_now_and_then(tmp_path, clock):
    work = Folder(tmp_path)
    beat = Heartbeat(work, 100 / 60)
    for seconds, count in ((0, 1), (9, 1), (10, 2), (15, 2), (25, 3)):
        clock.now = 1000.0 + seconds
        beat()
        assert work.read_json(HEARTBEAT)["count"] == count
    assert (heartbeat_seconds(1.0), heartbeat_seconds(1e9)) == (6.0, 60.0)


@pytest.fixture
def watch(monkeypatch):
    """A watch, which kills a worker after a minute, and what it has killed."""
    watch = Watch(1.0)
    watch.workers = []
    monkeypatch.setattr(heartbeat.ray, "kill", watch.workers.append)
    return watch


@pytest.fixture
def at(clock, watch, tmp_path):
    """Return what lets time pass and the watch look at trials, each by its name and its worker's."""

    def at(seconds, **workers):
        clock.now = 1000.0 + seconds
        trials = [trial(name, tmp_path / name, worker) for name, worker in workers.items()]
        watch.on_step_end(0, [*trials, trial("waits", tmp_path, "for a machine", status="PENDING")])

    return at


def trial(name, work, worker, status="RUNNING"):
    jobs, state = [SimpleNamespace(trial_id=name, work=str(work))], SimpleNamespace(ray_actor=worker)
    return SimpleNamespace(config={"jobs": jobs}, temporary_state=state, status=status)


def test_a_worker_without_heartbeats_is_killed_and_no_other(tmp_path, watch, at, capsys):
    names = ("silent", "alive", "never_began")
    Folder(tmp_path / "silent").write_json(HEARTBEAT, {"pid": 1, "count": 0})
    for minute in range(4):
        Folder(tmp_path / "alive").write_json(HEARTBEAT, {"pid": 2, "count": minute})
        at(61 * minute, **dict(zip(names, names, strict=True)))
    assert sorted(watch.workers) == ["never_began"] * 3 + ["silent"] * 3, "a minute to be dead"
    assert watch.killed == {"silent": 3, "never_began": 3}
    assert "trial never_began has made no progress for 60 s" in capsys.readouterr().err
    at(193, silent="another")  # which has as long as any
    at(243, silent="another")
    at(343)  # it has ended, and begins anew
    at(443, silent="another")
    assert watch.killed["silent"] == 3
    assert len(watch.workers) == 6


def test_a_worker_that_ray_does_not_name_is_left_alone_and_that_is_said(watch, at, capsys):
    for seconds in (0, 1000, 2000):
        at(seconds, t=None)
    assert not watch.workers
    assert capsys.readouterr().err.count("--hang-minutes is not kept") == 1


def test_a_damaged_heartbeat_is_none(tmp_path, watch, at):
    Folder(tmp_path / "t").write_bytes(HEARTBEAT, b'{"pid"')
    for seconds in (0, 30, 59, 68):
        at(seconds, t="worker")
    assert watch.workers == ["worker"]


def test_a_store_that_does_not_answer_kills_nobody(watch, at, monkeypatch, capsys):
    monkeypatch.setattr(Folder, "read_json", mock.Mock(side_effect=Unreachable("wanted to reach s3://x")))
    for minute in range(4):
        at(61 * minute, t="worker")
    assert not watch.workers
    assert "could not read the heartbeats this time (Unreachable: wanted to reach" in capsys.readouterr().err


def test_a_look_that_fails_ends_nothing_and_forgets_no_trial(watch, at, monkeypatch, capsys):
    worker = mock.Mock(side_effect=["worker", RuntimeError("no such actor")] * 3)
    monkeypatch.setattr("adalayers.tuning.ray_private.worker_of", worker)
    for seconds in (0, 61, 90):
        at(seconds, silent="worker", lost="worker")
    assert watch.killed == {"silent": 1}, "it is not killed anew a moment later"
    assert "(RuntimeError: no such actor)" in capsys.readouterr().err
