"""Score and layers left over the cutoff, at work always or after training alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.cells import INTERVAL, relative, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import legend, looks_of, panels, points, seeds_text
from reports.reading.factors import cell_names
from reports.section import Section, Table
from reports.words.text import number

CUTOFF, WHEN = "config/cutoff", "config/cutoff_when"
AFTER = "after-training"


@dataclass(frozen=True)
class Frames:
    """cells: rows of arms with line (other factors, and when it cuts), live and layers.

    later: cutoffs tried on trained models, as from `variants.score_changes`, with cutoff and line
    """

    cells: pd.DataFrame
    later: pd.DataFrame
    score: str


def frames(evidence: Evidence) -> Frames | None:
    arms, plan = evidence.arms, evidence.plan
    if CUTOFF not in arms or not any(factor.name == "cutoff" for factor in plan.factors):
        return None
    cells = arms[(arms["role"] == "core") & arms[CUTOFF].notna() & arms["mean"].notna()]
    if cells[CUTOFF].nunique() < 2:
        return None
    others = [factor for factor in plan.factors if factor.name not in ("cutoff", "cutoff_when")]
    after = (cells[WHEN] == AFTER) & (cells[CUTOFF] > 0) if WHEN in cells else cells[CUTOFF] < 0
    cells = cells.assign(setting=cell_names(cells, others), after=after)
    cells = cells.merge(evidence.costs[["arm", "live", "layers"]], on="arm", how="left")
    cutoffs = {name: how.cutoff for name, how in evidence.loaded.study.request.variants.items()}
    whole = cells[cells[CUTOFF] == 0].set_index("arm")["setting"]
    variants = evidence.variants
    later = variants.assign(
        cutoff=variants["variant"].map(cutoffs).astype(float), setting=variants["arm"].map(whole)
    )
    return Frames(cells, later.dropna(subset=["cutoff", "setting"]), evidence.scored)


def tables(frames: Frames) -> Sequence[Table]:
    heads = {
        "setting": "setting",
        "cutoff": lambda row: f"{row[CUTOFF]:g}",
        "at work": lambda row: _when(row["after"]) if row[CUTOFF] else "",
        f"{frames.score}, {INTERVAL}": summary,
        "live layers": lambda row: number(row["live"], 2),
        "deepest": lambda row: number(row["layers"], 2),
    }
    later = {
        "setting": "setting",
        "cutoff": lambda row: f"{row['cutoff']:g}",
        f"change in %, {INTERVAL}": relative,
    }
    caption = "More cutoffs, on the models trained without one: relative change of the score."
    shown = [table_of(frames.cells.sort_values(["setting", "after", CUTOFF], kind="stable"), heads)]
    more = frames.later.sort_values(["setting", "cutoff"], kind="stable")
    return [*shown, *([table_of(more, later, caption)] if len(more) else [])]


def draw(frames: Frames) -> Figure:
    """Score (left) and live layers (right) against the cutoff, a line per setting and time of cutting."""
    cells, parts = frames.cells, []
    for (setting, after), _ in cells.groupby(["setting", "after"], sort=False):
        own = cells[(cells["setting"] == setting) & ((cells["after"] == after) | (cells[CUTOFF] == 0))]
        if len(own) > 1:
            parts.append(own.assign(series=f"{setting} {_when(bool(after))}".strip(), x=own[CUTOFF]))
    rows = pd.concat(parts) if parts else cells.assign(series="", x=cells[CUTOFF])
    figure, (left, right) = panels(
        [frames.score, "live layers (count)"], 2.9, x="cutoff (share of 1)", share=False
    )
    looks = looks_of(rows["series"])
    points(rows, left, scale="linear", looks=looks)
    live = rows.assign(mean=rows["live"], low=rows["live"], high=rows["live"])
    points(live.dropna(subset=["live"]), right, scale="linear", looks=looks)
    legend(figure, looks, f"mean and 95% interval, {seeds_text(cells['n'])}")
    return figure


def _when(after: bool) -> str:
    return "after training" if after else "always"


SECTION = Section("The cutoff", frames, tables, {"cutoff": draw}, "Score and live layers against the cutoff")
