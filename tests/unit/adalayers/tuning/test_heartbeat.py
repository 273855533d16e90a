"""Heartbeats: written now and then; a worker without one for too long is killed, and no other process."""

import subprocess
import sys
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


def test_a_worker_without_heartbeats_is_killed_and_no_other(tmp_path, clock, capsys):
    works = {name: Folder(tmp_path / name) for name in ("silent", "alive", "waiting")}
    watch = Watch(lambda: works, 1.0)
    with mock.patch.object(heartbeat.nodes, "on") as on:
        for minute in range(4):
            clock.now = 1000.0 + 61 * minute
            works["alive"].write_json(HEARTBEAT, {"pid": 2, "node": "n", "count": minute})
            if minute == 0:
                works["silent"].write_json(HEARTBEAT, {"pid": 1, "node": "m", "count": 0})
            watch.check()
    assert on.mock_calls == [mock.call("m", heartbeat.kill_worker), mock.call().remote(1)] * 3, (
        "a minute to be dead"
    )
    assert watch.killed == {"silent": 3}
    assert "trial silent has made no progress" in capsys.readouterr().err


def test_a_damaged_heartbeat_is_none(tmp_path, clock):
    work = Folder(tmp_path)
    watch = Watch(lambda: {"t": work}, 1.0)
    with mock.patch.object(heartbeat.nodes, "on") as on:
        for seconds, text in enumerate([b"", b"[1]", b'{"pid": "x"}', b'{"pid"']):
            clock.now = 1000.0 + 100 * seconds
            work.write_bytes(HEARTBEAT, text)
            watch.check()
    on.assert_not_called()


def test_only_workers_of_ray_are_killed():
    """The number of a worker that died may be another process's by now."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        heartbeat.kill_worker(other.pid)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.5)
        other.stdin.close()
