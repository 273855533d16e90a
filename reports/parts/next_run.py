"""Limits of the page, a sentence each, and the next run as a command."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.planning import Spread, error_to_come, seeds_for
from reports.evidence.statistics import CHANCE, seeds_needed
from reports.evidence.tables import confirmed
from reports.parts.part import DETAILS, Part
from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.words.text import count, listed, number

MOST = 100
"""Seeds beyond which a next run is not suggested."""
KNOWN = 6
"""Pairs of seeds from which on a comparison's own spread is known well enough to plan with."""


@dataclass(frozen=True)
class Info:
    """stopped: whether seeds were added until comparisons were decided; error: what a family has for a further run.

    drawn: whether each seed drew training examples of its own
    """

    claims: tuple[Claim, ...]
    plan: Plan
    spread: Spread | None
    error: float
    command: str
    finished: bool
    stopped: bool
    drawn: bool


def info(evidence: Evidence) -> Info:
    runs = evidence.loaded.study.runs
    return Info(
        tuple(evidence.claims),
        evidence.plan,
        evidence.spread,
        error_to_come(evidence.analyses, evidence.plan.seeds),
        evidence.loaded.study.request.command,
        runs.state == "finished",
        any(run.until_decided for run in runs.history),
        numbers(confirmed(evidence.trials), "draw").nunique() > 1,
    )


def section(info: Info) -> list[str]:
    found = [
        f"One backbone, one dataset{'' if info.drawn else ', one draw of training examples'}: nothing here says how "
        "far this carries.",
        "All planned quality comparisons share one error of 5%; the set that may be best, entropy and speed have 5% "
        "each.",
    ]
    if info.stopped:
        found.append(
            "Seeds were added in blocks: a difference decided early reads a little too large; trust its interval."
        )
    if any(claim.primary and not claim.decided for claim in info.claims):
        found.append(seeds_for_smallest_effect(info.claims, info.plan, info.spread, info.error))
    return [listed(sentence for sentence in found if sentence), *_next(info)]


def seeds_for_smallest_effect(
    claims: Sequence[Claim], plan: Plan, spread: Spread | None, error: float
) -> str:
    """Return how many seeds find the smallest effect of interest, by the spread of what was seen.

    The differences seen play no part: reckoning from them would promise whatever chance happened to show.
    """
    if spread is None or not plan.smallest_effect:
        return ""
    kinds = {"factor": "an averaged effect of a factor", "arm": "one arm against another"}
    found: dict[str, list[int | None]] = {}
    for claim in claims:
        if claim.primary and claim.share and claim.kind in kinds and not claim.decided:
            found.setdefault(claim.kind, []).append(_wanted(claim, plan.smallest_effect, spread, error))
    if not found:
        return ""
    parts = [f"{_span(seeds)} for {kinds[kind]}" for kind, seeds in found.items()]
    own = all(claim.n >= KNOWN for claim in claims if claim.primary and not claim.decided)
    of = (
        "each by the spread of its own differences"
        if own
        else f"from a standard deviation of {number(spread.sd, 3)} per score, pooled over arms"
    )
    return (
        f"Seeds to find {plan.smallest_effect:g}, the smallest effect of interest, nine times in ten: "
        f"{', '.join(parts)} ({of})."
    )


def _span(seeds: Sequence[int | None]) -> str:
    """Return numbers of seeds in words, the fewest and the most: "about 16 to 340"."""
    known = sorted(one if one else math.inf for one in seeds)
    if known[0] == math.inf:
        return "more than 1,000"
    if known[-1] == math.inf:
        return f"about {known[0]:.0f} to more than 1,000"
    return f"about {known[0]:.0f}" + (f" to {known[-1]:.0f}" if known[-1] > known[0] else "")


def _next(info: Info) -> list[str]:
    undecided = [claim for claim in info.claims if claim.primary and not claim.decided]
    if not info.command:
        return []
    if not info.finished:
        return ["The study is not finished; the same command goes on:", _shell(info.command)]
    if not undecided:
        return [f"Every primary comparison is decided; more seeds would add nothing ([details]({DETAILS}))."]
    undecided = [claim for claim in undecided if claim.n]
    if not undecided:
        return ["What is open has no pairs of seeds yet; the same command goes on:", _shell(info.command)]
    seeds, within = _seeds(undecided, info)
    if seeds is None:
        return [
            f"{count(len(undecided), 'comparison')} would take more than {MOST} seeds to decide: more examples, or a "
            "larger `--smallest-effect` in a study of its own, is the better next step."
        ]
    more = len(undecided) - within
    rest = f" ({more} more would take over {seeds} seeds)" if more else ""
    return [
        f"The next run, to decide {count(within, 'further comparison')}{rest}:",
        _shell(_with(info.command, seeds)),
    ]


def _seeds(claims: list[Claim], info: Info) -> tuple[int | None, int]:
    """Return the seeds that decide most of what is open, by its spread, and how much that is; None: over `MOST`."""
    have, small = max(info.plan.seeds, 1), info.plan.smallest_effect
    if info.spread is None or not small:
        return max(10, 2 * have), len(claims)
    wanted = [_wanted(claim, small, info.spread, info.error) for claim in claims if claim.share]
    fit = [seeds for seeds in wanted if seeds is not None and seeds <= MOST]
    return (max(max(fit), have + 3), len(fit)) if fit else (None, 0)


def _wanted(claim: Claim, effect: float, spread: Spread, error: float) -> int | None:
    """Return the seeds that find `effect`: by the comparison's own spread where enough seeds know it."""
    if claim.n >= KNOWN and claim.sd:
        return seeds_needed(effect / claim.sd, error * claim.share, CHANCE)
    return seeds_for(effect, claim.weights, claim.share, spread, error)


def _with(command: str, seeds: int) -> str:
    """Return a study's command with other seeds, until decided."""
    try:
        words = shlex.split(command)
    except ValueError:  # written by hand: no shell can read it
        return command
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("--seeds", "--max-hours"):
            skip = True
        elif word not in ("--until-decided", "--fresh") and not word.startswith(("--seeds=", "--max-hours=")):
            kept.append(word)
    return shlex.join([*kept, "--until-decided", "--seeds", str(seeds)])


def _shell(command: str) -> str:
    return f"```sh\n{command}\n```"


PART = Part("Limits and the next run", info, section)
