"""What is imported by its name is this library's own, wherever Python was started and whatever else is on its path.

`studies`, `search_spaces` and `reports` stand at the root of a clone. A wheel has them within `adalayers`, where names
as general as these are in nobody's way (`hatch_build.py`). Other packages add by entry points (CONTRIBUTING.md).
Workers find modules where their driver does, and compare a hash of their code with the driver's.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import itertools
import os
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args

from adalayers.errors import BadInput

if TYPE_CHECKING:  # it imports much, and `settle_imports` goes first
    from importlib.metadata import EntryPoint

Kind = Literal["fusions", "studies", "tasks"]

PACKAGE = Path(__file__).resolve().parent
FOLDERS = ("reports", "search_spaces", "studies")
"""Next to the package in a clone, within it in a wheel."""


def settle_imports() -> None:
    """Keep what only happens to lie in the current folder out of the way of the libraries.

    `python -m adalayers` has put that folder in front of all others: it goes, unless this package is in it.
    """
    spec, first = getattr(sys.modules.get("__main__"), "__spec__", None), sys.path[0] if sys.path else ""
    if spec is not None and spec.name.partition(".")[0] == "adalayers" and first in ("", os.getcwd()):
        del sys.path[0]
        if PACKAGE.parent == Path(first or os.getcwd()).resolve():
            sys.path.append(str(PACKAGE.parent))


def require_own_script() -> None:
    """Check that a study of a clone runs with the library of that clone.

    Raises:
        BadInput: It does not: the commit that results name would not be that of the study.
    """
    program = sys.modules.get("__main__")
    script = Path(getattr(program, "__file__", None) or os.devnull).resolve()
    root = script.parent.parent
    own_library = (root / "adalayers" / "command" / "main.py").is_file()
    if script.parent.name == "studies" and root != PACKAGE.parent and own_library:
        raise BadInput(
            f"wanted {script} with the library next to it, Python imports the one in {PACKAGE.parent}; run it with "
            f"PYTHONPATH={root}, or that library's own study: adalayers study {script.stem}"
        )


def own_module(name: str) -> ModuleType:
    """Import a module of `studies`, `search_spaces` or `reports` by its name in a clone: "studies.alpha_lambda".

    Raises:
        BadInput: Another package of that name was imported before.
    """
    folder = name.partition(".")[0]
    if (PACKAGE / folder).is_dir():
        return importlib.import_module(f"adalayers.{name}")
    place = PACKAGE.parent / folder
    loaded = sys.modules.get(folder)
    if loaded is not None and next(iter(getattr(loaded, "__path__", ())), None) != str(place):
        raise BadInput(
            f"wanted this library's own {folder!r} in {place}, another module of that name was imported before "
            f"({getattr(loaded, '__file__', None) or 'a folder'}); import it later, rename it, or install adalayers "
            "from a wheel, which has its own under another name"
        )
    if loaded is None:
        if (spec := PathFinder.find_spec(folder, [str(PACKAGE.parent)])) is None:
            raise ModuleNotFoundError(f"No module named {folder!r} in {PACKAGE.parent}", name=folder)
        sys.modules[folder] = module_from_spec(spec)
        if spec.loader is not None:
            spec.loader.exec_module(sys.modules[folder])
    return importlib.import_module(name)


def worker_path() -> list[str]:
    """Return where a worker looks for modules first, so that it imports what this process does.

    The folder of this package, unless that is site-packages; then what stands before Python's own library in this
    process, such as the folder of a study of the user's own.
    """
    own_library = Path(os.__file__).resolve().parent
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"  # comes first of Python's own
    entries = [Path(entry).resolve() for entry in sys.path]
    before = itertools.takewhile(lambda entry: entry != own_library and entry.name != zipped, entries)
    root = [] if PACKAGE.parent.name in ("site-packages", "dist-packages") else [PACKAGE.parent]
    return [*dict.fromkeys(map(str, (*root, *before)))]


@functools.cache
def code_hash() -> str:
    """Return 16 hex digits over the code of this library that trials run, and over that of packages which add to it.

    It is taken once per process: a driver asks as it starts. Files are named as they lie within their package: a clone,
    a wheel and a copy at another place have the same one.
    """
    digest, places = hashlib.sha256(), {"adalayers": PACKAGE}
    adding = {entry.module.partition(".")[0] for kind in get_args(Kind) for entry in added(kind).values()}
    for name in sorted(adding):
        if (spec := PathFinder.find_spec(name)) and spec.origin:
            places[name] = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    for name, place in places.items():
        for path in sorted(place.rglob("*.py")) or [place]:
            within = path.relative_to(place)
            if name != "adalayers" or within.parts[0] not in FOLDERS:
                digest.update(f"{name}/{within.as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def added(kind: Kind) -> dict[str, EntryPoint]:
    """Return what other packages add, by name: entry points of the group `adalayers.<kind>`."""
    from importlib.metadata import entry_points

    every = entry_points(group=f"adalayers.{kind}")
    return {entry.name: entry for entry in every if entry.pattern.match(entry.value)}


def load_added(entry: EntryPoint, use: Callable[[Any], Any] = lambda loaded: loaded) -> Any:
    """Import what an entry point names.

    Args:
        entry: The entry point.
        use: Makes of it what is returned, or raises.

    Raises:
        BadInput: It cannot be imported or used.
    """
    try:
        return use(entry.load())
    except (Exception, SystemExit) as error:  # of many kinds: it is another's code
        package = entry.dist.name if entry.dist else "another package"
        raise BadInput(
            f"wanted {entry.value}, which {package} adds to {entry.group}, it cannot be imported "
            f"({type(error).__name__}: {' '.join(str(error).split())[:300]}); repair that package, or uninstall it"
        ) from error
