"""The planned comparisons: a figure of the primary ones, tables of all by kind, and what each analysis decided."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from reports.cells import difference, ends
from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.names import compared
from reports.plots import (
    COLOURS,
    MARKERS,
    UNDECIDED,
    Look,
    forest,
    legend,
    seeds_text,
    shade,
    single,
    with_counts,
)
from reports.reading.load import Plan
from reports.section import Section, Table
from reports.words.labels import SPLITS, short
from reports.words.text import NONE

KINDS = {
    "factor": "Levels of a factor, averaged over what else their arms differ in.",
    "arm": "Arms against the control, or another.",
    "simple": "Levels of a factor at one level of another.",
    "interaction": "Interactions: how far two factors together differ from the sum of both.",
}
VERDICTS = {
    BETTER: Look(COLOURS[2], MARKERS[1]),
    WORSE: Look(COLOURS[1], MARKERS[4]),
    SAME: Look(COLOURS[0], MARKERS[0]),
    OPEN: UNDECIDED,
}


def differences(claims: Sequence[Claim], plan: Plan) -> pd.DataFrame:
    """Return claims as `plots.forest` wants them: name, mean, low, high, series (the verdict), values, n."""
    rows = [
        {"n": claim.n, "mean": claim.difference, "low": claim.low, "high": claim.high}
        | {"name": compared(claim, plan), "series": claim.shown, "values": [*claim.values.values()]}
        for claim in claims
    ]
    frame = pd.DataFrame(rows).astype({"mean": float, "low": float, "high": float})
    return frame.assign(name=with_counts(frame["name"], frame["n"]))


def tables(evidence: Evidence) -> Sequence[Table]:
    heads = ["comparison", "primary", "difference [over seeds]"]
    heads += [f"[over seeds and {SPLITS[evidence.split]} examples]", "verdict"]
    rows = {
        kind: [_row(claim, evidence.plan) for claim in evidence.claims if claim.kind == kind]
        for kind in KINDS
    }
    shown = [Table(heads, own, KINDS[kind]) for kind, own in rows.items()]
    for metric in dict.fromkeys(claim.metric for claim in evidence.contrasts):
        speed = metric == "convergence_step"
        contrasts = [
            [compared(claim, evidence.plan), difference(claim, 0 if speed else 3), claim.shown]
            for claim in evidence.contrasts
            if claim.metric == metric
        ]
        told = "steps to a score that both sides reach" if speed else short(metric)
        shown.append(Table(["comparison", f"difference in {told} [interval]", "verdict"], contrasts))
    decided = [claim.analyses for claim in evidence.planned if claim.decided]
    analyses = [
        [number, f"{one.after}{' (extension)' * one.extension}", f"{one.level:.2%}", decided.count(number)]
        for number, one in enumerate(evidence.analyses, 1)
    ]
    shown.append(Table(["analysis", "seeds", "error", "primary comparisons decided here"], analyses))
    return [table for table in shown if table.rows]


def _row(claim: Claim, plan: Plan) -> list[object]:
    over_examples = ends(claim.examples_low, claim.examples_high, signed=True)
    primary = "yes" if claim.primary else "no"
    return [compared(claim, plan), primary, difference(claim), over_examples, claim.verdict or NONE]


def draw(evidence: Evidence) -> Figure | None:
    """A row per primary comparison, over the zone of no difference."""
    claims = [claim for claim in evidence.planned if claim.n]
    if not claims:
        return None
    frame, small = differences(claims, evidence.plan), evidence.plan.smallest_effect
    figure, axes = single(1.0 + 0.34 * max(len(frame), 3), f"difference in {evidence.scored}", "comparison")
    forest(frame, axes, zone=small or 0.0, looks=VERDICTS)
    entries: dict[str, Look | Artist] = {
        verdict: how for verdict, how in VERDICTS.items() if verdict in set(frame["series"])
    }
    entries |= {f"within ±{small:g}": shade("0.92", "")} if small else {}
    legend(figure, entries, f"dots are pairs of seeds, {seeds_text(frame['n'])}")
    return figure


SECTION = Section(
    "Planned comparisons",
    lambda evidence: evidence if evidence.claims else None,
    tables,
    {"quality": draw},
    "Differences of the planned comparisons: dots are seeds, bars intervals at the level of each test",
)
