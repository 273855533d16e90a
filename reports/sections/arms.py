"""Every arm: what it is, its score, and how its predictions go with those of others."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from adalayers.comparisons import PlannedArm
from adalayers.results.intervals import MIN_N
from reports import names
from reports.cells import INTERVAL, named, summary, table_of
from reports.evidence.evidence import Evidence
from reports.plots import forest, legend, looks_of, marked, seeds_text, single, with_counts
from reports.reading.load import Plan
from reports.section import Section, Table
from reports.words.text import number

MEANING = {
    "uniform": "all layers alike, nothing learned",
    "last": "the last layer alone",
    "best": "the best of the search",
}


def frames(evidence: Evidence) -> Evidence | None:
    return evidence if len(evidence.arms) else None


def tables(evidence: Evidence) -> Sequence[Table]:
    arms, plan, alike = evidence.arms, evidence.plan, evidence.alike(evidence.arms["arm"])
    told = {arm.name: meaning(arm, plan) for arm in plan.arms}
    few = arms["n"].between(1, MIN_N - 1).any()
    heads = {
        "arm": lambda row: named(row["arm"]),
        "what it is, or differs from the control in": lambda row: told.get(row["arm"], ""),
        **({"fusion": "fusion"} if arms["fusion"].nunique() > 1 else {}),
        f"{evidence.scored.name}, {INTERVAL}": summary,
        **({"by seed": lambda row: _seeds(evidence, row["arm"])} if few else {}),
        **({"on validation": lambda row: summary(row, "val_")} if evidence.split != "val" else {}),
        **({"also known as": "aliases"} if arms["aliases"].any() else {}),
        **({"predicts exactly as": lambda row: named(alike.get(row["arm"]))} if alike else {}),
    }
    caption = "Intervals are t intervals over seeds, not corrected; they compare no two arms."
    return [table_of(arms, heads, caption)]


def _seeds(evidence: Evidence, arm: str) -> str:
    return ", ".join(map(number, evidence.scores.get(arm, {}).values()))


def meaning(arm: PlannedArm, plan: Plan) -> str:
    """Return what an arm is, as far as it differs from the control."""
    if arm.name == plan.control:
        return "control"
    control = next((candidate for candidate in plan.arms if candidate.name == plan.control), arm)
    differs = {key: value for key, value in arm.config.items() if control.config.get(key) != value}
    if arm.fusion != control.fusion:
        differs = {"fusion": arm.fusion, **differs}
    values = (f"{key} {names.level(value)}" for key, value in differs.items())
    return ": ".join(filter(None, [MEANING.get(arm.role, ""), ", ".join(values)]))


def draw(evidence: Evidence) -> Figure | None:
    """Mean score of every arm with its interval, a row each."""
    shown = evidence.arms.dropna(subset=["mean"])
    if shown.empty:
        return None
    figure, axes = single(1.0 + 0.3 * max(len(shown), 4), evidence.scored, "arm")
    series = shown["role"].replace({"": "arm"})
    looks = looks_of(series)
    called = (names.arm(name, evidence.plan) for name in shown["arm"])
    forest(shown.assign(name=with_counts(called, shown["n"]), series=series), axes, looks=looks)
    for mean in shown.loc[shown["arm"] == evidence.plan.control, "mean"]:
        marked(axes, mean, "control", along="y")
    title = f"mean and 95% interval, {seeds_text(shown['n'])}"
    legend(figure, looks if len(looks) > 1 else {}, title, lines=False)
    return figure


SECTION = Section("Arms", frames, tables, {"arms": draw}, "Mean score of every arm with its interval")
