"""How trials of a search are stopped early: a scheduler is an entry of `SCHEDULERS`."""

from __future__ import annotations

import bisect
import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

REDUCTION = 3
"""The best of so many trials go on from each rung, and rungs lie so many times apart."""

Rungs = Sequence[int]
"""The epochs after which trials are judged."""


@dataclass(frozen=True)
class Scheduler:
    """How trials of a search are stopped early.

    At a rung a trial goes on that is, by its best validation score so far, among the best third of those of the same
    search and bracket that have been there.

    Attributes:
        brackets: All rungs of a trial -> the brackets that trials are spread over, each with its share of the trials
            and the rungs at which they are judged; without rungs, all are trained to the end.
    """

    brackets: Callable[[Rungs], list[tuple[float, Rungs]]]

    def of(self, epochs: int) -> list[tuple[float, Rungs]]:
        """Return the brackets of trials of at most so many epochs: the first rung is at an eighth of them."""
        rungs = (max(1, epochs // 8) * REDUCTION**i for i in itertools.count())
        return self.brackets([*itertools.takewhile(lambda rung: rung < epochs, rungs)])

    def stops(self, epochs: int) -> bool:
        """Return whether any trial may be stopped."""
        return any(rungs for _, rungs in self.of(epochs))

    def bracket(self, trial_id: str, epochs: int) -> int:
        """Return the number of a trial's bracket: it follows from its id, so that a study that goes on keeps it."""
        shares = [share for share, _ in self.of(epochs)]
        place = zlib.crc32(trial_id.encode()) / 2**32 * sum(shares)
        return bisect.bisect([*itertools.accumulate(shares)][:-1], place)


def _hyperband(rungs: Rungs) -> list[tuple[float, Rungs]]:
    """Return a bracket that begins at each rung, and one without any: each costs about the same (Li et al. 2018)."""
    later = [rungs[i:] for i in range(len(rungs) + 1)]
    return [(REDUCTION ** len(own) / (len(own) + 1), own) for own in later]


SCHEDULERS = {
    "asha": Scheduler(lambda rungs: [(1.0, rungs)]),
    "hyperband": Scheduler(_hyperband),
    "fifo": Scheduler(lambda rungs: [(1.0, ())]),
}
REFUSED = {
    "pbt": "a trial that changes its configuration has no identity: its row could be neither named nor repeated"
}
"""Schedulers that some ask for, and why there are none."""
