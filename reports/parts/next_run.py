"""Limits of the page, a sentence each, and the next run as a command."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from adalayers.comparisons import FIRST, IMPORTANCES_NAMED_FROM
from adalayers.results.interim_analyses import InterimAnalysis
from adalayers.results.other_studies import TAKEN_FROM
from adalayers.results.study_file import splits_in_words
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.holm import SAME
from reports.evidence.planning import MOST_SEEDS, resolution, seeds_for
from reports.parts.cells import named
from reports.parts.part import Part
from reports.reading.frames import numbers
from reports.reading.load import Plan
from reports.tables.arms import confirmed
from reports.words.text import code, count, escape, fenced, listed, number, several

OWN_SPREAD_FROM = 6
"""Pairs of seeds from which on a comparison's own spread is known well enough to plan with."""
OTHER_SEEDS = 1000
"""How far from this study's the seeds lie that are named for another."""
UNREACHED = f"more than {MOST_SEEDS}"


@dataclass(frozen=True)
class Info:
    """What the section says.

    Attributes:
        claims: The primary ones.
        made: The analyses so far.
        command: That of the study.
        finished: Whether the study ended by itself.
        until_decided: Whether seeds were added until comparisons were decided.
        own_draws: Whether each seed drew training examples of its own.
        importances: Completed trials of the search, where the study asks which hyperparameters matter and has too few
            to answer; else None.
        six: Seconds that what is missing of six seeds would train.
        files: Of the user's own data, the files of each split and those that are not used.
        variances: By a comparison's key, the variance of its difference over draws of test examples.
        examples: How many there are, in words.
        taken: How many confirmed trials are those of other studies, in words.
    """

    claims: tuple[Claim, ...]
    plan: Plan
    spread: float | None
    made: tuple[InterimAnalysis, ...]
    command: str
    finished: bool
    until_decided: bool
    own_draws: bool
    importances: int | None = None
    scheduler: str = ""
    files: str = ""
    six: float = 0.0
    variances: Mapping[tuple[object, ...], float] = field(default_factory=dict)
    examples: str = ""
    taken: str = ""

    @property
    def open(self) -> list[Claim]:
        """The comparisons that are not decided."""
        return [claim for claim in self.claims if not claim.decided]


def info(evidence: Evidence) -> Info:
    runs, dataset = evidence.loaded.study.runs, evidence.loaded.study.environment.dataset
    return Info(
        tuple(claim for claim in evidence.claims if claim.primary),
        evidence.plan,
        evidence.spread,
        tuple(evidence.analyses),
        evidence.loaded.study.request.command,
        runs.state == "finished",
        any(run.until_decided for run in runs.history),
        numbers(confirmed(evidence.trials), "draw").nunique() > 1,
        _too_few_for_importances(evidence),
        evidence.loaded.study.request.scheduler,
        splits_in_words(dataset.roles, dataset.unused) if dataset.source.startswith("local:") else "",
        _seconds_to_six(evidence),
        {evidence.claims[place].key: variance for place, variance in evidence.example_variances.items()},
        f"{dataset.examples.get(evidence.split_name, 0):,} {evidence.split_name} examples",
        _taken(confirmed(evidence.trials)),
    )


def _seconds_to_six(evidence: Evidence) -> float:
    """Return how long the seeds up to the sixth would train, by how long those of each arm did."""
    rows = confirmed(evidence.trials)
    seconds = numbers(rows, "seconds").groupby(rows["arm"]).agg(["mean", "size"])
    return float((seconds["mean"] * (FIRST - seconds["size"]).clip(lower=0)).sum())


def _too_few_for_importances(evidence: Evidence) -> int | None:
    completed = int((evidence.points["status"] == "completed").sum())
    asked = "importances" in evidence.loaded.study.request.parts and len(evidence.space[0]) > 1
    return completed if asked and completed < IMPORTANCES_NAMED_FROM else None


def section(info: Info) -> list[str]:
    draws = "" if info.own_draws else ", one draw of training examples"
    sentences = [
        f"One backbone, one dataset{draws}: whether this holds for others is not tested.",
        f"Data: {escape(info.files, 1000)}." if info.files else "",
        "The primary comparisons of quality share one error of 5%; entropy and speed have 5% each.",
        "Seeds were added until decided: a difference decided early reads a little too large; trust its interval."
        if info.until_decided
        else "",
        _unseen_failures(info.claims),
        _resolution(info),
        _seeds_for_smallest_effect(info),
        f"{info.taken}Another `--label` alone trains these seeds again; a second witness takes another `--seed`, "
        f"such as {info.plan.seed + OTHER_SEEDS}, too.",
    ]
    return [listed(filter(None, sentences)), *_next(info)]


