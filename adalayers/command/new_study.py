"""adalayers new-study: a study of one's own to begin with."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

from adalayers.console.progress import show
from adalayers.errors import BadInput, CannotWrite
from adalayers.installed import taken_name

_STUDY = '''"""How much does dropout in the head matter?"""

import sys

from adalayers.command.main import main
from adalayers.study import Arm, Design, Factor, Setting, Study


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return what is confirmed over paired seeds, the control first, and notes for the report."""
    levels = setting.levels("dropout", [0.0, 0.1, 0.3])
    return [Arm(f"dropout={level:g}", "core", {"dropout": level}) for level in levels], []


STUDY = Study(
    name="NAME",
    question="How large is the influence of dropout in the head on quality?",
    design=Design(arms=arms, factors=(Factor("dropout", "dropout"),)),
    search_space="NAME_space",  # the module next to this one
)

if __name__ == "__main__":
    sys.exit(main(STUDY))
'''
_SPACE = '''"""What the search tries: its best is confirmed next to the arms."""

from ray import tune

SCIENTIFIC = {"dropout": tune.uniform(0.0, 0.5)}  # what the question is about
NUISANCE = {"lr": tune.loguniform(1e-4, 1e-2)}  # what has to be tuned along
GRID = {"dropout": [0.0, 0.1, 0.3], "lr": [3e-4, 1e-3, 3e-3]}  # of --search grid
'''


def new_study(name: str) -> None:
    """Write `<name>.py` and `<name>_space.py` into the working directory: a whole study, to be changed.

    Raises:
        BadInput: The name is no module's, or a file of that name is there.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BadInput(f"wanted a name of small letters, digits and _, got {name!r}; choose another")
    if taken_name(name) or importlib.util.find_spec(name) is not None:
        raise BadInput(
            f"wanted a name that no module has, Python or a package has a {name!r}; choose another"
        )
    files = {Path(f"{name}.py"): _STUDY, Path(f"{name}_space.py"): _SPACE}
    if there := [str(path) for path in files if os.path.lexists(path)]:
        raise BadInput(f"wanted a name that no file here has, {' and '.join(there)} is there; choose another")
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:  # never through a link
                file.write(text.replace("NAME", name))
    except OSError as error:
        raise CannotWrite(
            f"wanted to write {path} into {Path.cwd()}, which failed ({error.strerror}); change to another folder"
        ) from error
    show(f"{' and '.join(map(str, files))}; look at its plan with: python {name}.py --dry-run")
