"""A small study killed again and again at random moments, and continued by the same command each time:

    python -m tests.soak [--kills 30] [--seed 0] [--folder DIR]

It is run undisturbed once. Then it is run in rounds until so many kills are spent: SIGKILL to the driver, to it and all
that Ray has started, in the midst of a write, while hidden states are computed, to a worker, to Ray's own processes;
and SIGTERM, while Ray starts and ends too. At the end of every round rows, curves and predictions must equal the
undisturbed run's, times aside, and nothing may be left behind. It takes a while (figures
of the last run: docs/reliability.md) and prints a table of the kills.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import psutil

from adalayers.results.files import HISTORY, PREDICTIONS, TRIALS, read_trials
from adalayers.storage.folder import Folder
from tests.helpers.long_form import Wrong, in_folder, parser_of
from tests.helpers.studying import command, world

FLAGS = (
    *("--set", "alpha=8", "entropy_weight=0", "--search", "grid", "--scheduler", "fifo", "--trials", "4"),
    *("--seeds", "12", "--epochs", "8", "--tracking-uri", "none"),
)
"""A search whose trials and outcome do not depend on the order in which they end."""
RUNS = (
    *[("driver",)] * 6,
    *[("all",)] * 3,
    *[("write",)] * 5,
    *[("extraction",)] * 4,
    *[("worker", "driver")] * 2,
    *[("worker", "worker", "term")] * 1,
    *[("raylet",)] * 3,
    *[("gcs_server",)] * 1,
    *[("term",)] * 2,
    *[("starting",)] * 2,
    *[("ending",)] * 1,
)
"""What is killed in a run, one after the other; the last ends the run."""
ENDS_AS = {"raylet": 130, "gcs_server": 130, "term": 130, "starting": 130, "ending": 130}
"""Exit codes; of other kills that of SIGKILL."""
PATIENCE = 600.0
"""Seconds after which a run that has not ended, or not begun its trials, counts as hanging."""


@dataclass
class Kill:
    """One kill: what, in which run, how long after its start, how many trials had ended, and what followed."""

    what: str
    place: str
    seconds: float
    ended: int
    outcome: str


class Study:
    """The study in one output folder, run by its user's command in a process group of its own."""

    def __init__(self, made: dict[str, Path], root: Path, name: str, flags: Sequence[str] = FLAGS):
        self.output = root / name / "results"
        self.folder = Folder(self.output / "alpha_lambda" / "tiny-echo")
        self.cache, self.log = root / name / "cache", root / f"{name}.log"
        self._argv = command(made, self.output, *flags)
        self._environment = {
            **os.environ,
            "TMPDIR": str(root / "t"),
            "OMP_NUM_THREADS": "1",
            "RAY_worker_niceness": "0",
        }
        self.runs = 0

    def start(
        self, environment: Mapping[str, str] | None = None, at: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """Start the user's command; `at`: code to run it by, and that code's arguments."""
        self.runs += 1
        python, *script = self._argv
        with self.log.open("a") as log:
            log.write(f"--- run {self.runs}\n")
            log.flush()
            return subprocess.Popen(
                [python, *(["-c", *at] if at else []), *script],
                stdout=log,
                stderr=log,
                env={**(environment or self._environment), "TMPDIR": self._environment["TMPDIR"]},
                start_new_session=True,
            )

    def said(self) -> str:
        """Return what the last run has said so far."""
        return self.log.read_text(errors="replace").rpartition("--- run ")[2]

    def statuses(self) -> collections.Counter[str]:
        if not self.folder.exists(TRIALS):
            return collections.Counter()
        return collections.Counter(read_trials(self.folder)["status"])

    def ended(self) -> int:
        return sum(n for status, n in self.statuses().items() if status not in ("unfinished", "failed"))


def waited(process: subprocess.Popen[bytes], until: Callable[[], object], every: float = 0.05) -> bool:
    """Return whether `until` came true before the process ended. Raises `Wrong` where neither happens in time."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None:
        if until():
            return True
        if time.monotonic() > end:
            raise Wrong(f"a run hangs (process {process.pid})")
        time.sleep(every)
    return False


def children(process: subprocess.Popen[bytes], name: str = "") -> list[psutil.Process]:
    """Return the processes below a driver, those of a name alone; "worker" is one that runs trials."""
    found = []
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            trains = "".join(child.cmdline()[:1]).startswith("ray::ImplicitFunc")
            title = "worker" if trains else child.name()
            if name in ("", title):
                found.append(child)
    return found


MOMENTS: dict[str, tuple[Callable[[Study], object], float, signal.Signals]] = {
    "extraction": (lambda study: any(study.cache.glob("*/encoder_00.npy")), 0.1, signal.SIGKILL),
    # Ray starts, and takes SIGTERM for itself.
    "starting": (lambda study: "hidden states:" in study.said(), 4.0, signal.SIGTERM),
    # Ray ends.
    "ending": (lambda study: re.search(r"\[(\d+)/\1\]", study.said()), 2.0, signal.SIGTERM),
}
"""Kind of kill -> what it waits for, at most how many seconds it then waits, and the signal."""


def strike(what: str, study: Study, process: subprocess.Popen[bytes], rng: random.Random) -> bool:
    """Wait for a moment of this kind and kill; return whether there was such a moment."""
    if what in MOMENTS:
        reached, seconds, number = MOMENTS[what]
        if not waited(process, lambda: reached(study), every=0.001 if what == "extraction" else 0.05):
            return False
        time.sleep(rng.uniform(0, seconds))
        process.send_signal(number)
        return True
    if not waited(process, lambda: "at a time" in study.said()):
        return False
    if what == "write":
        skip = rng.randrange(6)

        def writes() -> bool:
            nonlocal skip
            seen = any(path.name.endswith(".partial") for path in study.folder.path().glob(".*"))
            skip -= seen
            return skip < 0 and seen

        if not waited(process, writes, every=0.0):
            return False
        process.kill()
        return True
    begun, pause = time.monotonic(), rng.uniform(0, 6)
    if not waited(process, lambda: time.monotonic() - begun > pause):
        return False
    if what == "driver":
        process.kill()
    elif what == "term":
        process.send_signal(signal.SIGTERM)
    else:
        if what == "all":
            struck = [psutil.Process(process.pid), *children(process)]
        elif waited(process, lambda: children(process, what)):
            struck = children(process, what)[:1]
        else:
            return False
        for target in struck:
            with contextlib.suppress(psutil.Error):  # it was quicker
                target.kill()
    return True


def disturb(study: Study, round: int, runs: Iterator[tuple[str, ...]], rng: random.Random) -> Iterator[Kill]:
    """Run the study to its end, disturbed by one of `runs` at a time while there are any; yield each kill."""
    while True:
        kinds = next(runs, ())
        if "extraction" in kinds:
            shutil.rmtree(study.cache, ignore_errors=True)
        process, began = study.start(), time.monotonic()
        for left, what in zip(reversed(range(len(kinds))), kinds, strict=True):
            if not strike(what, study, process, rng):
                break  # all trials had ended before
            seconds, ended, last = time.monotonic() - began, study.ended(), left == 0
            if last:
                process.wait(PATIENCE)
            outcome = f"exit {process.returncode}" if last else "went on"
            yield Kill(what, f"round {round}, run {study.runs}", seconds, ended, outcome)
        wanted = {0, ENDS_AS.get(kinds[-1], -signal.SIGKILL)} if kinds else {0}
        if process.wait(PATIENCE) not in wanted:
            raise Wrong(f"a run ended with {process.returncode}, not one of {wanted}:\n{study.said()}")
        if "Traceback" in study.said() and not {"worker", "raylet", "gcs_server", "all"} & {*kinds}:
            raise Wrong(f"a run ended in a traceback:\n{study.said()}")
        if process.returncode == 0 and not study.statuses().keys() & {"failed", "unfinished"}:
            return


def differences(study: Study, whole: Study) -> list[str]:
    """Return what differs between two studies that have ended, times aside."""
    found = []
    for name, drop in ((TRIALS, ["seconds"]), (HISTORY, []), (PREDICTIONS, [])):
        frames = []
        for folder in (study.folder, whole.folder):
            frame = read_trials(folder) if name == TRIALS else folder.read_parquet(name)
            order = [column for column in ("trial_id", "step", "epoch", "split", "index") if column in frame]
            frames.append(frame.drop(columns=drop).sort_values(order).reset_index(drop=True))
        try:
            pd.testing.assert_frame_equal(*frames, check_exact=True, check_like=True)
        except AssertionError as error:
            found.append(f"{name}: {' '.join(str(error).split())[:300]}")
    return found


def left_behind(root: Path) -> list[str]:
    """Return the scratch folders, and the processes with anything in them, that are there although no run is."""
    folders = [path.name for path in (root / "t").glob("adalayers-ray-*")]
    processes = []
    for process in psutil.process_iter(["cmdline"]):
        if str(root / "t") in " ".join(process.info["cmdline"] or []):
            processes.append(f"process {process.pid}")
    return [*folders, *processes]


def soak(root: Path, kills: int, seed: int) -> None:
    """Raises `Wrong` for whatever is."""
    (root / "t").mkdir(exist_ok=True)
    made, rng = world(root), random.Random(seed)
    whole = Study(made, root, "undisturbed")
    began = time.monotonic()
    if (code := whole.start().wait(PATIENCE)) != 0:
        raise Wrong(f"the undisturbed run ended with {code}:\n{whole.said()}")
    print(f"undisturbed: {whole.ended()} trials in {time.monotonic() - began:.0f} s")
    print(f"{'kill':>4}  {'of':<10}  {'where':<16}  {'after':>7}  {'ended':>5}  outcome", flush=True)
    runs = _shuffled(rng)
    done: list[Kill] = []
    for number in itertools.count(1):
        study, before = Study(made, root, f"round-{number}"), len(done)
        for kill in disturb(study, number, itertools.takewhile(lambda _: len(done) < kills, runs), rng):
            done.append(kill)
            told = f"{kill.what:<10}  {kill.place:<16}  {kill.seconds:6.1f}s  {kill.ended:>5}  {kill.outcome}"
            print(f"{len(done):>4}  {told}", flush=True)
        if wrong := [*differences(study, whole), *left_behind(root)]:
            raise Wrong("; ".join(wrong))
        print(f"round {number}: {study.ended()} trials, all files equal, nothing left behind", flush=True)
        if len(done) >= kills:
            break
        if len(done) == before:
            raise Wrong("a round ended without a kill: the study is too quick for this machine")
    said = ", ".join(
        f"{n} {what}" for what, n in collections.Counter(kill.what for kill in done).most_common()
    )
    print(
        f"{len(done)} kills ({said}) in {time.monotonic() - began:.0f} s: all files equal the undisturbed run's"
    )


def _shuffled(rng: random.Random) -> Iterator[tuple[str, ...]]:
    while True:
        yield from rng.sample(RUNS, len(RUNS))


def main(argv: list[str] | None = None) -> int:
    parser = parser_of("soak", __doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args(argv)
    return in_folder(flags.folder, lambda root: soak(root, flags.kills, flags.seed))


if __name__ == "__main__":
    sys.exit(main())
