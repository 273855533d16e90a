"""Every study, tiny, from start to report: python -m tests.smoke [output]

All share one Ray session, because Ray's start is most of what a tiny study takes.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from pathlib import Path

import reports
from adalayers.command.main import DONE, main
from adalayers.results.files import REPORT, load
from adalayers.tuning.session import ray_session

STUDIES = Path(__file__).resolve().parents[1] / "studies"
SECONDS = 120
"""The contract's promise for one study."""


def smoke(name: str, output: str) -> str | None:
    """Run one study with --smoke; return what is wrong with it, None where nothing is."""
    study = importlib.import_module(f"studies.{name}").STUDY
    began = time.monotonic()
    code = main(study, reports, ["--smoke", "--output", output, "--cache-dir", f"{output}/cache"])
    seconds = time.monotonic() - began
    if code != DONE:
        return f"exit code {code}"
    folders = sorted((Path(output) / name).glob("*-smoke"))
    for folder in folders:
        results = load(folder)
        if not (results.trials["status"] != "failed").all() or results.problems:
            return f"failed trials or problems in {folder.name}: {results.problems}"
    pages = [folder / REPORT for folder in folders] + (
        [Path(output) / name / REPORT] if len(folders) > 1 else []
    )
    missing = [str(page) for page in pages if not page.exists()]
    if missing or not folders:
        return f"no report: {missing or 'no folder'}"
    return f"it took {seconds:.0f} s, more than {SECONDS}" if seconds > SECONDS else None


def run_all(output: str) -> int:
    names = sorted(path.stem for path in STUDIES.glob("*.py") if path.stem != "__init__")
    with ray_session(None):
        wrong = {name: smoke(name, output) for name in names}
    for name, problem in wrong.items():
        print(f"{name}: {problem or 'ok'}")
    print(f"{sum(not p for p in wrong.values())} passed, {sum(bool(p) for p in wrong.values())} failed")
    return int(any(wrong.values()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(run_all(sys.argv[1]))
    with tempfile.TemporaryDirectory(prefix="adalayers-smoke-") as folder:
        sys.exit(run_all(folder))
