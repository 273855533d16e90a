"""Where hidden states come from: as asked, or by what there is room for."""

from types import SimpleNamespace

import pytest

from adalayers.data import feature_choice
from adalayers.data.feature_choice import MEMORY_SHARE

GB = 10**9
ROOM = {"store": 2 * GB, "missing": 2 * GB, "memory": 20 * GB, "disk": 100 * GB, "gpu": None, "share": None}


@pytest.mark.parametrize(
    ("asked", "change", "mode"),
    [
        *((mode, {"disk": 0, "memory": 0}, mode) for mode in ("memory", "disk", "live")),
        ("auto", {"store": int(MEMORY_SHARE * 20 * GB)}, "memory"),
        ("auto", {"store": int(MEMORY_SHARE * 20 * GB) + 1}, "disk"),
        ("auto", {"missing": 101 * GB}, "live"),
        # What is stored already needs no room.
        ("auto", {"store": 3 * GB, "missing": 0, "disk": 0}, "memory"),
        ("auto", {"gpu": 10 * GB}, "memory"),
        ("auto", {"gpu": 3 * GB}, "disk"),
        ("auto", {"gpu": 6 * GB, "share": 0.5}, "disk"),
    ],
)
def test_as_asked_else_by_what_there_is_room_for(asked, change, mode, monkeypatch, tmp_path):
    room = SimpleNamespace(**ROOM | change)
    monkeypatch.setattr(feature_choice, "free_bytes", lambda cache: (room.memory, room.disk, room.gpu))
    monkeypatch.setattr(feature_choice, "missing_bytes", lambda prepared, cache: room.missing)
    prepared = SimpleNamespace(store_bytes=room.store)
    chosen = feature_choice.feature_choice(prepared, asked, tmp_path, gpus_per_trial=room.share)
    assert chosen.mode == mode
