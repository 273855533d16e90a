"""Signs of life: written now and then, and a worker that is silent for too long is ended, and no other process."""

import subprocess
import sys
from unittest import mock

import pytest

from adalayers.storage.folder import Folder
from adalayers.tuning import heartbeat
from adalayers.tuning.heartbeat import HEARTBEAT, Beat, Watch, beat_seconds


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    clock = mock.Mock(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(heartbeat, "time", clock)
    return clock


def test_a_sign_of_life_is_written_now_and_then(tmp_path, clock):
    work = Folder(tmp_path)
    beat = Beat(work, 10.0)
    for seconds, count in ((0, 1), (9, 1), (10, 2), (15, 2), (25, 3)):
        clock.now = 1000.0 + seconds
        beat()
        assert work.read_json(HEARTBEAT)["count"] == count
    Beat(work.child("none"), 0.0)()
    assert not work.exists("none")
    assert (beat_seconds(None), beat_seconds(60.0), beat_seconds(1e9)) == (0.0, 6.0, 60.0)


def test_a_silent_worker_is_ended_and_one_that_gives_signs_is_not(tmp_path, clock, capsys):
    works = {name: Folder(tmp_path / name) for name in ("silent", "alive", "waiting")}
    watch = Watch(lambda: works, 60.0)
    with mock.patch.object(heartbeat, "_end") as end:
        for minute in range(4):
            clock.now = 1000.0 + 61 * minute
            works["alive"].write_json(HEARTBEAT, {"pid": 2, "node": "n", "count": minute})
            if minute == 0:
                works["silent"].write_json(HEARTBEAT, {"pid": 1, "node": "m", "count": 0})
            watch.look()
    assert end.call_args_list == [mock.call(1, "m")] * 3, (
        "as long again to be dead before it is ended once more"
    )
    assert watch.hung == {"silent": 3}
    assert "trial silent has given no sign of life" in capsys.readouterr().err


def test_a_damaged_sign_is_none(tmp_path, clock):
    work = Folder(tmp_path)
    watch = Watch(lambda: {"t": work}, 60.0)
    with mock.patch.object(heartbeat, "_end") as end:
        for seconds, text in enumerate([b"", b"[1]", b'{"pid": "x"}', b'{"pid"']):
            clock.now = 1000.0 + 100 * seconds
            work.write_bytes(HEARTBEAT, text)
            watch.look()
    end.assert_not_called()


def test_only_workers_of_ray_are_killed():
    """The number of a worker that died may be another process's by now."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        heartbeat._kill(other.pid)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.5)
        other.stdin.close()
