"""Every study, tiny, from start to report: python -m tests.smoke [output]

Two processes take one study after another, each with one Ray session for all of its own: a tiny study is mostly what
starts before its trials and the pages after them, none of which uses a second core.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import queue
import sys
import tempfile
import time
from multiprocessing.queues import Queue
from pathlib import Path

import reports
from adalayers.command.main import DONE, main
from adalayers.results.files import REPORT
from adalayers.tuning.session import ray_session
from reports.reading.load import load
from tests.helpers.studying import without_figures

STUDIES = Path(__file__).resolve().parents[1] / "studies"
SECONDS = 120
"""The contract's promise for one study."""
FLAGS = ("--smoke", "--max-concurrent", "1")
PROCESSES = 2
LONGEST = ("methods", "few_shot", "capacity", "small_data")
"""Those that start first."""
WHOLE = ("search", "backbones")
"""Those whose runs go to MLflow and whose figures are drawn, one case and several: of the others no file is drawn."""


def smoke(name: str, output: str) -> str | None:
    """Run one study with --smoke; return what is wrong with it, None where nothing is."""
    study = importlib.import_module(f"studies.{name}").STUDY
    began = time.monotonic()
    flags = [*FLAGS, *(() if name in WHOLE else ("--tracking-uri", "none"))]
    with contextlib.nullcontext() if name in WHOLE else without_figures():
        code = main(study, reports, [*flags, "--output", output, "--cache-dir", f"{output}/cache"])
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


def take(names: Queue[str], wrong: Queue[tuple[str, str | None]], output: str) -> None:
    """Run studies as long as there is one left; put each name with what is wrong with it."""
    with ray_session(None):
        while True:
            try:
                name = names.get(timeout=1)
            except queue.Empty:
                return
            try:
                wrong.put((name, smoke(name, output)))
            except Exception as error:
                wrong.put((name, repr(error)))
                raise


def run_all(output: str) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes, each with a worker: more threads only wait
    context = multiprocessing.get_context("spawn")
    names, wrong = context.Queue(), context.Queue()
    studies = sorted(path.stem for path in STUDIES.glob("*.py") if path.stem != "__init__")
    for name in sorted(studies, key=lambda name: (name not in LONGEST, name)):
        names.put(name)
    processes = [context.Process(target=take, args=(names, wrong, output)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    found: dict[str, str | None] = {}
    while any(process.is_alive() for process in processes) or not wrong.empty():
        with contextlib.suppress(queue.Empty):
            found |= [wrong.get(timeout=1)]
    problems = {name: found.get(name, "its process died") for name in studies}
    for name, problem in problems.items():
        print(f"{name}: {problem or 'ok'}")
    failed = sum(problem is not None for problem in problems.values())
    print(f"{len(problems) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(run_all(sys.argv[1]))
    with tempfile.TemporaryDirectory(prefix="adalayers-smoke-") as folder:
        sys.exit(run_all(folder))
