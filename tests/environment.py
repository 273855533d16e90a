"""Environments that must change nothing, or be refused before anything is computed: python -m tests.environment

Variables, current folders, users and names of folders that other programs leave. Those that are to change nothing meet
in one tiny study, as they are independent of each other; it ends 0 with its report and its files in its folder. The
others must exit 2 with their line on stderr.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adalayers.command.main import DONE
from adalayers.console.command_line import BAD_INPUT
from adalayers.results.files import REPORT
from reports.reading.load import load
from tests.helpers.long_form import Wrong, in_folder, parser_of
from tests.helpers.studying import ROOT, SCRIPT, world

SECONDS = 400
FLAGS = (
    *("--set", "alpha=8", "entropy_weight=0", "k=8", "heads=2"),
    *("--epochs", "1", "--trials", "0", "--seeds", "1", "--max-concurrent", "1"),
)
STUDY_FILES = {"study.json", "trials.csv", "claims.json", REPORT, "details.md", "best", "figures"}

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
NOWHERE = ("TUNE_RESULT_DIR", "RAY_AIR_LOCAL_CACHE_DIR", "RAY_TMPDIR", "GIT_DIR", "GIT_WORK_TREE")
UNWRITABLE = ("MPLCONFIGDIR", "HF_HOME", "TRANSFORMERS_CACHE")
IGNORED = {
    **dict.fromkeys(NOWHERE, "/nowhere"),
    **dict.fromkeys(UNWRITABLE, "/dev/null/folder"),
    **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("COLUMNS", "NO_COLOR", "OMP_NUM_THREADS", "PYTHONHASHSEED", "PYTHONSAFEPATH"), "1"),
    "MPLBACKEND": "module://no_such_module.backend_inline",  # a notebook's
    "RAY_RUNTIME_ENV_HOOK": "no.such.hook",
    "TUNE_MAX_PENDING_TRIALS_PG": "many",
    "TUNE_RESULT_BUFFER_LENGTH": "1000",
    "PYTHONWARNINGS": "error",
    "MLFLOW_RUN_ID": "0" * 32,
    "MLFLOW_EXPERIMENT_NAME": "another",
    "CUDA_VISIBLE_DEVICES": "",
}
"""Variables that change nothing."""


def matplotlibrc(folder: Path, text: bytes = b"font.family: J\xfcrgen\n") -> Path:
    (folder / "matplotlibrc").write_bytes(text)
    return folder


def gone(folder: Path) -> Path:
    (folder / "here").mkdir()
    return folder / "here"


def all_at_once(folder: Path) -> Path:
    """Put odd figures, a package of this one's name, what Ray would not take, and `uv run`'s launcher there."""
    (folder / "adalayers").mkdir()
    (folder / "adalayers" / "__init__.py").write_text("VERSION = 1\n")  # the thesis's own
    with (folder / "data.bin").open("wb") as file:
        file.truncate(620_000_000)
    (folder / "run").write_text('"$@"\n')  # `bash run ...` under the name uv is a process "uv run ..."
    odd = b"backend: TkAgg\ntext.usetex: True\nfont.family: No Such Font\nno.such.key: 1\n"
    return matplotlibrc(folder, odd)


NOBODY = (
    *("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"),
    *("--inh-caps=+dac_override,+dac_read_search", "--ambient-caps=+dac_override,+dac_read_search"),
)
UV = ("bash", "-c", 'exec -a uv bash run "$@"', "uv")


@dataclass(frozen=True)
class Case:
    """A command in an environment.

    said:        what the first line of stderr must hold of one that is refused; "" of a study that ends 0
    environment: variables added to those of this process; "{outside}" is filled in
    cwd:         makes the current folder what the case is about, and returns it
    argv:        flags after `FLAGS`; "{outside}" is filled in
    before:      words of the command in front of Python's
    clean:       whether the variables are all that there are
    """

    said: str
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: Callable[[Path], Path] = lambda folder: folder
    output: str = "results"
    argv: Sequence[str] = ("--tracking-uri", "none")
    before: Sequence[str] = ()
    clean: bool = False


def cases() -> dict[str, Case]:
    """Return the case that ends 0, without a user where the system lets us, and those that are refused."""
    odd, tracked = "what?now=1&x %41 #1 'q' \"d\"", ("--tracking-uri", "sqlite:///{outside}/mlflow.db")
    before, dead = (*(NOBODY if can_be_nobody() else ()), *UV), "127.0.0.1:9"
    drawn = "wanted to draw figures, which fails here (UnicodeDecode"
    database = "wanted MLflow's database at a path without ?, got "
    return {
        "variables, odd names, uv run in a large folder with a package adalayers": Case(
            "", IGNORED | ASCII, all_at_once, odd, tracked, before, clean=can_be_nobody()
        ),
        "a current folder that is gone": Case("wanted a current folder, this one is gone", cwd=gone),
        "a matplotlibrc that is no text": Case(drawn, cwd=matplotlibrc),
        "? in the output": Case(database, output="what?now=1", argv=()),
        "a path that ASCII cannot read": Case("set PYTHONUTF8=1, or name another", ASCII, output="jürgen"),
        "a dead cluster": Case(f"wanted a Ray cluster as --address {dead}", {"RAY_ADDRESS": dead}),
    }


def can_be_nobody() -> bool:
    return shutil.which("setpriv") is not None and hasattr(os, "getuid") and os.getuid() == 0


def run(case: Case, folder: Path, shared: Path) -> str | None:
    """Run a case; return what is wrong with it, None where nothing is."""
    inside, outside = folder / "inside", folder / "outside"
    for made in (inside, outside):
        made.mkdir(parents=True)
        made.chmod(0o777)
    cwd, output = case.cwd(outside), inside / case.output
    own = {name: value.format(outside=outside) for name, value in case.environment.items()}
    environment = {"PATH": os.defpath} if case.clean else {**os.environ, "PYTHONPATH": ""}
    command = [*case.before, sys.executable, "-B", str(SCRIPT), *FLAGS]
    command += [word.format(outside=outside) for word in case.argv]
    command += ["--backbone", str(shared / "tiny"), "--dataset", str(shared / "echo")]
    command += ["--output", str(output), "--cache-dir", str(folder / "cache")]
    if cwd != outside:  # gone before Python starts, as after `rm -r` in another terminal
        command = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *command]
    how = {"cwd": cwd, "env": environment | own, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, **how) as process:
        try:
            said = process.communicate(timeout=SECONDS)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # in good order
            return f"no end within {SECONDS} s: {process.communicate()[1].decode(errors='replace')[-3000:]}"
    if "Traceback" in said:
        return f"a traceback: {said[-3000:]}"
    if case.said:
        lines = [line for line in said.splitlines() if line.startswith("error: ")]
        if process.returncode != BAD_INPUT or len(lines) != 1 or case.said not in lines[0]:
            return f"exit code {process.returncode}: {said}"
        left = [path for path in inside.rglob("*") if path.name in STUDY_FILES]
        return f"it had begun: {left}" if left else None
    if process.returncode != DONE:
        return f"exit code {process.returncode}: {said[-3000:]}"
    return next(wrong(output, inside, outside), None)


def wrong(output: Path, inside: Path, outside: Path) -> Iterator[str]:
    """Yield what is wrong with the files of a study that ended 0."""
    study = output / "alpha_lambda" / "tiny-echo"
    if missing := STUDY_FILES - {path.name for path in study.iterdir()}:
        yield f"without {missing}"
    results = load(study)
    if results.problems or not (results.trials["status"] == "completed").all():
        yield f"problems {results.problems}, trials {results.trials['status'].tolist()}"
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    if results.study.environment.git.commit != (head.strip() or None):
        yield f"of another commit: {results.study.environment.git}"
    if [path.name for path in inside.iterdir()] != [output.name]:
        yield f"beside its folder: {[path.name for path in inside.iterdir()]}"
    if not list(outside.glob("mlartifacts/alpha_lambda/*/artifacts/report.md")):
        yield "not in MLflow"


def check(root: Path) -> None:
    """Raises `Wrong` for whatever is."""
    root.chmod(0o755)
    world(root / "shared")
    problems = {}
    for number, (name, case) in enumerate(cases().items()):
        if problem := run(case, root / str(number), root / "shared"):
            problems[name] = problem
        print(f"{name}: {problem or 'ok'}", flush=True)
    if not can_be_nobody():
        print("SKIPPED: a user without a passwd entry (that needs root and setpriv)")
    if problems:
        raise Wrong(str(problems))


if __name__ == "__main__":
    sys.exit(in_folder(parser_of("environment", __doc__).parse_args().folder, check))
