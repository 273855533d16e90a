"""The build's own step: what is built knows its commit, and a wheel has all code as packages within `adalayers`.

In a clone `studies/`, `search_spaces/` and `reports/` stand at the root, where they are run (`python
studies/alpha_lambda.py`, `python -m reports`). Packages of such names would be in the way of others in site-packages,
and they import each other by these names. So each import gets the longer name, as pip does with the packages it brings
along; nothing else of a file changes, line numbers included. A test runs a study from the wheel.
"""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("studies", "search_spaces", "reports")
COMMIT = Path("adalayers", "commit.json")
_FROM = re.compile(rf"^(\s*)from ({'|'.join(FOLDERS)})(?=[. ])", re.M)


def renamed(source: str) -> str:
    """Return a module's text with absolute imports of `FOLDERS` as they are within `adalayers`."""
    return _FROM.sub(r"\1from adalayers.\2", source)


def git_state(root: Path) -> dict[str, Any] | None:
    """Return {"commit", "dirty"} of the checkout whose root this is; None where it is none."""

    def git(*arguments: str) -> str:
        run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
        return run.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return None
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return None


class CustomBuildHook(BuildHookInterface):
    """Adds the commit, and to a wheel the folders; an editable install runs them where they stand."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._made = Path(tempfile.mkdtemp(prefix="adalayers-wheel-"))
        if version == "editable":
            return
        if state := git_state(Path(self.root)):  # an sdist, of which a wheel is made, has it as a file
            (self._made / COMMIT.name).write_text(json.dumps(state), encoding="utf-8")
            build_data["force_include"][str(self._made / COMMIT.name)] = COMMIT.as_posix()
        if self.target_name != "wheel":
            return
        for folder in FOLDERS:
            for path in sorted((Path(self.root) / folder).rglob("*")):
                if path.suffix not in (".py", ".j2"):
                    continue
                made = self._made / path.relative_to(self.root)
                made.parent.mkdir(parents=True, exist_ok=True)
                made.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
            build_data["force_include"][str(self._made / folder)] = f"adalayers/{folder}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self._made, ignore_errors=True)
