"""Two small studies at once on one MLflow server that dies in the midst of them, and comes back:

    python -m tests.dead_server [--folder DIR]

Both studies must end as if nothing were, and say what is not tracked; once the server is back, `adalayers
sync` must send what is missing, once, and neither study must have a run of the other's. The experiment must be one of
models that are trained, with a dataset and a source in every run. It takes a few minutes on two quiet cores.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from adalayers.command.main import DONE
from adalayers.results.files import read_trials
from tests.helpers.documented import shown
from tests.helpers.long_form import Wrong, free_port, in_folder, parser_of
from tests.helpers.small_study import PATIENCE, Study, waited
from tests.helpers.studying import ROOT, world

FLAGS = (
    *("--set", "alpha=8", "entropy_weight=0", "--trials", "0", "--seeds", "8", "--epochs", "8"),
    *("--max-concurrent", "1"),
)
KIND = "custom_model_development"


class Server:
    """The MLflow server of docs/tracking.md, at a port of its own; `start` it again and it has what it had."""

    def __init__(self, root: Path):
        self._address, self._root = ("127.0.0.1", port := free_port()), root
        self.uri = f"http://127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None
        (root / "results").mkdir(exist_ok=True)
        words = shown("docs/tracking.md", "mlflow server")
        self._argv = [sys.executable, "-m", *words, "--port", str(port)]

    def start(self) -> None:
        with (self._root / "server.log").open("a") as log:
            self._process = subprocess.Popen(
                self._argv,
                stdout=log,
                stderr=log,
                cwd=self._root,
                env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
                start_new_session=True,
            )
        if not waited(self._process, self._answers, every=0.2):
            raise Wrong(f"the server did not start: see {self._root}/server.log")

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(self._address, timeout=1).close()
            return True
        return False

    def lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self._process is not None and self.lives():
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def runs(uri: str) -> tuple[dict[str, str], dict[str, list[Any]]]:
    """Return the experiment's tags, and study id -> its nested runs."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("alpha_lambda")
    if experiment is None:
        raise Wrong("the server has no such experiment")
    nested: dict[str, list[Any]] = {}
    for run in client.search_runs([experiment.experiment_id], max_results=1000):
        if "mlflow.source.name" not in run.data.tags or not run.inputs.dataset_inputs:
            raise Wrong(f"run {run.info.run_name} has no source or no dataset")
        if run.data.tags["adalayers.kind"] == "trial":
            nested.setdefault(run.data.tags["adalayers.study"], []).append(run)
    return dict(experiment.tags), nested


def check(root: Path) -> None:
    """Raises `Wrong` for whatever is."""
    (root / "t").mkdir(exist_ok=True)
    made, server = world(root), Server(root)
    server.start()
    flags = (*FLAGS, "--tracking-uri", server.uri)
    studies = [
        Study(made, root, name, (*flags, "--seed", str(seed))) for seed, name in enumerate(("one", "two"))
    ]
    began = time.monotonic()
    processes = [study.start() for study in studies]
    if not waited(processes[0], lambda: studies[0].ended() >= 6):
        raise Wrong(f"the study ended too soon:\n{studies[0].said()}")
    server.kill()
    print(f"server killed after {[study.ended() for study in studies]} trials", flush=True)
    for study, process in zip(studies, processes, strict=True):
        if (code := process.wait(PATIENCE)) != DONE or "Traceback" in study.said():
            raise Wrong(f"a study without a server ended with {code}:\n{study.said()}")
        if "adalayers sync" not in study.said():
            raise Wrong(f"a study did not say that something is not tracked:\n{study.said()}")
    print(
        f"both ended after {time.monotonic() - began:.0f} s: {[study.ended() for study in studies]} trials",
        flush=True,
    )
    server.start()
    try:
        for _ in range(2):
            for study in studies:
                argv = [
                    sys.executable,
                    "-m",
                    "adalayers",
                    "sync",
                    study.folder.uri,
                    "--tracking-uri",
                    server.uri,
                ]
                done = subprocess.run(
                    argv, capture_output=True, text=True, cwd=ROOT, check=False, timeout=PATIENCE
                )
                if done.returncode:
                    raise Wrong(f"sync ended with {done.returncode}: {done.stderr}")
                print(done.stdout.strip().replace(server.uri, "the server"), flush=True)
        tags, nested = runs(server.uri)
    finally:
        server.kill()
    if tags.get("mlflow.experimentKind") != KIND:
        raise Wrong(f"the experiment is none of models that are trained: {tags}")
    for study in studies:
        key = study.folder.read_json("study.json")["id"]
        found = sorted(run.data.tags["adalayers.trial_id"] for run in nested.get(key, []))
        if found != sorted(read_trials(study.folder)["trial_id"]):
            raise Wrong(f"{study.folder.uri} has other trials than its runs on the server")
    print("every trial of both studies has one run, with its study, dataset and source")


def main(argv: list[str] | None = None) -> int:
    flags = parser_of("dead_server", __doc__).parse_args(argv)
    return in_folder(flags.folder, check)


if __name__ == "__main__":
    sys.exit(main())
