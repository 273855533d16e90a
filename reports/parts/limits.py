"""What the page does not show, a sentence or two each."""

from __future__ import annotations

from dataclasses import dataclass

from reports.evidence.claims import Claim
from reports.evidence.evidence import Evidence
from reports.parts.part import Part
from reports.parts.seeds import seeds_for_one_sd, seeds_for_smallest_effect
from reports.reading.data import cuts, shared
from reports.reading.load import Plan
from reports.words.text import escape, listed, several


@dataclass(frozen=True)
class Info:
    """cut: splits with examples cut to the maximum length; shared: those with examples that are in train too."""

    claims: tuple[Claim, ...]
    plan: Plan
    cut: tuple[str, ...]
    shared: tuple[str, ...]


def info(evidence: Evidence) -> Info:
    dataset = evidence.loaded.study.on.dataset
    cut = tuple(cut.text() for cut in cuts(dataset) if cut.examples)
    return Info(tuple(evidence.claims), evidence.plan, cut, tuple(shared(dataset)))


def section(info: Info) -> list[str]:
    found = [
        "One backbone and one dataset: nothing here says how far the findings carry.",
        "Intervals of means cover the spread between seeds (initialisation and order of the data). Only those under "
        "*What the intervals cover* that say so cover the choice of examples too. None covers the choice of the "
        "training examples, which all trials share.",
        "Arms were compared with the control, not with each other.",
        "Verdicts are corrected together, over arms and interim analyses: without any real difference, at most 5% of "
        "studies ever claim one, as long as paired differences are roughly normal. Scores, entropy of the mix and "
        "speed are corrected each by itself.",
    ]
    if info.cut:
        found.append(
            f"Examples were cut to the maximum length: {escape(several(info.cut))}. Nothing here is about what was cut "
            "off."
        )
    if info.shared:
        found.append(
            f"Examples that also stand in train: {escape(several(info.shared))}. Scores count them, and a model may "
            "know them by heart."
        )
    if info.claims:
        found += [seeds_for_one_sd(info.claims), seeds_for_smallest_effect(info.claims, info.plan)]
    return [listed(sentence for sentence in found if sentence)]


PART = Part("Limits", info, section)
