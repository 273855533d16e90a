"""Clusters that are no cluster: said soon, and by the address's own name."""

import signal
import subprocess
from unittest import mock

import pytest
from ray.exceptions import GetTimeoutError, TaskUnschedulableError

from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.features.features import store_folder
from adalayers.features.store import read_meta
from adalayers.request import DataRequest
from adalayers.results.provenance import software
from adalayers.storage.folder import Folder
from adalayers.tuning import cluster
from adalayers.tuning.cluster import check_address, cluster_address
from tests.helpers.refusing import refused

MACHINE = "10.0.0.2", "node"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """No cluster is named by the environment, and `ray start` was never called here."""
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))


def test_which_cluster_is_asked_for(monkeypatch, tmp_path):
    refused("got 'auto'; `ray start --head`", cluster_address, "auto")
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("started:1\n")
    assert cluster_address("auto") == "started:1", "by `ray start` alone"
    assert cluster_address(None) is cluster_address("local") is None
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert cluster_address(None) == cluster_address("auto") == "head:6379"
    assert cluster_address("other:1") == "other:1"
    assert cluster_address("local") is None


@pytest.mark.parametrize("address", ["nowhere", "host:port", "host:1/x", "http://h:1", "[::1", "host:99999"])
def test_what_is_no_address(address, monkeypatch):
    refused("wanted --address as host:port", cluster_address, address)
    monkeypatch.setenv("RAY_ADDRESS", address)
    refused("RAY_ADDRESS", cluster_address, None)


def test_ray_client_and_a_stale_or_silent_address_are_refused_with_what_to_do(closed, silent, monkeypatch):
    refused("ray job submit", cluster_address, "ray://head:10001")
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 1)
    refused("none of this release answers there within 1 s", check_address, silent)  # a port that is no Ray
    monkeypatch.setenv("RAY_ADDRESS", closed)
    refused(r"none of this release answers there .* RAY_ADDRESS unset", check_address, None)


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ("ray\n", 0, ""),
        ("", -signal.SIGABRT, "none of this release answers"),
        ("token\n", 0, "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN=<token> or"),
    ],
)
def test_a_cluster_that_answers_is_taken_where_it_needs_no_token(silent, monkeypatch, answer, code, said):
    done = subprocess.CompletedProcess([], code, stdout=answer)
    monkeypatch.setattr(cluster.subprocess, "run", lambda *args, **keys: done)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "hunter2")
    if not said:
        check_address(silent)
        return
    assert "hunter2" not in refused(said, check_address, silent)


def test_a_machine_that_shares_no_results_or_has_other_software_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("ray.get", lambda answer, timeout: answer)
    folder = Folder(tmp_path)

    def judged(answer):
        return cluster._judged(*MACHINE, answer, [folder], "word")

    refused(r"machine 10\.0\.0\.2 does not share that folder", judged, ("", []))
    answer = cluster._reach([folder.address], [], "word", "node", software())
    assert judged(answer) == []
    assert judged(("", ["/stores/a"])) == ["/stores/a"]
    other = {**software(), "code": "0123456789abcdef"}
    answer = cluster._reach([folder.address], [], "word", "node", other)
    refused(r"10\.0\.0\.2, the code of adalayers in .* is [0-9a-f]{16} and not 01", judged, answer)


@pytest.mark.parametrize("error", [TaskUnschedulableError("gone"), GetTimeoutError()])
def test_a_machine_that_has_left_is_done_without(error, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ray.get", mock.Mock(side_effect=error))
    listed = [{"NodeID": "other", "Alive": True}, {"NodeID": "node", "Alive": False}]
    monkeypatch.setattr("ray.nodes", lambda: listed)
    assert cluster._judged(*MACHINE, None, [Folder(tmp_path)], "word") == []
    assert "10.0.0.2 has left the cluster" in capsys.readouterr().err
    listed[1]["Alive"] = True
    refused(r"machine 10\.0\.0\.2", cluster._judged, *MACHINE, None, [Folder(tmp_path)], "word")


def test_a_machine_without_the_store_computes_the_same_one(tmp_path, world):
    prepared = prepare(DataRequest(str(world["backbone"]), str(world["dataset"]), max_length=16))
    encoded = prepared.encoded["test"]
    there = store_folder(tmp_path / "cache", prepared.source, encoded)
    meta = prepared.data("disk", cache=tmp_path / "driver").splits["test"].features.meta
    assert cluster._fill(there, prepared.source, encoded, meta) == ""
    assert read_meta(there) == meta
    some = prepared.reading([trial_config(hidden_states="layers:1")])  # of which the driver has all states
    assert cluster._fill(tmp_path / "own" / there.name, some.source, encoded, meta) == ""
    other = tmp_path / "elsewhere" / "a-name-of-another-release"
    wanted = f"it has {there.name} for a-name-of-another-release"
    assert cluster._fill(other, prepared.source, encoded, meta) == wanted


def test_a_store_that_a_machine_did_not_end_is_one_that_it_lacks(tmp_path, world):
    """What a run that was interrupted there left, which the next one goes on with."""
    prepared = prepare(DataRequest(str(world["backbone"]), str(world["dataset"]), max_length=16))
    split = prepared.data("disk", cache=tmp_path).splits["test"]
    wanted = cluster._needed(split)
    assert cluster._reach([], [wanted], "word", "node", software())[1] == []
    (split.features.folder / "meta.json").rename(split.features.folder / "progress.json")
    assert cluster._reach([], [wanted], "word", "node", software())[1] == [wanted]
