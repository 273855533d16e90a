"""The MLflow server of docs/tracking.md as a process that can be killed."""

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.helpers.documented import ROOT
from tests.helpers.long_form import Wrong, free_port
from tests.helpers.small_study import waited


class Server:
    """The MLflow server of docs/tracking.md, at a port of its own; `start` it again and it has what it had."""

    def __init__(self, root: Path):
        self._address, self._root = ("127.0.0.1", port := free_port()), root
        self.uri = f"http://127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None
        (root / "results").mkdir(exist_ok=True)
        lines = (ROOT / "docs" / "tracking.md").read_text().splitlines()
        (words,) = (shlex.split(line) for line in lines if line.startswith("mlflow server "))
        self._argv = [sys.executable, "-m", *words, "--port", str(port)]

    def start(self) -> None:
        with (self._root / "server.log").open("a") as log:
            environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
            own = {"cwd": self._root, "env": environment, "start_new_session": True}
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log, **own)
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
