"""The planned comparisons as a figure: differences by seed, their mean and its interval."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

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
from reports.section import Section

VERDICTS = {
    BETTER: Look(COLOURS[2], MARKERS[1]),
    WORSE: Look(COLOURS[1], MARKERS[4]),
    SAME: Look(COLOURS[0], MARKERS[0]),
    OPEN: UNDECIDED,
}


def differences(claims: Sequence[Claim], plan: Plan) -> pd.DataFrame:
    """Return claims as `plots.forest` wants them: name, mean, low, high, series (the verdict), values."""
    columns = ["name", "mean", "low", "high", "series", "values"]
    names = with_counts((compared(claim, plan) for claim in claims), [claim.n for claim in claims])
    rows = [
        (
            name,
            *(claim.difference, claim.low, claim.high, claim.shown),
            [*claim.values.values()],
        )
        for name, claim in zip(names, claims, strict=True)
    ]
    return pd.DataFrame(rows, columns=columns).astype({"mean": float, "low": float, "high": float})


def frames(evidence: Evidence) -> Evidence | None:
    return evidence if any(claim.primary and claim.n for claim in evidence.claims) else None


def draw(evidence: Evidence) -> Figure:
    """A row per primary comparison, over the zone of no difference."""
    plan, claims = evidence.plan, [claim for claim in evidence.claims if claim.primary and claim.n]
    frame = differences(claims, plan)
    figure, axes = single(1.0 + 0.34 * max(len(frame), 3), f"difference in {evidence.scored}", "")
    forest(frame, axes, zone=plan.smallest_effect or 0.0, looks=VERDICTS)
    entries: dict[str, Look | Artist] = {
        name: how for name, how in VERDICTS.items() if name in set(frame["series"])
    }
    zone = {f"within ±{plan.smallest_effect:g}": shade("0.92", "")} if plan.smallest_effect else {}
    legend(
        figure,
        {**entries, **zone},
        f"dots are pairs of seeds, {seeds_text(pd.Series([claim.n for claim in claims]))}",
    )
    return figure


SECTION = Section(
    "Planned comparisons",
    frames,
    figures={"quality": draw},
    alt="Differences of the planned comparisons: dots are seeds, bars intervals at the level of each test",
)
