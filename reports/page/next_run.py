"""The next run: what would settle what is open, as a command, with what it costs."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from adalayers.comparisons import FIRST, IMPORTANCES_NAMED_FROM
from adalayers.results.interim_analyses import next_analysis
from reports.evidence.claims import Claim, undecided
from reports.evidence.evidence import Evidence
from reports.evidence.planning import MOST_SEEDS, seeds_for, spread
from reports.page.finding import under_trained
from reports.page.limits import too_coarse
from reports.reading.frames import numbers
from reports.tables.arms import confirmed

OWN_SPREAD_FROM = 6
"""Pairs of seeds from which on a comparison's own spread is known well enough to plan with."""
OTHER_SEEDS = 1000
"""How far from this study's the seeds lie that are named for another."""

Kind = Literal["none", "unfinished", "longer", "decided", "waits", "six", "examples", "too many", "seeds"]


@dataclass(frozen=True)
class Next:
    """The next run.

    Attributes:
        kind: What it is for: `unfinished`, `longer` training, `waits` (for trials that failed, or have not run), `six`
            seeds, more `examples`, `too many` seeds for a plan, more `seeds`; `decided`: a second witness is all that
            is left.
        command: "" where there is none.
        minutes: What it trains, one trial after the other; None where nothing says.
        seeds: How many of each arm it plans.
        open, within, coarse: Comparisons that are open, that those seeds find the smallest effect in, that
            take more examples.
        search: The search that can say which hyperparameters matter, where the study asks and cannot; "" else.
        searched: How many of its trials were trained to the end; needed: how many that takes.
    """

    kind: Kind
    command: str = ""
    minutes: float | None = None
    seeds: int = 0
    open: int = 0
    within: int = 0
    coarse: int = 0
    search: str = ""
    searched: int = 0
    needed: int = IMPORTANCES_NAMED_FROM


def next_run(evidence: Evidence) -> Next:
    command = evidence.request.command
    if not command:
        return Next("none")
    if evidence.loaded.study.runs.state != "finished":
        return Next("unfinished", command)
    search, searched = _search(evidence, command)
    return replace(_to_decide(evidence, command), search=search, searched=searched)


def _to_decide(evidence: Evidence, command: str) -> Next:
    """Return what would decide what is open."""
    request, claims = evidence.request, evidence.planned
    if under_trained(evidence):
        longer = changed(command, epochs=str(4 * request.epochs), label="longer")
        minutes = _minutes(evidence, request.seeds, new=True)
        return Next("longer", longer, minutes and 4 * minutes)
    if not claims:
        return Next("none")
    open_ = [claim for claim in claims if not claim.decided]
    if not open_:
        witness = changed(command, seed=str(request.seed + OTHER_SEEDS), label="again")
        most = max((claim.n for claim in claims), default=0)
        return Next("decided", witness, _minutes(evidence, most, new=True))
    paired = [claim for claim in open_ if claim.n and not claim.withheld]
    if not paired:
        lost = evidence.trials[evidence.trials["status"].isin(["failed", "unfinished"])]
        # What is not believed stays so: no run trains it again.
        return Next("none") if evidence.loaded.withheld and lost.empty else Next("waits", command)
    if max(claim.n for claim in paired) < FIRST:
        return Next("six", changed(command, seeds=str(FIRST)), _minutes(evidence, FIRST))
    coarse = too_coarse(evidence)
    fine = [claim for claim in paired if claim.key not in coarse]
    told = Next("examples", open=len(paired), coarse=len(paired) - len(fine))
    if not fine:
        return told
    seeds, within = _seeds(fine, evidence)
    if seeds is None:
        return replace(told, kind="too many", seeds=MOST_SEEDS)
    more = changed(command, "--until-decided", seeds=str(seeds))
    minutes = _minutes(evidence, seeds, arms=undecided(open_))
    return replace(told, kind="seeds", command=more, minutes=minutes, seeds=seeds, within=within)


def _search(evidence: Evidence, command: str) -> tuple[str, int]:
    """Return the search that can say which hyperparameters matter: seeds add nothing to it."""
    request = evidence.request
    completed = len(evidence.points)
    if "importances" not in request.parts or len(evidence.space) < 2 or completed >= IMPORTANCES_NAMED_FROM:
        return "", completed
    apart = {} if request.scheduler == "fifo" else {"scheduler": "fifo", "label": "fifo"}
    return changed(command, trials=str(IMPORTANCES_NAMED_FROM), **apart), completed


def _minutes(
    evidence: Evidence, seeds: int, *, new: bool = False, arms: Collection[str] | None = None
) -> float | None:
    """Return how long seeds up to this number would train, by how long those of each arm did.

    new: all of them; arms: of these alone
    """
    rows = confirmed(evidence.trials)
    rows = rows if arms is None else rows[rows["arm"].isin([*arms])]
    seconds = numbers(rows, "seconds").groupby(rows["arm"]).agg(["mean", "size"])
    missing = seeds if new else (seeds - seconds["size"]).clip(lower=0)
    total = float((seconds["mean"] * missing).sum())
    return total / 60 if total > 0 and math.isfinite(total) else None


def _seeds(claims: list[Claim], evidence: Evidence) -> tuple[int | None, int]:
    """Return the seeds that most of what is open needs, and how much that is; None: over `MOST_SEEDS`.

    At the error of the look that they lead to: beyond those planned it is less than that of the looks so far.
    """
    planned, effect = evidence.request.seeds, evidence.request.smallest_effect
    sd_of_scores = spread(evidence.scores, evidence.answers)
    analyses = evidence.analyses
    coming = next_analysis(analyses, MOST_SEEDS, until_decided=True, error=evidence.error)
    if sd_of_scores is None or not effect or coming is None:
        return max(10, 2 * planned), len(claims)
    needed, share = [], coming.level / analyses[-1].level if analyses else 1.0
    for claim in claims:
        if claim.level and sd_of_scores:
            # By its own spread where enough seeds know it; the differences seen play no part: computing from them
            # would promise whatever chance happened to show.
            own = claim.sd if claim.n >= OWN_SPREAD_FROM else 0.0
            sd = own or sd_of_scores * math.hypot(*claim.weights.values())
            variance = evidence.example_variances.get(claim.key, 0.0)
            needed.append(seeds_for(effect, sd, share * claim.level, variance))
    within = [seeds for seeds in needed if seeds is not None]
    return (max(*within, planned + 3), len(within)) if within else (None, 0)


def changed(command: str, *switches: str, **values: str) -> str:
    """Return a study's command with flags as these say, `--set epochs=N` left out for `--epochs`; a label is put behind
    the one that is there.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # written by hand: no shell can read it
        return command
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("max-hours", *values):
        flags.add_argument(f"--{flag}", nargs="?")
    for flag in switches:
        flags.add_argument(flag, action="store_true")
    if "epochs" in values:
        flags.add_argument("--set", nargs="+", action="extend")
    before, others = flags.parse_known_args(words)
    if kept := [setting for setting in vars(before).get("set") or () if not setting.startswith("epochs=")]:
        others += ["--set", *kept]
    if "label" in values and before.label:
        values["label"] = f"{before.label}-{values['label']}"
    return shlex.join(
        [*others, *switches, *(word for pair in values.items() for word in (f"--{pair[0]}", pair[1]))]
    )
