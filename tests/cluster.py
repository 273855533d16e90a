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
import subprocess
import sys
from collections.abc import Callable, Mapping
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


class Node(contextlib.AbstractContextManager["Node"]):
    """One node of the cluster: `ray start --block`, and all that it starts."""

    def __init__(self, name: str, root: Path, environment: Mapping[str, str], *which: str):
        self.log, self.folder = root / f"{name}.log", root / name
        self.folder.mkdir()
        with self.log.open("w") as log:
            argv = [str(RAY), "start", "--block", "--num-cpus=1", f"--temp-dir={self.folder}", *which]
            own = {"env": dict(environment), "start_new_session": True}
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, **own)
        if not waited(self.process, lambda: "block forever" in self.log.read_text(), every=0.2):
            raise Wrong(f"{name} did not start:\n{self.log.read_text()}")

    def __exit__(self, *error: object) -> None:
        self.kill()

    def kill(self) -> None:
        for process in children(self.process):
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.kill()
        self.process.wait(START_SECONDS)


def finished(study: Study, process: subprocess.Popen[bytes]) -> None:
    if (code := process.wait()) != DONE:
        raise Wrong(f"a run ended with {code}:\n{study.said()}")


def check(root: Path) -> None:
    """Raises `Wrong` for whatever is."""
    made, port = world(root), free_port()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_A")}
    plain |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    plain |= {"HOME": str(root), "OMP_NUM_THREADS": "1"}
    token = plain | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    whole = Study(made, root, "undisturbed", FLAGS)
    finished(whole, whole.start())
    print(f"undisturbed, on a Ray of its own: {whole.ended()} trials", flush=True)
    address = f"127.0.0.1:{port}"
    study = Study(made, root, "cluster", (*FLAGS, "--address", address))
    where = ("--head", f"--port={port}", "--include-dashboard=false")
    with contextlib.ExitStack() as nodes:
        head = nodes.enter_context(Node("head", root, token, *where))
        other = token | {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
        for what, environment in (("no token", plain), ("another token", other)):
            code = study.start(environment).wait(START_SECONDS)
            if code != BAD_INPUT or "RAY_AUTH_TOKEN" not in study.said() or "Traceback" in study.said():
                raise Wrong(f"wanted exit {BAD_INPUT} and RAY_AUTH_TOKEN, got exit {code}:\n{study.said()}")
            print(f"{what}: exit 2", flush=True)
        second = nodes.enter_context(Node("second", root, token, f"--address={address}"))
        process = study.start(token, at=(AT_NODE, str(head.folder)))

        def until(reached: Callable[[], object], then: Callable[[], object], what: str) -> None:
            if not waited(process, reached):
                raise Wrong(f"the study ended before {what} was killed:\n{study.said()}")
            then()
            print(f"{what} killed after {study.ended()} trials", flush=True)

        workers: list[psutil.Process] = []  # the next moment there may be none

        def found() -> bool:
            if study.ended() >= 2:
                workers.extend(children(second.process, "worker"))
            return bool(workers)

        until(found, lambda: workers[0].kill(), "a worker of the second node")
        until(lambda: study.ended() >= 12, second.kill, "the second node")
        until(lambda: study.ended() >= 20, process.kill, "the driver")
        process.wait()
        again = nodes.enter_context(Node("again", root, token, f"--address={address}"))
        finished(study, study.start(token, at=(AT_NODE, str(again.folder))))
        if f"driver at {again.folder}" not in study.said():
            raise Wrong(f"the last run was not driven from the second node:\n{study.said()}")
    if wrong := differences(study, whole):
        raise Wrong("; ".join(wrong))
    print(f"continued from the second node: {study.ended()} trials, all files equal the undisturbed run's")


if __name__ == "__main__":
    sys.exit(in_folder(parser_of("cluster", __doc__).parse_args().folder, check))
