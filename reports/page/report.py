"""The page: a loaded folder and its evidence -> Markdown. Sections in the order a reader asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from reports.evidence.evidence import Evidence
from reports.parts import (
    checks,
    colophon,
    discipline,
    error_sections,
    layer_sections,
    search_sections,
    sections,
)
from reports.parts.answer import answer
from reports.reading.load import Loaded, as_text, get, listing, mapping
from reports.words.labels import SPLITS
from reports.words.text import code, count, escape, listed, several


def report(loaded: Loaded, evidence: Evidence) -> str:
    """Return the whole page, with links relative to the results folder."""
    study = loaded.results.study
    question = get(study, "asked", "question", default="(not stated in study.json)")
    doubts = checks.doubts(loaded, evidence)
    parts = [
        _title(loaded),
        _banner(study, loaded.results.trials),
        _section("Question", escape(question, 2000)),
        _section(
            "Answer", *answer(evidence.claims, evidence.contrasts, loaded.plan), checks.headline(doubts)
        ),
        _section("How it was done", *_method(study, evidence)),
        _section("Arms", *sections.arms(loaded, evidence)),
        _section("What the intervals cover", *discipline.certainty(evidence)),
        _section("Single layers", *layer_sections.single_layers(loaded, evidence)),
        _section("Score against data size", *layer_sections.data_size(loaded, evidence)),
        _section(
            "The factorial core",
            *sections.core(evidence),
            *search_sections.interaction(evidence),
            *sections.score_by_alpha(evidence),
        ),
        _section("Convergence", *sections.learning_curves(evidence), *sections.convergence(evidence)),
        _section("What λ does to the mix", *sections.mix(evidence)),
        _section("Mix weights of the best model", *sections.best(loaded, evidence)),
        _section("Scores by entity class", *error_sections.classes(loaded, evidence)),
        _section("Errors", *error_sections.errors(loaded, evidence)),
        _section("The search, apart", *sections.search(loaded, evidence)),
        _section("What the search's scores hang on", *search_sections.importances(loaded, evidence)),
        _section("Where the search went", *search_sections.surface(evidence)),
        _section("Looks", *discipline.looks(loaded, evidence)),
        _section("Use of the test split", *discipline.openings(loaded, evidence)),
        _section("Failures", *sections.failures(evidence)),
        _section("Problems in the files", *sections.problems(loaded)),
        _section("What speaks against it", *checks.section(doubts)),
        _section("Limits", listed(colophon.limits(loaded, evidence))),
        _section("Set-up", *colophon.setup(loaded)),
        _section("Provenance", *colophon.provenance(loaded)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, *paragraphs: str) -> str:
    """Return a section, or nothing where there are no paragraphs."""
    shown = [paragraph for paragraph in paragraphs if paragraph]
    return "\n\n".join([f"## {title}", *shown]) if shown else ""


def _title(loaded: Loaded) -> str:
    study, plan = loaded.results.study, loaded.plan
    backbone, dataset = get(study, "on", "backbone", "name"), get(study, "on", "dataset", "name")
    where = f"{backbone} on {dataset}" if backbone and dataset else plan.name
    return f"# {escape(plan.study)}: {escape(where)}"


def _banner(study: Mapping[str, Any], trials: pd.DataFrame) -> str:
    """Say first what makes the page less than a finished study."""
    lines = []
    if get(study, "happened", "smoke"):
        lines.append(
            "**Smoke run**: a few trials and examples, to see that everything works. Its scores mean little."
        )
    if get(study, "on", "git", "dirty"):
        lines.append(
            "**Uncommitted changes**: the code that made these results is in no commit, so they cannot be "
            "repeated exactly."
        )
    state, left = get(study, "happened", "state"), int((trials["status"] == "unfinished").sum())
    if state is None:
        lines.append("**Unfinished study?** `study.json` does not say that it finished.")
    elif state != "finished":
        lines.append(
            f"**Unfinished study**: it ended with the state {code(state)}. Seeds or arms may be missing."
        )
    if left:
        lines.append(f"**Unfinished trials**: {count(left, 'trial')}, listed under Failures.")
    return "\n>\n".join(f"> {line}" for line in lines)


def _method(study: Mapping[str, Any], evidence: Evidence) -> list[str]:
    """Say how the numbers came about, and what that keeps them from saying."""
    tools = [code(tool) for tool in (get(study, "asked", "search"), get(study, "asked", "scheduler")) if tool]
    seeds = get(study, "asked", "seeds")
    paragraphs = [
        "**The model.** A frozen backbone gives hidden states. Each is projected, and the layer mix adds "
        "the projections up with the mix weights p̃ = softmax(α p). The loss is cross-entropy plus λ "
        "times the entropy of p̃ (in nats). Projections, mix and head are trained; the backbone is not.",
        f"**The search**{f' ({several(tools)})' if tools else ''} draws configurations and stops poor ones "
        "early, on validation scores. Such pruning favours fast starters, and α is the speed of p, so "
        "**the search alone cannot judge α**.",
        "**The confirmation** trains every arm below in full, without pruning, all with the same "
        f"{count(seeds, 'seed') if isinstance(seeds, int) else 'seeds'}. Only this stage supports claims. "
        "Arms use the study's own setting of every nuisance hyperparameter; only the search's best "
        "carries what the search found.",
        "**One axis.** Under Adam, without weight decay on p, one step moves a logit of the mix by about "
        "α × `mix_lr`: α and `mix_lr` are one axis. What is found about α here holds for that product, at "
        "the `mix_lr` used.",
        f"**Splits.** Models are chosen on validation. Arms are compared on {SPLITS[evidence.split]} scores"
        + (
            "."
            if evidence.split == "test"
            else ", for lack of test scores: choosing and comparing share a split."
        ),
    ]
    given = mapping(study, "asked", "set")
    held = [
        code(f"{name}={as_text(given[name])}")
        for name in listing(study, "asked", "scientific")
        if name in given
    ]
    if held:
        paragraphs.append(
            f"**Fixed by the command**, though the study is about it: {several(held)}. Nothing is said here "
            "about other values."
        )
    dropped = [
        f"{code(item.get('arm', '?'))}: {escape(item.get('reason', 'no reason given'))}"
        for item in listing(study, "asked", "dropped_arms")
        if isinstance(item, Mapping)
    ]
    if dropped:
        paragraphs += ["**Arms left out** before the start:", listed(dropped)]
    notes = [escape(note, 1000) for note in listing(study, "asked", "notes")]
    if notes:
        paragraphs += ["**Notes** of the study:", listed(notes)]
    return paragraphs
