"""Where hidden states come from: as asked, or by what there is room for and what is quicker."""

from types import SimpleNamespace

import pytest

from adalayers.data import feature_plan
from adalayers.data.feature_plan import MEMORY_SHARE, read_rate

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
        forward=None,
        rate=None,
        dry_run=False,
    ):
        monkeypatch.setattr(feature_plan, "free_bytes", lambda cache: (memory, disk, gpu))
        monkeypatch.setattr(feature_plan, "missing_bytes", lambda prepared, cache: missing)
        # Without a value it fails: sizes decide, and nothing is to be measured.
        monkeypatch.setattr(feature_plan, "read_rate", lambda cache: rate / 1)
        monkeypatch.setattr(feature_plan, "forward_seconds", lambda prepared: forward / 1)
        prepared = SimpleNamespace(store_bytes=store)
        return feature_plan.feature_plan(prepared, asked, tmp_path, gpus_per_trial=None, dry_run=dry_run)

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
    ],
)
def test_as_asked_else_by_what_there_is_room_for(plan, asked, change, mode):
    assert plan(asked, **change).mode == mode


def test_beyond_memory_the_quicker_of_disk_and_backbone_wins(plan):
    beyond = {"store": 50 * GB, "forward": 100.0}
    assert plan(**beyond, rate=0.6 * GB).mode == "disk"  # 83 s to read
    assert plan(**beyond, rate=0.4 * GB).mode == "live"  # 125 s
    for seconds in ("83 s", "100 s"):
        assert seconds in plan(**beyond, rate=0.6 * GB).why


def test_a_dry_run_times_no_disk(plan):
    assert plan(store=50 * GB, dry_run=True).mode == "disk"


def test_the_disk_is_timed_without_a_trace(tmp_path, monkeypatch):
    monkeypatch.setattr("adalayers.data.feature_plan.PROBE_BYTES", 1 << 20)
    assert read_rate(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []
