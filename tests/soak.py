"""A small study that goes wrong again and again, and is continued by the same command each time:

    python -m tests.soak [--faults 1000] [--first N] [--seed 0] [--folder DIR]

Faults (`tests/helpers/faults.py`): signals to the driver and to each kind of Ray's processes, stopped and hanging
ones, a full disk and one that can only be read (where mounts are allowed), a bit flipped in stored hidden states,
checkpoints and results, a clock that jumps, a tracker that dies. Studies of groups over one pass of
the base model with a tracker, of single trials, and of groups whose steps are one take turns. Whenever one has ended,
its rows, curves, predictions and claims must equal those of the same study that nothing disturbed, times aside
(of groups whose steps are one: to rounding), and nothing may be left behind. Where a run says that what a
damaged file held is lost, the file is put back from a copy, as a user would.

It prints a line per run; the last line is JSON: faults, first, seconds, and how many there were of each kind. Parts
of other `--first` draw other moments, and begin with another kind of study: their sums are those of one long run.
"""

from __future__ import annotations

import collections
import itertools
import json
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.helpers.faults import BEFORE, BEGUN, ENDS, FAULTS, KILLED, WHILE, Run, small_disk
from tests.helpers.long_form import Wrong, in_folder, parser_of
from tests.helpers.mlflow_server import Server
from tests.helpers.small_study import (
    FLAGS,
    PATIENCE,
    WITHOUT_FIGURES,
    Study,
    differences,
    left_behind,
    waited,
)
from tests.helpers.studying import world

TRACKED, AS_ONE = "group, one pass, tracked", "group, one step"
STUDIES = {TRACKED: ("--group", "3", "--features", "live"), "alone": (), AS_ONE: ("--group", "4")}
"""What kinds of studies take turns; flags."""


class Soak:
    """A part of the faults: studies, one after the other, until so many have been made."""

    def __init__(self, root: Path, faults: int, first: int, seed: int):
        self.root, self.faults, self.first, self.began = root, faults, first, time.monotonic()
        self.rng = random.Random(f"{seed} {first}")
        self.kinds = itertools.islice(itertools.cycle(STUDIES), first // faults % len(STUDIES), None)
        self.made, self.server = world(root), Server(root)
        self.done: collections.Counter[str] = collections.Counter()
        self._whole: dict[str, Study] = {}
        self._decks = [self._shuffled(kinds) for kinds in (BEFORE, WHILE, ENDS)]

    def _shuffled(self, kinds: Iterable[str]) -> Iterator[str]:
        while True:
            yield from self.rng.sample(list(kinds), len(list(kinds)))

    def run(self) -> None:
        """Raises `Wrong` for whatever is."""
        for number, kind in enumerate(self.kinds, 1):
            before, study = self.done.total(), self._study(kind, str(number), "--hang-minutes", "0.2")
            if kind not in self._whole:
                self._whole[kind] = self._study(kind, f"{number}-undisturbed", "--tracking-uri", "none")
                if (code := self._whole[kind].start(at=(WITHOUT_FIGURES,)).wait(PATIENCE)) != 0:
                    raise Wrong(f"the undisturbed run ended with {code}:\n{self._whole[kind].said()}")
            try:
                with small_disk(study.output.parent):
                    while not self._ended(study, kind):
                        pass
                    wrong = differences(study, self._whole[kind], rounded=kind == AS_ONE)
                    if wrong := [*wrong, *left_behind()]:
                        raise Wrong(f"{number}, {kind}: " + "; ".join(wrong))
            finally:
                self.server.kill()
            ended = self._whole[kind].ended()
            print(f"{kind}: {ended} trials, all files equal, nothing left behind", flush=True)
            if self.done.total() >= self.faults:
                break
            if self.done.total() == before:
                raise Wrong("a study ended without a fault: it is too quick for this machine")
        kinds, seconds = dict(self.done.most_common()), round(time.monotonic() - self.began)
        about = {"faults": self.done.total(), "first": self.first}
        print(json.dumps({**about, "seconds": seconds, "kinds": kinds}))

    def _study(self, kind: str, name: str, *more: str) -> Study:
        # A failed trial makes it another search: each is tried again, more often than a run strikes it.
        flags = [*FLAGS, "--max-concurrent", "1", "--retries", "5", *STUDIES[kind]]
        if kind == TRACKED:
            flags += ["--tracking-uri", self.server.uri]
        return Study(self.made, self.root, name, [*flags, *more])

    def _ended(self, study: Study, kind: str) -> bool:
        """Run a study with faults, while there are any left; return whether it has all its trials."""
        run = Run(study, self.rng, self.server if kind == TRACKED else None)
        left, (before, during, ends) = self.done.total() < self.faults, self._decks
        if run.server is not None:
            during = itertools.chain(["tracker dies"], during)
            if not run.server.lives():
                run.server.start()
        struck = [name for name in itertools.islice(before, left) if FAULTS[name].make(run)]
        began, last = time.monotonic(), next(ends)
        run.process = study.start({**study.environment, **run.environment}, at=(WITHOUT_FIGURES,))
        if left and run.damaged is None and FAULTS[last].early:
            during = iter(())
        elif run.damaged is None or not self._refused(run):
            run.says(BEGUN)
        # One that ends the run, or another one, where there is no chance of it.
        for names, tries, most in ((during, 3, 6), (itertools.chain([last], ends), 6, 1)):
            some = (name for name in itertools.islice(names, left * tries) if run.process.poll() is None)
            struck += itertools.islice((name for name in some if FAULTS[name].make(run)), most)
        waited(run.process, lambda: False)
        said, code, faults = study.said(), run.process.returncode, [FAULTS[name] for name in struck]
        wanted = {0, *(code for fault in faults for code in fault.codes), *((KILLED,) if run.damaged else ())}
        if code not in wanted:
            raise Wrong(f"after {struck} a run ended with {code}, not one of {wanted}:\n{said}")
        # Python's own answer to a signal before a command is read is one.
        if "Traceback" in said and code >= 0 and not any(fault.noisy for fault in faults):
            raise Wrong(f"after {struck} a run ended in a traceback:\n{said}")
        self.done.update(struck)
        told = f"{study.ended():>3} trials  exit {code:>3}  {', '.join(struck)}"
        print(f"{self.done.total():>4}  {time.monotonic() - began:5.1f} s  {told}", flush=True)
        return code == 0 and study.ended() == self._whole[kind].ended()

    def _refused(self, run: Run) -> bool:
        """Return whether a run has said that what a damaged file held is lost; the file is then put back."""
        run.says(BEGUN)
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


def main() -> int:
    parser = parser_of("soak", __doc__)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of this part's first fault")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # else under nohup the studies too would not hear it
    return in_folder(flags.folder, lambda root: Soak(root, flags.faults, flags.first, flags.seed).run())


if __name__ == "__main__":
    sys.exit(main())
