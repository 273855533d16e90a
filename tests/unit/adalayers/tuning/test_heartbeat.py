"""Heartbeats: written now and then; a worker without one for too long is killed, and no other process."""

from types import SimpleNamespace
from unittest import mock

import pytest

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


def watch_of(monkeypatch, works):
    """Return a watch, and what it kills: each trial's worker goes by its name."""
    killed = []
    monkeypatch.setattr(heartbeat.ray, "kill", killed.append)
    watch = Watch(lambda: works, 1.0)
    for name in works:
        started(watch, name)
    return watch, killed


def started(watch, name):
    jobs, state = [SimpleNamespace(trial_id=name)], SimpleNamespace(ray_actor=name)
    trial = SimpleNamespace(config={"jobs": jobs}, temporary_state=state)
    watch.on_trial_start(0, [], trial)


def test_a_worker_without_heartbeats_is_killed_and_no_other(tmp_path, clock, monkeypatch, capsys):
    works = {name: Folder(tmp_path / name) for name in ("silent", "alive", "never began")}
    watch, killed = watch_of(monkeypatch, works)
    works["waits for a machine"] = Folder(tmp_path / "waits")
    for minute in range(4):
        clock.now = 1000.0 + 61 * minute
        works["alive"].write_json(HEARTBEAT, {"pid": 2, "count": minute})
        if minute == 0:
            works["silent"].write_json(HEARTBEAT, {"pid": 1, "count": 0})
        watch.check()
    assert sorted(killed) == ["never began"] * 3 + ["silent"] * 3, "a minute to be dead"
    assert watch.killed == {"silent": 3, "never began": 3}
    assert "trial never began has made no progress for 60 s" in capsys.readouterr().err
    started(watch, "silent")  # in another worker, which has as long as any
    clock.now += 50
    watch.check()
    assert watch.killed["silent"] == 3
    del works["silent"]
    clock.now += 100
    watch.check()
    assert watch.killed["silent"] == 3


def test_a_worker_that_ray_does_not_name_is_left_alone_and_that_is_said(clock, monkeypatch, capsys):
    watch, killed = watch_of(monkeypatch, {})
    watch.on_trial_start(0, [], SimpleNamespace(config={"jobs": [SimpleNamespace(trial_id="t")]}))
    clock.now += 1000
    watch.check()
    assert not killed
    assert "--hang-minutes is not kept" in capsys.readouterr().err


def test_a_damaged_heartbeat_is_none(tmp_path, clock, monkeypatch):
    work = Folder(tmp_path)
    watch, killed = watch_of(monkeypatch, {"t": work})
    work.write_bytes(HEARTBEAT, b'{"pid"')
    for seconds in (30, 59, 61):
        clock.now = 1000.0 + seconds
        watch.check()
    assert killed == ["t"]
