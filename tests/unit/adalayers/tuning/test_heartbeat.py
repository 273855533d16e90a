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
def watch(monkeypatch, clock):
    """A watch, which kills a worker after a minute, and what it has killed."""
    watch = Watch(1.0)
    watch.workers = []
    monkeypatch.setattr(heartbeat.ray, "kill", watch.workers.append)
    return watch


def trial(name, work, worker="worker", status="RUNNING"):
    jobs, state = [SimpleNamespace(trial_id=name, work=str(work))], SimpleNamespace(ray_actor=worker)
    return SimpleNamespace(config={"jobs": jobs}, temporary_state=state, status=status)


def test_a_worker_without_heartbeats_is_killed_and_no_other(tmp_path, clock, watch, capsys):
    names = ("silent", "alive", "never began")
    trials = [trial(name, tmp_path / name, name) for name in names]
    trials.append(trial("waits for a machine", tmp_path, status="PENDING"))
    for minute in range(4):
        clock.now = 1000.0 + 61 * minute
        Folder(tmp_path / "alive").write_json(HEARTBEAT, {"pid": 2, "count": minute})
        if minute == 0:
            Folder(tmp_path / "silent").write_json(HEARTBEAT, {"pid": 1, "count": 0})
        watch.on_step_end(0, trials)
    assert sorted(watch.workers) == ["never began"] * 3 + ["silent"] * 3, "a minute to be dead"
    assert watch.killed == {"silent": 3, "never began": 3}
    assert "trial never began has made no progress for 60 s" in capsys.readouterr().err
    again = trial("silent", tmp_path / "silent", "another worker")  # which has as long as any
    for seconds in (10, 60):
        clock.now += seconds
        watch.on_step_end(0, [again])
    assert watch.killed["silent"] == 3
    for running in ([], [again]):  # it has ended, and begins anew
        clock.now += 100
        watch.on_step_end(0, running)
    assert watch.killed["silent"] == 3


def test_a_worker_that_ray_does_not_name_is_left_alone_and_that_is_said(tmp_path, clock, watch, capsys):
    for _ in range(3):
        watch.on_step_end(0, [trial("t", tmp_path, None)])
        clock.now += 1000
    assert not watch.workers
    assert capsys.readouterr().err.count("--hang-minutes is not kept") == 1


def test_a_damaged_heartbeat_is_none(tmp_path, clock, watch):
    Folder(tmp_path).write_bytes(HEARTBEAT, b'{"pid"')
    for seconds in (0, 30, 59, 68):
        clock.now = 1000.0 + seconds
        watch.on_step_end(0, [trial("t", tmp_path)])
    assert watch.workers == ["worker"]


def test_a_store_that_does_not_answer_kills_nobody(tmp_path, clock, watch, monkeypatch, capsys):
    monkeypatch.setattr(Folder, "read_json", mock.Mock(side_effect=Unreachable("wanted to reach s3://x")))
    for minute in range(4):
        clock.now = 1000.0 + 61 * minute
        watch.on_step_end(0, [trial("t", tmp_path)])
    assert not watch.workers
    assert "could not read the heartbeats this time (Unreachable: wanted to reach" in capsys.readouterr().err


def test_a_look_that_fails_ends_nothing_and_forgets_no_trial(tmp_path, clock, watch, monkeypatch, capsys):
    worker = mock.Mock(side_effect=["worker", RuntimeError("no such actor")] * 3)
    monkeypatch.setattr("adalayers.tuning.ray_private.worker_of", worker)
    for seconds in (0, 61, 90):
        clock.now = 1000.0 + seconds
        watch.on_step_end(0, [trial("silent", tmp_path / "silent"), trial("lost", tmp_path / "lost")])
    assert watch.killed == {"silent": 1}, "it is not killed anew a moment later"
    assert "(RuntimeError: no such actor)" in capsys.readouterr().err