def _unseen_failures(claims: Sequence[Claim]) -> str:
    """Return what *no difference* does not rule out: a failure of training that strikes now and then."""
    seeds = [claim.n for claim in claims if claim.verdict == SAME]
    if not seeds:
        return ""
    n = min(seeds)
    return (
        f"*No difference*: in {n} seeds without a failure, one that strikes up to {1 - 0.05 ** (1 / n):.0%} of runs "
        "would not be seen."
    )


def _taken(trials: pd.DataFrame) -> str:
    """Say how many trials other studies trained: what these found and what is found here rest on the same."""
    if TAKEN_FROM not in trials.columns:
        return ""
    sources = trials[TAKEN_FROM].dropna().value_counts()
    told = several(
        f"{n} of {len(trials)} trials are those of {code(source)}" for source, n in sources.items()
    )
    return f"{told}: no second witness. " if told else ""


def _too_coarse(info: Info) -> dict[tuple[object, ...], float]:
    """Return the comparisons that no number of seeds decides for other examples, by key, each with its resolution.

    That is what the choice of test examples alone leaves open, where it is more than the smallest effect.
    """
    halves = {
        claim.key: resolution(info.variances[claim.key], claim.level)
        for claim in info.open
        if claim.level and claim.key in info.variances
    }
    return {key: half for key, half in halves.items() if half > (info.plan.smallest_effect or math.inf)}


def _resolution(info: Info) -> str:
    """Say where the test examples are too few for the smallest effect, and how many would do."""
    halves, effect = _too_coarse(info).values(), info.plan.smallest_effect
    if not halves or not effect:
        return ""
    span = " to ".join(
        f"±{half}" for half in dict.fromkeys(number(end) for end in (min(halves), max(halves)))
    )
    return (
        f"The choice of these {info.examples} alone leaves {span} open in {len(halves)} of "
        f"{count(len(info.open), 'open comparison')}, more than {effect:g}: for other examples more seeds decide "
        f"nothing there, up to {math.ceil((max(halves) / effect) ** 2)} times as many examples would."
    )


def _seeds_for_smallest_effect(info: Info) -> str:
    """Return how many seeds find the smallest effect of interest, by the spread of what was seen.

    The differences seen play no part: computing from them would promise whatever chance happened to show.
    """
    if info.spread is None or not info.plan.smallest_effect or not info.made:
        return ""
    kinds = {"factor": "an averaged effect of a factor", "arm": "one arm against another"}
    seeds: dict[str, list[int | None]] = {}
    coarse = _too_coarse(info)
    for claim in info.open:
        if claim.level and claim.kind in kinds and not claim.withheld and claim.key not in coarse:
            seeds.setdefault(claim.kind, []).append(_seeds_needed(claim, info))
    if not seeds:
        return ""
    parts = [f"{_span(needed)} for {kinds[kind]}" for kind, needed in seeds.items()]
    source = (
        "each by the spread of its own differences"
        if all(claim.n >= OWN_SPREAD_FROM for claim in info.open)
        else f"from a standard deviation of {number(info.spread, 3)} per score, pooled over arms"
    )
    return (
        f"Seeds to find {info.plan.smallest_effect:g}, the smallest effect of interest, nine times in ten: "
        f"{', '.join(parts)} ({source})."
    )


def _span(seeds: Sequence[int | None]) -> str:
    """Return the fewest and the most seeds: "about 16 to 340"; None is more than can be planned for."""
    reached = sorted(value for value in seeds if value)
    if not reached:
        return UNREACHED
    most = UNREACHED if len(reached) < len(seeds) else str(reached[-1])
    return f"about {reached[0]}" + (f" to {most}" if most != str(reached[0]) else "")


def _next(info: Info) -> list[str]:
    if not info.command:
        return []
    if not info.finished:
        return [
            "The study is not finished; the same command continues it:",
            fenced(_again(info.command), "sh"),
        ]
    return [*_more_trials(info), *_more_seeds(info)]


def _more_trials(info: Info) -> list[str]:
    """Return the search that can say which hyperparameters matter, where this one cannot: seeds add nothing to it."""
    if info.importances is None:
        return []
    apart = {} if info.scheduler == "fifo" else {"scheduler": "fifo", "label": "fifo"}
    why = ", in a study of its own, where none is stopped early" if apart else ""
    return [
        f"Which hyperparameters matter takes {IMPORTANCES_NAMED_FROM} search trials that are trained to the end, here "
        f"are {info.importances}; seeds add nothing to it, trials do{why}:",
        fenced(_changed(info.command, trials=str(IMPORTANCES_NAMED_FROM), **apart), "sh"),
    ]


