"""The cover page over the folders of one study: arms by folder, and a link to each report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from reports.drawing.style import styled
from reports.evidence.across import Across, Case, across, run_alike
from reports.evidence.evidence import Evidence
from reports.evidence.holm import BETTER, OPEN, SAME, WORSE
from reports.page.index import ASIDE, state
from reports.parts import across as across_parts
from reports.parts import distances, layer_profiles
from reports.reading.frames import records
from reports.reading.load import Loaded
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, code, escape, estimate, folded, link, listed, number, table


@dataclass(frozen=True)
class CoverEntry:
    """One folder on the cover: `link` leads from the cover to its folder.

    A link is named by its folder, which a study set aside by `--fresh` does not share with its successor.
    """

    link: str
    evidence: Evidence

    @property
    def loaded(self) -> Loaded:
        return self.evidence.loaded

    @property
    def name(self) -> str:
        return self.link.rsplit("/", 1)[-1]

    @property
    def report(self) -> str:
        """The link to its page, as Markdown."""
        return link(self.name, f"{self.link}/report.md")

    @property
    def score(self) -> str:
        return f"{SPLITS[self.evidence.split]} {escape(short(self.loaded.plan.metric))}"

    @property
    def estimates(self) -> dict[str, str]:
        """Arm -> its mean with its interval."""
        arms = records(self.evidence.arms)
        return {row["arm"]: estimate(row["mean"], row["low"], row["high"], row["n"]) for row in arms}


def across_cases(entries: Sequence[CoverEntry]) -> Across:
    """Return what can be claimed across the cases, those that `--fresh` set aside left out."""
    return across(_cases(entries))


def _cases(entries: Sequence[CoverEntry]) -> list[Case]:
    return [Case(entry.name, entry.evidence) for entry in entries if not ASIDE.search(entry.link)]


def cover(
    title: str, entries: Sequence[CoverEntry], problems: Sequence[str] = (), result: Across | None = None
) -> str:
    """Return the page.

    Args:
        title: Of the study.
        entries: What is on it, in order.
        problems: Names folders that could not be read.
        result: What `across_cases` returns; None: it is computed.
    """
    parts = [f"# {escape(title)}: all backbones and datasets"]
    questions = dict.fromkeys(entry.loaded.study.request.question for entry in entries)
    parts += [escape(question, 2000) for question in questions if question]
    if not entries:
        parts.append("No results to show yet.")
    else:
        measured, profiles = _distances(entries), _profiles(entries)
        sections = {
            "Distance and score": distances.section(measured) if measured else [],
            "Across cases": across_parts.section(result or across_cases(entries)),
            "Backbones": _backbones(entries),
            "Scores": _scores(entries),
            "Primary comparisons": [_verdicts(entries)],
            "Arms": _arms(entries),
            "Layer profiles": layer_profiles.section(profiles) if profiles else [],
        }
        for heading, paragraphs in sections.items():
            parts += [f"## {heading}", *paragraphs] if paragraphs else []
    if problems:
        parts += ["## Problems", listed(problems)]
    return "\n\n".join(parts) + "\n"


@styled
def draw_cover(entries: Sequence[CoverEntry]) -> dict[str, Figure]:
    """Draw the figures of the cover: file name without ending -> figure; none without learned mix weights."""
    profiles, measured = _profiles(entries), _distances(entries)
    figures = {"layer_profiles": layer_profiles.draw(profiles)} if profiles else {}
    return figures | ({"distances": distances.draw(measured)} if measured and measured.drawn else {})


def _distances(entries: Sequence[CoverEntry]) -> distances.Info | None:
    """Return the distances of the cases that were run alike, of a backbone and a dataset once."""
    alike, _ = run_alike(_cases(entries))
    known = ((*case.trained_on, case.name) for case in reversed(alike))
    of_data = {(backbone, data or name): name for backbone, data, name in known}
    own = [entry for entry in entries if entry.name in of_data.values()]
    return distances.info([(entry.name, entry.report, entry.evidence) for entry in own])


def _profiles(entries: Sequence[CoverEntry]) -> list[layer_profiles.Profile]:
    return [
        layer_profiles.Profile(entry.name, entry.report, entry.evidence.learned_arm, entry.evidence.profile)
        for entry in entries
        if len(entry.evidence.profile)
    ]


def _scores(entries: Sequence[CoverEntry]) -> list[str]:
    """A row per case: the control, and the arm with the best mean on validation."""
    rows = []
    for entry in entries:
        plan, evidence, estimates = entry.loaded.plan, entry.evidence, entry.estimates
        rows.append(
            [
                entry.report,
                entry.score,
                NONE if plan.baseline is None else f"{number(plan.baseline)} (validation)",
                estimates.get(plan.control, NONE),
                f"{code(evidence.best_arm)}: {estimates[evidence.best_arm]}" if evidence.best_arm else NONE,
            ]
        )
    heads = ["report", "score", "trivial model", "control, mean [95% interval]"]
    heads += ["best arm on validation, mean [95% interval]"]
    return [
        "The best arm is selected on validation, among many: its own mean is slightly optimistic.",
        table(heads, rows),
    ]


def _backbones(entries: Sequence[CoverEntry]) -> list[str]:
    """Return what the backbones are, a row each; nothing where there is one alone."""
    backbones = [entry.loaded.study.environment.backbone for entry in entries]
    rows = [
        [
            code(backbone.name),
            escape(backbone.objective) or "not known",
            escape(backbone.family) or NONE,
            f"{backbone.layers} of width {backbone.width}",
            f"{backbone.parameters:,}",
        ]
        for backbone in {backbone.id: backbone for backbone in backbones if backbone.id}.values()
    ]
    heads = ["backbone", "pretrained for", "family", "layers", "parameters"]
    return [table(heads, rows)] if len(rows) > 1 else []


def _verdicts(entries: Sequence[CoverEntry]) -> str:
    rows = []
    for entry in entries:
        verdicts = [claim.verdict for claim in entry.evidence.claims if claim.primary]
        counts = [str(verdicts.count(verdict)) for verdict in (BETTER, WORSE, SAME, OPEN)]
        rows.append([entry.report, code(entry.loaded.plan.control), *counts, state(entry.loaded.study)])
    return table(["report", "control", BETTER, WORSE, SAME, OPEN, "remarks"], rows)


def _arms(entries: Sequence[CoverEntry]) -> list[str]:
    names = list(dict.fromkeys(name for entry in entries for name in entry.evidence.arms["arm"]))
    columns = [entry.estimates for entry in entries]
    rows = [[code(name), *(column.get(name, "not an arm here") for column in columns)] for name in names]
    grid = table(["arm", *(f"{entry.report}: {entry.score}" for entry in entries)], rows)
    elsewhere = ", those between columns under *Across cases*" if len(entries) > 1 else ""
    return [
        "Mean of each arm with its 95% t interval over n seeds, not corrected. Corrected comparisons are in each "
        f"report{elsewhere}.",
        folded("Every arm", len(names), grid),
    ]
