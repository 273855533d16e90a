"""The planned comparisons: a figure of the primary ones, a table of all and of what is no score, and each analysis."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from reports import names, plots
from reports.evidence.claims import SPEED
from reports.evidence.evidence import Evidence
from reports.names import compared
from reports.plots import COLOURS, MARKERS, Look
from reports.section import Section, Table, difference, ends
from reports.words import short

LOOKS = [Look(COLOURS[colour], MARKERS[marker]) for colour, marker in ((2, 1), (1, 4), (0, 0), (0, 3))]
LOOKS.insert(3, plots.UNDECIDED)
VERDICTS = dict(zip(names.VERDICTS.values(), LOOKS, strict=True))


def section(evidence: Evidence) -> Section | None:
    if not evidence.claims:
        return None
    heads = ["comparison", "kind", "planned", "of", "difference [over seeds]", "[examples too]", "verdict"]
    rows = [
        [
            compared(claim, evidence.request),
            claim.kind,
            "yes" if claim.primary else "no",
            "steps to a score that both sides reach" if claim.metric == SPEED else short(claim.metric),
            difference(claim, 0 if claim.metric == SPEED else 3),
            ends(claim.examples_low, claim.examples_high, signed=True),
            claim.verdict,
        ]
        for claim in (*evidence.claims, *evidence.contrasts)
    ]
    analyses = [[place, one.after, f"{one.level:.2%}"] for place, one in enumerate(evidence.analyses, 1)]
    tables = [Table(heads, rows), Table(["analysis", "seeds", "error"], analyses)]
    figure = draw(evidence)
    alt = "Differences of the planned comparisons: a dot per seed, a bar for each interval"
    return Section("Planned comparisons", tables, {"quality": figure} if figure else {}, alt)


def draw(evidence: Evidence) -> Figure | None:
    """A row per primary comparison, over the zone of no difference."""
    claims = [*evidence.others, *evidence.by_arm.values()]
    rows = [
        {"low": claim.low, "high": claim.high, "mean": claim.difference, "n": claim.n}
        | {"name": compared(claim, evidence.request), "values": [*claim.values.values()]}
        | {"series": names.VERDICTS[claim.told]}
        for claim in claims
        if claim.primary and claim.n
    ]
    if not rows:
        return None
    frame = pd.DataFrame(rows).astype({"low": float, "high": float, "mean": float})
    if frame["n"].nunique() > 1:
        frame["name"] += frame["n"].map(" (n\u00a0=\u00a0{:.0f})".format)
    zone = evidence.request.smallest_effect or 0.0
    height = 1.0 + 0.34 * max(len(frame), 3)
    figure, axes = plots.single(height, f"difference in {evidence.scored}", "comparison")
    plots.forest(frame, axes, zone=zone, looks=VERDICTS)
    entries = {verdict: how for verdict, how in VERDICTS.items() if verdict in set(frame["series"])}
    shade = {f"within ±{zone:g}": Patch(color="0.92")} if zone else {}
    plots.legend(figure, {**entries, **shade}, f"a dot per paired seed, {plots.seeds_text(frame['n'])}")
    return figure
