"""Where hidden states come from: as asked, or by what there is room for and what is quicker."""

import dataclasses

import pytest

from adalayers.data.feature_plan import MEMORY_SHARE, Sizes, plan_features, read_rate
from adalayers.errors import BadInput

GB = 10**9
ROOMY = Sizes(store=2 * GB, missing=2 * GB, memory=20 * GB, disk=100 * GB)


def plan(asked="auto", *, forward=100.0, rate=None, **change):
    def never():
        raise AssertionError("measured although sizes decide")

    return plan_features(
        asked,
        dataclasses.replace(ROOMY, **change),
        forward_seconds=never if rate is None else lambda: forward,
        read_rate=never if rate is None else lambda: rate,
    )


@pytest.mark.parametrize(
    ("asked", "change", "mode"),
    [
        *((mode, {"disk": 0, "memory": 0}, mode) for mode in ("memory", "disk", "live")),
        ("auto", {}, "memory"),
        ("auto", {"store": int(MEMORY_SHARE * 20 * GB)}, "memory"),
        ("auto", {"missing": 101 * GB}, "live"),
        (
            "auto",
            {"store": 3 * GB, "missing": 0, "disk": 0},
            "memory",
        ),  # what is stored already needs no room
        ("auto", {"gpu": 10 * GB}, "memory"),
        ("auto", {"gpu": 3 * GB}, "disk"),
    ],
)
def test_as_asked_else_by_what_there_is_room_for(asked, change, mode):
    assert plan(asked, **change).mode == mode


def test_another_word_is_bad_input():
    with pytest.raises(BadInput, match="--features"):
        plan("fast")


def test_beyond_memory_the_quicker_of_disk_and_backbone_wins():
    beyond = {"store": 50 * GB, "forward": 100.0}
    assert plan(**beyond, rate=0.6 * GB).mode == "disk"  # 83 s to read
    assert plan(**beyond, rate=0.4 * GB).mode == "live"  # 125 s
    for seconds in ("83 s", "100 s"):
        assert seconds in plan(**beyond, rate=0.6 * GB).why


def test_a_dry_run_times_no_disk():
    told = plan_features(
        "auto", dataclasses.replace(ROOMY, store=50 * GB), forward_seconds=lambda: 1.0, read_rate=None
    )
    assert told.mode == "disk"


def test_the_disk_is_timed_without_a_trace(tmp_path, monkeypatch):
    monkeypatch.setattr("adalayers.data.feature_plan.PROBE_BYTES", 1 << 20)
    assert read_rate(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []
