"""On what a study ran: code, packages, machine; without names of users, paths or hosts."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path

from adalayers.installed import code_hash
from adalayers.results.study_file import GitRecord

PACKAGES = (
    "adalayers",
    "torch",
    "transformers",
    "datasets",
    "ray",
    "optuna",
    "mlflow",
    "numpy",
    "pandas",
    "scipy",
    "scikit-learn",
    "safetensors",
)

CODE = ("adalayers", "reports", "search_spaces", "studies", "pyproject.toml", "constraints.txt")
"""The parts of a checkout that results depend on."""
BUILT_FROM = "commit.json"
"""In an installed package: what it was built from (hatch_build.py)."""


@functools.cache
def software() -> dict[str, str]:
    """Return what a worker must have as its driver has it: the hash of the code, and releases of packages.

    Builds of one release (2.13.0+cpu) are the same: machines of a cluster may differ in them.
    """
    return {"code": code_hash()} | {name: version.partition("+")[0] for name, version in versions().items()}


def other_software(driver: Mapping[str, str]) -> str:
    """Return in words what this process imports otherwise than its driver does; "" where that is nothing."""
    own, names = software(), {"code": f"the code of adalayers in {Path(__file__).parents[1]} (by its hash)"}
    return ", ".join(
        f"{names.get(name, name)} is {own.get(name)} and not {wanted}"
        for name, wanted in driver.items()
        if own.get(name) != wanted
    )


def git_state(folder: Path | None = None) -> GitRecord:
    """Return commit and dirty flag of the checkout whose root this is, else of that which the wheel was built in.

    None where neither is known.

    folder: default: that above this package. Installed, it may lie in a checkout of the user's own, whose commit says
            nothing of this code
    dirty: of what decides on results. Results that are written into the checkout itself change none of it.
    """
    where = folder or Path(__file__).resolve().parents[2]

    def git(*arguments: str) -> str | None:
        command = ["git", "-c", f"safe.directory={where}", "-C", str(where), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return os.fsdecode(done.stdout).strip()

    if (root := git("rev-parse", "--show-toplevel")) is None or Path(root).resolve() != where.resolve():
        built = where / "adalayers" / BUILT_FROM
        return GitRecord(**json.loads(built.read_text(encoding="utf-8"))) if built.is_file() else GitRecord()
    status = git("status", "--porcelain", "--", *(f":/{part}" for part in CODE))
    return GitRecord(commit=git("rev-parse", "HEAD"), dirty=None if status is None else bool(status))


def versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def device(gpu: bool) -> str:
    """Return what trials compute on, on this machine: its GPU where they take one."""
    import torch

    gpu = gpu and torch.cuda.is_available()
    return torch.cuda.get_device_name(0) if gpu else f"cpu ({platform.processor() or platform.machine()})"
