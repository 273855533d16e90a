"""A small study that goes wrong again and again, and is continued by the same command each time:

    python -m tests.soak [--faults 1000] [--first N] [--seed 0] [--folder DIR]

Faults (`tests/helpers/faults.py`): signals to the driver and to each kind of Ray's processes, stopped and hanging
ones, a full disk and one that can only be read (where mounts are allowed), a bit flipped in stored hidden states,
checkpoints and results, a clock that jumps, a tracker that dies, a second driver. Studies of single trials, of groups
over one pass of the base model, of groups whose steps are one, and with a tracker take turns. Whenever one has ended,
its rows, curves, predictions and claims must equal those of the same study that nothing disturbed, times aside
(of groups whose steps are one: to rounding), and nothing may be left behind. Where a run says that what a
damaged file held is lost, the file is put back from a copy, as a user would.

It prints a line per run; the last line is JSON: faults, first, seconds, and how many there were of each kind. Parts
of other `--first` draw other moments: their sums are those of one long run.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.dead_server import Server
from tests.helpers.faults import BEFORE, ENDS, WHILE, Fault, Run, small_disk
from tests.helpers.long_form import Wrong, in_folder, parser_of
from tests.helpers.small_study import FLAGS, PATIENCE, Study, differences, left_behind, waited
from tests.helpers.studying import world

STUDIES = {
    "alone": (),
    "group, one pass": ("--group", "3", "--features", "live"),
    "tracked": (),
    "group, one step": ("--group", "4"),
}
"""What kinds of studies take turns; flags."""
WITHOUT_FIGURES = """
import runpy, sys
import reports.write
reports.write.images = lambda *_: {"png": b"", "svg": b""}
sys.argv.pop(0)
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Soak:
    """A part of the faults: studies, one after the other, until so many have been made."""

    def __init__(self, root: Path, faults: int, first: int, seed: int):
        self.root, self.faults, self.rng = root, faults, random.Random(f"{seed} {first}")
        (root / "t").mkdir(exist_ok=True)
        self.made, self.server = world(root), Server(root)
        self.done: collections.Counter[str] = collections.Counter()
        self._whole: dict[str, Study] = {}
        self._decks = [_shuffled(kinds, self.rng) for kinds in (BEFORE, WHILE, ENDS)]

    def run(self) -> None:
        """Raises `Wrong` for whatever is."""
        for number, kind in enumerate(itertools.cycle(STUDIES), 1):
            before = self.done.total()
            name = f"{number}-{kind.replace(', ', '-').replace(' ', '-')}"
            study = self._study(kind, name)
            with small_disk(study.output.parent), self._tracker(kind) as server:
                self._disturb(study, server)
                rounded = kind == "group, one step"
                wrong = [
                    *differences(study, self._undisturbed(kind), rounded=rounded),
                    *left_behind(self.root),
                ]
                if wrong:
                    raise Wrong(f"{name}: " + "; ".join(wrong))
                print(f"{name}: {study.ended()} trials, all files equal, nothing left behind", flush=True)
            if self.done.total() >= self.faults:
                return
            if self.done.total() == before:
                raise Wrong("a study ended without a fault: it is too quick for this machine")

    def _study(self, kind: str, name: str, *, hangs: bool = True) -> Study:
        """Return a study of a kind. `hangs`: whether its workers will, and are to be killed soon."""
        # A trial of the search that fails is no longer the same search: each is tried again as often as it takes.
        flags = [*FLAGS, "--max-concurrent", "1", "--retries", "50", *STUDIES[kind]]
        if hangs:
            flags += ["--hang-minutes", "0.2"]
        if kind == "tracked":
            flags[flags.index("none")] = self.server.uri
        return Study(self.made, self.root, name, flags)

    def _undisturbed(self, kind: str) -> Study:
        """Return the study that nothing disturbed, run where it has not been."""
        flags = STUDIES[kind]
        if (name := "whole" + "".join(flags).replace("--", "-")) not in self._whole:
            study = self._whole[name] = self._study("alone" if kind == "tracked" else kind, name, hangs=False)
            if (code := study.start(at=(WITHOUT_FIGURES,)).wait(PATIENCE)) != 0:
                raise Wrong(f"the undisturbed run ended with {code}:\n{study.said()}")
        return self._whole[name]

    @contextlib.contextmanager
    def _tracker(self, kind: str) -> Iterator[Server | None]:
        if kind != "tracked":
            yield None
            return
        try:
            yield self.server
        finally:
            self.server.kill()

    def _disturb(self, study: Study, server: Server | None) -> None:
        """Run a study again and again, with faults while there are any left, until it has ended."""
        while True:
            run, left = Run(study, self.rng, server), self.faults - self.done.total()
            if server is not None and not server.lives():
                server.start()
            before, during, last = (
                list(itertools.islice(deck, most))
                for deck, most in zip(self._decks, (min(1, left), min(3, left), min(1, left)), strict=True)
            )
            struck = [name for name in before if BEFORE[name].make(run)]
            if "SIGKILL in extraction" in last:
                shutil.rmtree(study.cache, ignore_errors=True)
            environment, began = {**study.environment, **run.environment}, time.monotonic()
            run.process = study.start(environment, at=(WITHOUT_FIGURES,))
            if last and last[0] in ("SIGKILL in extraction", "a signal at the start"):
                during = []
            elif run.damaged is None or not self._refused(run):
                run.begun()
            struck += [name for name in during if run.process.poll() is None and WHILE[name].make(run)]
            if last:  # or another one, where there is no chance of it
                some = itertools.chain(last, itertools.islice(self._decks[2], 5))
                struck += next(
                    ([name] for name in some if run.process.poll() is None and ENDS[name].make(run)), []
                )
            self._ended(run, struck)
            self.done.update(struck)
            seconds = time.monotonic() - began
            told = f"{study.ended():>3} trials  exit {run.process.returncode:>3}  {', '.join(struck)}"
            print(f"{self.done.total():>4}  {seconds:5.1f} s  {told}", flush=True)
            if run.process.returncode == 0 and not study.statuses().keys() & {"failed", "unfinished"}:
                return

    def _refused(self, run: Run) -> bool:
        """Return whether a run has said that what a damaged file held is lost; the file is then put back."""
        run.begun()
        said = run.study.said()
        if not (run.process.poll() == 2 or "lost" in said):
            return False
        if str(run.damaged) not in said:
            raise Wrong(f"{run.damaged} was damaged, and is not named:\n{said}")
        run.process.kill()
        run.process.wait()
        shutil.rmtree(run.study.folder.path())
        shutil.copytree(run.copy, run.study.folder.path())
        return True

    def _ended(self, run: Run, struck: list[str]) -> None:
        """Wait for the end of a run. Raises `Wrong` where it ends otherwise than its faults allow."""
        if not struck or run.process.poll() is None:
            waited(run.process, lambda: False)
        faults = [self._fault(name) for name in struck]
        wanted = {0, *(code for fault in faults for code in fault.codes)}
        if run.damaged is not None:
            wanted.add(-signal.SIGKILL)
        said, code = run.study.said(), run.process.returncode
        if code not in wanted:
            raise Wrong(f"after {struck} a run ended with {code}, not one of {wanted}:\n{said}")
        if "Traceback" in said and not any(fault.noisy for fault in faults):
            raise Wrong(f"after {struck} a run ended in a traceback:\n{said}")

    @staticmethod
    def _fault(name: str) -> Fault:
        return {**BEFORE, **WHILE, **ENDS}[name]


def _shuffled(kinds: Mapping[str, Fault], rng: random.Random) -> Iterator[str]:
    while True:
        yield from rng.sample(list(kinds), len(kinds))


def soak(root: Path, faults: int, first: int, seed: int) -> None:
    """Raises `Wrong` for whatever is."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # else under nohup the studies too would not hear it
    began, part = time.monotonic(), Soak(root, faults, first, seed)
    part.run()
    kinds = dict(part.done.most_common())
    seconds = round(time.monotonic() - began)
    print(json.dumps({"faults": part.done.total(), "first": first, "seconds": seconds, "kinds": kinds}))


def main(argv: list[str] | None = None) -> int:
    parser = parser_of("soak", __doc__)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of this part's first fault")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args(argv)
    return in_folder(flags.folder, lambda root: soak(root, flags.faults, flags.first, flags.seed))


if __name__ == "__main__":
    sys.exit(main())
