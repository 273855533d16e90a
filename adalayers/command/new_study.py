"""adalayers new-study: a study of one's own to begin with."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

from adalayers.command.studies import own_studies
from adalayers.console.progress import show
from adalayers.errors import BadInput, CannotWrite
from adalayers.installed import FOLDERS

_TEMPLATES = Path(__file__).with_name("templates")


def new_study(name: str) -> None:
    """Write `<name>.py` and `<name>_space.py` into the working directory: a whole study, to be changed.

    Raises:
        BadInput: The name is no module's, or a file of that name is there.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BadInput(f"wanted a name of small letters, digits and _, got {name!r}; choose another")
    if name in (*FOLDERS, *own_studies()) or importlib.util.find_spec(name):
        raise BadInput(
            f"wanted a name that no module has, Python or a package has a {name!r}; choose another"
        )
    files = {Path(f"{name}.py"): "study.txt", Path(f"{name}_space.py"): "space.txt"}
    if there := [str(path) for path in files if os.path.lexists(path)]:
        raise BadInput(f"wanted a name that no file here has, {' and '.join(there)} is there; choose another")
    try:
        for path, template in files.items():
            text = (_TEMPLATES / template).read_text(encoding="utf-8").replace("NAME", name)
            with path.open("x", encoding="utf-8") as file:  # never through a link
                file.write(text)
    except OSError as error:
        raise CannotWrite(
            f"wanted to write {path} into {Path.cwd()}, which failed ({error.strerror}); change to another folder"
        ) from error
    show(f"{' and '.join(map(str, files))}; look at its plan with: python {name}.py --dry-run")