def _more_seeds(info: Info) -> list[str]:
    if not info.open:
        return ["Every primary comparison is decided; more seeds would add nothing."]
    paired = [claim for claim in info.open if claim.n and not claim.withheld]
    if not paired:
        withheld = any(claim.withheld for claim in info.open)
        why = "waits for trials that failed or have not run" if withheld else "has no pairs of seeds yet"
        return [f"What is open {why}; the same command continues:", fenced(_again(info.command), "sh")]
    if max(claim.n for claim in paired) < FIRST:
        return _six(paired, info)
    coarse = _too_coarse(info)
    fine = [claim for claim in paired if claim.key not in coarse]
    if not fine:
        return [f"More test examples, not seeds, for {count(len(paired), 'open comparison')}."]
    seeds, within = _seeds(fine, info)
    if seeds is None:
        return [
            f"To find {info.plan.smallest_effect:g} in {count(len(fine), 'open comparison')} would take more than "
            f"{MOST_SEEDS} seeds{'' if len(fine) == len(paired) else '; the others take more test examples'}."
        ]
    more = len(fine) - within
    others = {f"{more} more would take over {seeds} seeds": more}
    others[f"{len(paired) - len(fine)} take more test examples, not seeds"] = len(paired) - len(fine)
    rest = "; ".join(text for text, n in others.items() if n)
    effect = f"{info.plan.smallest_effect:g}" if info.plan.smallest_effect else "a difference"
    return [
        f"The next run, to find {effect} in {count(within, 'open comparison')}{f' ({rest})' if rest else ''}:",
        fenced(_changed(info.command, "--until-decided", seeds=str(seeds)), "sh"),
    ]


def _six(claims: Sequence[Claim], info: Info) -> list[str]:
    """Return which way fewer than six seeds point, and the run that allows a verdict."""
    told = [
        f"{named(claim, info.plan)} {number(claim.difference, signed=True)}, on {claim.above} of {claim.n} seeds above"
        for claim in claims
    ]
    return [
        f"A verdict takes {FIRST} seeds. So far: {'; '.join(told)}. Up to the sixth, seeds train about "
        f"{info.six:,.0f} seconds, one after the other:",
        fenced(_changed(info.command, seeds=str(FIRST)), "sh"),
    ]


def _seeds(claims: list[Claim], info: Info) -> tuple[int | None, int]:
    """Return the seeds that most of what is open needs, and how much that is; None: over `MOST_SEEDS`."""
    planned = max(info.plan.seeds, 1)
    if info.spread is None or not info.plan.smallest_effect:
        return max(10, 2 * planned), len(claims)
    needed = [_seeds_needed(claim, info) for claim in claims if claim.level]
    within = [seeds for seeds in needed if seeds is not None and seeds <= MOST_SEEDS]
    return (max(*within, planned + 3), len(within)) if within else (None, 0)


def _seeds_needed(claim: Claim, info: Info) -> int | None:
    """Return the seeds that find the smallest effect: by the comparison's own spread where enough seeds know it."""
    effect, spread = info.plan.smallest_effect, info.spread
    assert effect is not None
    assert spread is not None
    assert claim.level is not None
    own = claim.sd if claim.n >= OWN_SPREAD_FROM else None
    sd = own or spread * math.hypot(*claim.weights.values())
    return seeds_for(effect, sd, claim.level, info.variances.get(claim.key, 0.0))


def _again(command: str) -> str:
    """Return the command that continues a study: one that began with --fresh would begin again."""
    return " ".join(word for word in command.split(" ") if word != "--fresh")


def _changed(command: str, *switches: str, **values: str) -> str:
    """Return a study's command with flags as these say; a label is put behind the one that is there."""
    try:
        words = shlex.split(command)
    except ValueError:  # written by hand: no shell can read it
        return command
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("max-hours", *values):
        flags.add_argument(f"--{flag}", nargs="?")
    for flag in ("--fresh", *switches):
        flags.add_argument(flag, action="store_true")
    before, others = flags.parse_known_args(words)
    if "label" in values and before.label:
        values["label"] = f"{before.label}-{values['label']}"
    return shlex.join(
        [*others, *switches, *(word for pair in values.items() for word in (f"--{pair[0]}", pair[1]))]
    )


PART = Part("Limits and the next run", info, section)
