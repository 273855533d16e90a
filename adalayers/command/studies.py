"""adalayers study: the studies that there are, the project's own and those of other packages."""

from __future__ import annotations

import pkgutil

from adalayers.console.progress import show
from adalayers.errors import BadInput, unknown
from adalayers.installed import added, load_added, own_module
from adalayers.study import Study


def find_study(name: str) -> Study:
    """Return a study by its name; the project's own go first.

    Raises:
        BadInput: There is none of that name, or it cannot be imported.
    """
    if name in own_studies():
        study = own_module(f"studies.{name}").STUDY
    elif entry := added("studies").get(name):
        study = load_added(entry)
    else:
        raise unknown("study", name, [*own_studies(), *added("studies")])
    if not isinstance(study, Study):
        raise BadInput(
            f"wanted a Study by the name {name}, got {type(study).__name__}; name it as module:STUDY"
        )
    return study


def list_studies() -> None:
    """Print every study with its question."""
    show("usage: adalayers study STUDY [flags]; adalayers study STUDY --help explains them\n")
    names = dict.fromkeys([*own_studies(), *added("studies")])
    for name in names:
        try:
            about = find_study(name).question
        except BadInput as error:
            about = f"cannot be run: {error}"
        show(f"{name:<{max(map(len, names))}}  {about}")


def own_studies() -> list[str]:
    """Return the names of this project's own studies."""
    return sorted(module.name for module in pkgutil.iter_modules(own_module("studies").__path__))
