"""Where hidden states come from: as asked, or by what there is room for."""

from types import SimpleNamespace

import pytest

from adalayers.data import feature_choice
from adalayers.data.feature_choice import MEMORY_SHARE

GB = 10**9


@pytest.fixture
def plan(monkeypatch, tmp_path):
    def planned(
        asked="auto",
        *,
        store=2 * GB,
        missing=2 * GB,
        memory=20 * GB,
        disk=100 * GB,
        gpu=None,
    ):
        monkeypatch.setattr(feature_choice, "free_bytes", lambda cache: (memory, disk, gpu))
        monkeypatch.setattr(feature_choice, "missing_bytes", lambda prepared, cache: missing)
        prepared = SimpleNamespace(store_bytes=store)
        return feature_choice.feature_choice(prepared, asked, tmp_path, gpus_per_trial=None)

    return planned


@pytest.mark.parametrize(
    ("asked", "change", "mode"),
    [
        *((mode, {"disk": 0, "memory": 0}, mode) for mode in ("memory", "disk", "live")),
        ("auto", {}, "memory"),
        ("auto", {"store": int(MEMORY_SHARE * 20 * GB)}, "memory"),
        ("auto", {"missing": 101 * GB}, "live"),
        # What is stored already needs no room.
        ("auto", {"store": 3 * GB, "missing": 0, "disk": 0}, "memory"),
        ("auto", {"gpu": 10 * GB}, "memory"),
        ("auto", {"gpu": 3 * GB}, "disk"),
        ("auto", {"store": 50 * GB}, "disk"),
    ],
)
def test_as_asked_else_by_what_there_is_room_for(plan, asked, change, mode):
    assert plan(asked, **change).mode == mode
