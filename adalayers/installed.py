"""What is found by its name: the project's own folders next to this library, and what other packages add to it.

`studies`, `search_spaces` and `reports` stand at the root of a clone. A wheel has them within `adalayers`, where names
as general as these are in nobody's way (`hatch_build.py`). Other packages add by entry points (CONTRIBUTING.md).
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Literal

from adalayers.errors import BadInput

Kind = Literal["fusions", "studies", "tasks"]


def own_module(name: str) -> ModuleType:
    """Import a module of `studies`, `search_spaces` or `reports` by its name in a clone: "studies.alpha_lambda"."""
    try:
        return importlib.import_module(f"adalayers.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"adalayers.{name.partition('.')[0]}":
            raise
    return importlib.import_module(name)


def added(kind: Kind) -> dict[str, EntryPoint]:
    """Return what other packages add, by name: entry points of the group `adalayers.<kind>`."""
    return {entry.name: entry for entry in entry_points(group=f"adalayers.{kind}")}


def load_added(entry: EntryPoint) -> Any:
    """Import what an entry point names.

    Raises:
        BadInput: It cannot be imported.
    """
    try:
        return entry.load()
    except Exception as error:  # of any kind: it is another's code
        package = entry.dist.name if entry.dist else "another package"
        raise BadInput(
            f"wanted {entry.value}, which {package} adds to {entry.group}, it cannot be imported "
            f"({type(error).__name__}: {error}); repair that package, or uninstall it"
        ) from error
