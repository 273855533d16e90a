"""A small study on two Ray nodes, each with processes and a temporary folder of its own, and a token:

    python -m tests.cluster [--folder DIR]

Without the token and with another one it must end in exit 2. It is then run undisturbed on a Ray of its own, and on
the cluster, where a worker of the second node is killed, and then that node and the driver, which the head had; the
node is started again, and the same command goes on from there. Rows, curves and predictions must equal the undisturbed
run's, times aside. Both nodes are on this machine, so that they share its disk. It prints what was done, and takes a
few minutes on two quiet cores.
"""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from adalayers.console.command_line import BAD_INPUT, DONE
from tests.helpers.long_form import Wrong, free_port, in_folder, parser_of
from tests.helpers.small_study import Study, children, differences, waited
from tests.helpers.studying import world

RAY = Path(sys.executable).with_name("ray")
FLAGS = (
    *("--set", "alpha=8", "entropy_weight=0", "--trials", "0", "--seeds", "30", "--epochs", "8"),
    *("--tracking-uri", "none", "--max-concurrent", "2", "--retries", "3"),
)
START_SECONDS = 120.0


# Both nodes have one address: on machines of their own a driver takes its machine's node by itself.
AT_NODE = """
import functools, runpy, sys
import ray
init, folder = ray.init, sys.argv.pop(1)
@functools.wraps(init)
def at_node(*arguments, **named):
    joined = init(*arguments, **named, _temp_dir=folder)
    print("driver at", ray._private.worker._global_node.get_session_dir_path(), file=sys.stderr, flush=True)
    return joined
ray.init = at_node
sys.argv.pop(0)
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Node:
    """One node of the cluster: `ray start --block`, and all that it starts."""

    def __init__(self, name: str, root: Path, environment: Mapping[str, str], *which: str):
        self.log, self.folder = root / f"{name}.log", root / name
        self.folder.mkdir()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [str(RAY), "start", "--block", "--num-cpus=1", f"--temp-dir={self.folder}", *which],
                stdout=log,
                stderr=log,
                env=dict(environment),
                start_new_session=True,
            )
        if not waited(self.process, lambda: "block forever" in self.log.read_text(), every=0.2):
            raise Wrong(f"{name} did not start:\n{self.log.read_text()}")

    def kill(self) -> None:
        for process in children(self.process):
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.kill()
        self.process.wait(START_SECONDS)


@contextlib.contextmanager
def running(node: Node) -> Iterator[Node]:
    try:
        yield node
    finally:
        node.kill()


def refused(study: Study, environment: Mapping[str, str], *, says: str) -> float:
    """Run a study that must end in exit 2, saying so; return the seconds it took."""
    began = time.monotonic()
    process = study.start(environment)
    code, seconds = process.wait(START_SECONDS), time.monotonic() - began
    if code != BAD_INPUT or says not in study.said() or "Traceback" in study.said():
        raise Wrong(f"wanted exit {BAD_INPUT} and {says!r}, got exit {code}:\n{study.said()}")
    return seconds


def check(root: Path) -> None:
    """Raises `Wrong` for whatever is."""
    (root / "t").mkdir(exist_ok=True)
    made, port = world(root), free_port()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_A")}
    plain |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    plain |= {"HOME": str(root), "OMP_NUM_THREADS": "1"}
    token = plain | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    whole = Study(made, root, "undisturbed", FLAGS)
    if (code := whole.start().wait()) != DONE:
        raise Wrong(f"the undisturbed run ended with {code}:\n{whole.said()}")
    print(f"undisturbed, on a Ray of its own: {whole.ended()} trials", flush=True)
    address = f"127.0.0.1:{port}"
    study = Study(made, root, "cluster", (*FLAGS, "--address", address))
    where = ("--head", f"--port={port}", "--include-dashboard=false")
    with running(Node("head", root, token, *where)) as head:
        other = token | {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
        for what, environment in (("no token", plain), ("another token", other)):
            seconds = refused(study, environment, says="RAY_AUTH_TOKEN")
            print(f"{what}: exit 2 after {seconds:.1f} s", flush=True)
        second = Node("second", root, token, f"--address={address}")
        try:
            process = study.start(token, at=(AT_NODE, str(head.folder)))
            _until(process, study, lambda: study.ended() >= 2)
            workers: list[psutil.Process] = []  # the next moment there may be none
            _until(process, study, lambda: workers.extend(children(second.process, "worker")) or workers)
            workers[0].kill()
            print(f"a worker of the second node killed after {study.ended()} trials", flush=True)
            _until(process, study, lambda: study.ended() >= 12)
            second.kill()
            print(f"the second node killed after {study.ended()} trials", flush=True)
            _until(process, study, lambda: study.ended() >= 20)
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"the driver killed after {study.ended()} trials", flush=True)
            second = Node("again", root, token, f"--address={address}")
            process = study.start(token, at=(AT_NODE, str(second.folder)))
            if (code := process.wait()) != DONE:
                raise Wrong(f"the last run ended with {code}:\n{study.said()}")
            if f"driver at {second.folder}" not in study.said():
                raise Wrong(f"the last run was not driven from the second node:\n{study.said()}")
        finally:
            second.kill()
    if wrong := differences(study, whole):
        raise Wrong("; ".join(wrong))
    print(f"continued from the second node: {study.ended()} trials, all files equal the undisturbed run's")


def _until(process: subprocess.Popen[bytes], study: Study, reached: object) -> None:
    if not waited(process, reached):  # type: ignore[arg-type]
        raise Wrong(f"the study ended before it was disturbed (exit {process.returncode}):\n{study.said()}")


def main(argv: list[str] | None = None) -> int:
    flags, began = parser_of("cluster", __doc__).parse_args(argv), time.monotonic()
    code = in_folder(flags.folder, check)
    if not code:
        print(f"{time.monotonic() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
