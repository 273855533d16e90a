"""The cover page over the folders of one study: arms by folder, and a link to each report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from reports.evidence.across import Across, across, case_of
from reports.evidence.claims import BETTER, OPEN, SAME, WORSE
from reports.evidence.evidence import Evidence
from reports.page.index import ASIDE
from reports.parts import across as across_parts
from reports.parts import distances, layer_profiles
from reports.reading.frames import records
from reports.reading.load import Loaded
from reports.words.labels import SPLITS, short
from reports.words.text import NONE, code, escape, estimate, folded, listed, number, table


@dataclass(frozen=True)
class Entry:
    """One folder on the cover: `link` leads from the cover to its folder.

    A link is named by its folder, which a study set aside by `--fresh` does not share with its successor.
    """

    link: str
    evidence: Evidence

    @property
    def loaded(self) -> Loaded:
        return self.evidence.loaded


def across_cases(entries: Sequence[Entry]) -> Across:
    """Return what can be claimed across the cases, those that `--fresh` set aside left out."""
    return across(case_of(_name(entry), entry.evidence) for entry in entries if not ASIDE.search(entry.link))


def cover(
    title: str, entries: Sequence[Entry], problems: Sequence[str] = (), found: Across | None = None
) -> str:
    """Return the page.

    problems: names folders that could not be read; found: what `across_cases` returns, None: it is worked out
    """
    parts = [f"# {escape(title)}: all backbones and datasets"]
    questions = list(dict.fromkeys(entry.loaded.study.request.question for entry in entries))
    parts += [escape(question, 2000) for question in questions if question]
    if not entries:
        parts.append("No results to show yet.")
    else:
        measured = _distances(entries)
        parts += ["## Distance and score", *distances.section(measured)] if measured else []
        told = across_parts.section(found or across_cases(entries))
        parts += ["## Across cases", *told] if told else []
        backbones = _backbones(entries)
        parts += ["## Backbones", backbones] if backbones else []
        parts += ["## Scores", *_scores(entries), "## Primary comparisons", _verdicts(entries)]
        parts += ["## Arms", _explained(entries), folded("Every arm", len(_names(entries)), _arms(entries))]
        profiles = _profiles(entries)
        parts += ["## Layer profiles", *layer_profiles.section(profiles)] if profiles else []
    if problems:
        parts += ["## Problems", listed(problems)]
    return "\n\n".join(parts) + "\n"


def draw_cover(entries: Sequence[Entry]) -> dict[str, Figure]:
    """Draw the figures of the cover: file name without ending -> figure; none without learned mix weights."""
    profiles, measured = _profiles(entries), _distances(entries)
    figures = {} if profiles is None else {"layer_profiles": layer_profiles.draw(profiles)}
    return figures | ({"distances": distances.draw(measured)} if measured and measured.drawn else {})


def _distances(entries: Sequence[Entry]) -> distances.Info | None:
    return distances.info([(_name(entry), _link(entry), entry.evidence) for entry in entries])


def _profiles(entries: Sequence[Entry]) -> layer_profiles.Info | None:
    return layer_profiles.info(
        [
            layer_profiles.Profile(
                _name(entry), _link(entry), entry.evidence.learned_arm, entry.evidence.profile
            )
            for entry in entries
        ]
    )


def _scores(entries: Sequence[Entry]) -> list[str]:
    """A row per case: the control, and the arm with the best mean on validation."""
    rows = []
    for entry in entries:
        plan, evidence = entry.loaded.plan, entry.evidence
        score = {row["arm"]: _estimate(row) for row in records(evidence.arms)}
        best = evidence.best_set
        rows.append(
            [
                _link(entry),
                f"{SPLITS[evidence.split]} {escape(short(plan.metric))}",
                NONE if plan.baseline is None else f"{number(plan.baseline)} (validation)",
                score.get(plan.control, NONE),
                f"{code(evidence.best_arm)}: {score[evidence.best_arm]}" if evidence.best_arm else NONE,
                f"{len(best.arms)} of {len(best.arms) + len(best.excluded)}" if best.arms else NONE,
                code(best.cheapest) if best.cheapest else NONE,
            ]
        )
    heads = ["report", "score", "trivial model", "control, mean [95% interval]"]
    heads += [
        "best arm on validation, mean [95% interval]",
        "settings that may be best (95%)",
        "cheapest of them",
    ]
    return [
        "The best arm is picked on validation, among many: its own mean flatters it a little.",
        table(heads, rows),
    ]


def _backbones(entries: Sequence[Entry]) -> str:
    """Return what the backbones are, a row each; "" where there is one alone."""
    known = {of.id: of for entry in entries if (of := entry.loaded.study.environment.backbone).id}
    rows = [
        [
            code(of.name),
            escape(of.objective) or "not known",
            escape(of.family) or NONE,
            f"{of.layers} of width {of.width}",
            f"{of.parameters:,}",
        ]
        for of in known.values()
    ]
    heads = ["backbone", "pretrained for", "family", "layers", "parameters"]
    return table(heads, rows) if len(rows) > 1 else ""


def _verdicts(entries: Sequence[Entry]) -> str:
    rows = []
    for entry in entries:
        claims = [claim for claim in entry.evidence.claims if claim.primary]
        counts = [
            str(sum(claim.verdict == verdict for claim in claims)) for verdict in (BETTER, WORSE, SAME, OPEN)
        ]
        rows.append([_link(entry), code(entry.loaded.plan.control), *counts, _state(entry)])
    return table(["report", "control", BETTER, WORSE, SAME, OPEN, "remarks"], rows)


def _explained(entries: Sequence[Entry]) -> str:
    return (
        "Mean of each arm with its 95% t interval over n seeds, not corrected. Corrected comparisons are "
        "in the reports, those between columns under *Across cases*."
        if len(entries) > 1
        else "Mean of the arm with its 95% t interval over n seeds, not corrected. Corrected comparisons are "
        "in the report."
    )


def _arms(entries: Sequence[Entry]) -> str:
    heads = [
        f"{_link(entry)}: {SPLITS[entry.evidence.split]} {escape(short(entry.loaded.plan.metric))}"
        for entry in entries
    ]
    columns = [{row["arm"]: _estimate(row) for row in records(entry.evidence.arms)} for entry in entries]
    return table(
        ["arm", *heads],
        [
            [code(name), *(column.get(name, "not an arm here") for column in columns)]
            for name in _names(entries)
        ],
    )


def _names(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(name for entry in entries for name in entry.evidence.arms["arm"]))


def _estimate(row: Mapping[str, Any]) -> str:
    return estimate(row["mean"], row["low"], row["high"], row["n"])


def _name(entry: Entry) -> str:
    return entry.link.rsplit("/", 1)[-1]


def _link(entry: Entry) -> str:
    return f"[{escape(_name(entry))}](<{entry.link}/report.md>)"


def _state(entry: Entry) -> str:
    study = entry.loaded.study
    remarks = ["smoke run"] if study.runs.smoke else []
    remarks += ["uncommitted changes"] if study.environment.git.dirty else []
    remarks += [] if study.runs.state == "finished" else ["unfinished"]
    return ", ".join(remarks)
