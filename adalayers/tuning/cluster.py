"""A Ray cluster that is there already: whether it can be had, and whether its machines reach the same folders.

Ray itself would try for minutes, and trials on a machine that does not share the results folder would leave what they
did where nobody reads it. Both are asked first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from adalayers.backbones.loading import load
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.errors import BadInput
from adalayers.features.features import LiveFeatures, StoredFeatures, store_folder, stored
from adalayers.features.store import META
from adalayers.results.provenance import other_software, software
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import clean, reason
from adalayers.tuning import ray_private

logger = logging.getLogger(__name__)

SAME_SOFTWARE = (
    "install adalayers there, the same commit with the same packages, or send the study with `ray job submit`"
)
ANSWER_SECONDS = 5
"""How long a cluster may take to say who it is."""
START_SECONDS = 60.0
"""How long the process that asks may take to load Ray, on a machine that is busy."""
REACH_SECONDS = 60.0
"""How long the machines of a cluster may take to say which folders they reach; a first worker starts in seconds."""


def cluster_address(asked: str | None) -> str | None:
    """Return host:port of the cluster that is asked for, None for a local Ray of this process's own.

    Args:
        asked: Of --address; None: the environment's RAY_ADDRESS, as Ray takes it. "auto" is the cluster that `ray
            start` has made this machine a part of: another user's or another study's own Ray is never joined.

    Raises:
        BadInput: For what is no address.
    """
    environment = os.environ.get("RAY_ADDRESS", "").strip()
    named = asked or environment
    if named == "auto":
        named = environment.removeprefix("auto") or ray_private.address_of_this_machine() or named
    if named in ("", "local"):
        return None
    try:
        parts = urlsplit(f"ray-cluster://{named}")
        whole = parts.hostname and parts.port and not parts.path and "://" not in named
    except ValueError:
        whole = False
    if not whole:
        raise BadInput(
            f"wanted --address as host:port, or RAY_ADDRESS, got {named!r}; `ray start --head` prints it. From another "
            "machine than the cluster's, send the study with `ray job submit` (docs/clusters.md)"
        )
    return named


def check_address(asked: str | None) -> None:
    """Find out whether a Ray answers at a cluster's address.

    Args:
        asked: Of --address, as `cluster_address` takes it.

    Raises:
        BadInput: None answers, or it asks for a token that is not here.
    """
    if (address := cluster_address(asked)) is None:
        return
    try:
        probe = [sys.executable, "-P", ray_private.__file__, address, str(ANSWER_SECONDS)]
        done = subprocess.run(probe, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        answer = done.stdout.split()
    except subprocess.TimeoutExpired:
        answer = []
    if "token" in answer:
        raise BadInput(
            f"wanted the token of the Ray cluster as --address {address}, none or another one came; set "
            "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN=<token> or RAY_AUTH_TOKEN_PATH=<file> (docs/clusters.md)"
        )
    if "ray" not in answer:
        raise BadInput(
            f"wanted a Ray cluster as --address {address}, none of this release answers there within "
            f"{ANSWER_SECONDS} s; check that it runs, or leave --address out, and RAY_ADDRESS unset, for a local one"
        )


def share(results: Sequence[Folder], data: Sequence[TrialData]) -> None:
    """See to it that all machines of the cluster reach what trials write to, and have what trials read.

    Each other machine writes in `results` what this one then finds there. Hidden states that it does not see in the
    store it computes into a store of its own, at the same path; where it sees the store, the folder is shared, and it
    writes nothing.

    Args:
        results: Folders that trials write to.
        data: What trials read, by case.

    Raises:
        BadInput: For a machine that cannot run trials.
    """
    here = ray.get_runtime_context().get_node_id()
    others = {
        node["NodeID"]: str(node["NodeManagerAddress"])
        for node in ray.nodes()
        if node["Alive"] and node["NodeID"] != here
    }
    if not others:
        return
    splits = [split for case in data for split in case.splits.values()]
    paths = [path for split in splits if (path := _needed(split)) is not None]
    word = f".reach-{secrets.token_hex(6)}"
    needed = [folder.address for folder in results], paths, word
    try:
        answers = {node: _on(node, _reach).remote(*needed, node, software()) for node in others}
        missing = {
            node: _judged(machine, node, answers[node], results, word) for node, machine in others.items()
        }
    finally:
        for folder in results:
            for node in others:
                with contextlib.suppress(OSError, BadInput):
                    folder.delete(f"{word}-{node}")
    _fill_all(missing, data, others)


def _on(node: str, function: Callable[..., object], gpus: float = 0) -> Any:
    """Return the function as a Ray task of that machine, which takes no CPU and is not tried again."""
    return ray.remote(num_cpus=0, num_gpus=gpus, max_retries=0)(function).options(
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
    )


def _needed(split: SplitData) -> str | None:
    """Return what reading a split's hidden states needs on the machine that reads: of a store, what ends it."""
    if isinstance(split.features, StoredFeatures):
        return str(split.features.folder / META)
    return str(split.features.source.folder) if isinstance(split.features, LiveFeatures) else None


def _judged(machine: str, node: str, answer: Any, results: Sequence[Folder], word: str) -> list[str]:
    """Return the stores that a machine lacks, none where it has left. Raises `BadInput` where it cannot run trials."""
    try:
        other, missing = ray.get(answer, timeout=REACH_SECONDS)
    except RayError as error:
        if _has_left(machine, node):
            return []
        raise BadInput(
            f"wanted to run trials on the cluster's machine {machine}, which cannot "
            f"({clean(ray_private.cause(error))}); open its ports (docs/clusters.md), and {SAME_SOFTWARE}"
        ) from error
    if other:
        raise BadInput(
            f"wanted the driver's own software on the cluster's machine {machine}, {other}; {SAME_SOFTWARE}"
        )
    for folder in results:
        if not folder.exists(f"{word}-{node}"):
            raise BadInput(
                f"wanted results of all machines in {folder.uri}, the cluster's machine {machine} does not share that "
                "folder; name one on shared storage, or a URI, as --output"
            )
    return missing


def _has_left(machine: str, node: str) -> bool:
    """Return whether a machine is no longer of the cluster: Ray lists one that died for half a minute yet."""
    if any(listed["NodeID"] == node and listed["Alive"] for listed in ray.nodes()):
        return False
    logger.warning(f"the machine {machine} has left the cluster; the study goes on without it")
    return True


def _reach(
    results: list[str], paths: list[str], word: str, node: str, driver: Mapping[str, str]
) -> tuple[str, list[str]]:
    """Return in what this machine's software differs from the driver's, and which stores it does not see.

    It leaves a word in the folders of results.
    """
    for address in results:
        with contextlib.suppress(OSError, BadInput):
            Folder(address).write_bytes(f"{word}-{node}", b"")
    return other_software(driver), [path for path in paths if not Path(path).exists()]


def _fill_all(
    missing: Mapping[str, list[str]], data: Sequence[TrialData], machines: Mapping[str, str]
) -> None:
    """Let each machine compute the stores that it lacks. Raises `BadInput` where one cannot."""
    filling = []
    splits = [(case.source, split) for case in data for split in case.splits.values()]
    for node, folders in missing.items():
        for source, split in splits:
            if _needed(split) not in folders:
                continue
            features, machine = split.features, machines[node]
            if not isinstance(features, StoredFeatures) or source is None:
                raise BadInput(
                    f"wanted the base model in {_needed(split)} on all machines, the cluster's machine {machine} "
                    "does not have it; name one on shared storage"
                )
            logger.info(f"{machine} does not see the hidden states in {features.folder}: it computes them")
            gpus = 1 if features.meta.get("computed_with", {}).get("device") == "cuda" else 0
            task = _on(node, _fill, gpus).remote(features.folder, source, split.tokens, features.meta)
            filling.append((machine, node, task))
    for machine, node, task in filling:
        try:
            problem = ray.get(task)
        except RayError as error:
            problem = "" if _has_left(machine, node) else reason(error, "")
        if problem:
            raise BadInput(
                f"wanted the hidden states of the study on the cluster's machine {machine}, it can neither see nor "
                f"compute them ({problem}); name a --cache-dir on shared storage"
            )


def _fill(folder: Path, source: BackboneSource, encoded: Encoded, meta: Mapping[str, Any]) -> str:
    """Compute a store on this machine as the driver's is; return what went wrong, nothing where nothing did."""
    about = {name: meta[name] for name in ("dataset", "path", "split", "splits") if name in meta}
    precision = meta["key"]["precision"]
    # The driver may read some states of a store of all.
    if folder != store_folder(folder.parent, source, encoded, precision):
        source = source.with_all_states
    try:
        there = stored(
            folder.parent, source, encoded, lambda: load(source), precision=precision, about=about
        ).folder
    except BadInput as error:
        return str(error)
    return "" if there == folder else f"it has {there.name} for {folder.name}"
