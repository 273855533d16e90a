"""The end of the page: set-up, provenance, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.evidence.evidence import Evidence
from reports.parts.answer import seeds_for_one_sd, seeds_for_smallest_effect
from reports.reading.frames import numbers
from reports.reading.load import Loaded, as_text, get, listing, mapping
from reports.words.labels import SPLITS, short
from reports.words.text import code, escape, number, several, table


def setup(loaded: Loaded) -> list[str]:
    """Return the set-up table (thesis figures 7, 11, 15), and the hyperparameters with their roles."""
    study, plan = loaded.results.study, loaded.plan
    backbone, dataset = mapping(study, "on", "backbone"), mapping(study, "on", "dataset")
    states = listing(study, "on", "hidden_states")
    direction = "lower" if plan.mode == "min" else "higher"
    rows = {
        "backbone": _named(backbone),
        "its size": _joined({name: backbone.get(name) for name in ("layers", "width", "parameters")}),
        "hidden states mixed": f"{len(states)}: {', '.join(map(str, states))}" if states else "",
        "added (trained) parameters": _added(loaded),
        "dataset": _named(dataset),
        "task": f"{dataset['kind']} classification" if dataset.get("kind") else "",
        "labels": ", ".join(map(str, listing(dataset, "labels"))),
        "examples": _joined(mapping(dataset, "examples")),
        "metric": f"{short(plan.metric)}, {direction} is better" if plan.metric else "",
        "smallest effect of interest": "" if plan.smallest_effect is None else f"{plan.smallest_effect:g}",
        "baseline (trivial model)": _joined(
            {SPLITS.get(split, split): value for split, value in mapping(dataset, "baseline").items()}
        ),
        "budget": _joined({name: get(study, "asked", name) for name in ("trials", "seeds", "epochs")}),
    }
    roles = {name: role for role in ("scientific", "nuisance") for name in listing(study, "asked", role)}
    hyperparameters = [
        [code(name), role if role != "space" else roles.get(name, "searched"), code(as_text(value))]
        for part, role in (("space", "space"), ("fixed", "fixed"), ("set", "fixed by the command"))
        for name, value in mapping(study, "asked", part).items()
    ]
    paragraphs = [_facts(rows)]
    if hyperparameters:
        paragraphs += [
            "Hyperparameters. Scientific ones are what the study is about; nuisance ones are searched so "
            "that the comparison is fair; the rest are fixed.",
            table(["name", "role", "value or search space"], hyperparameters),
        ]
    return paragraphs


def provenance(loaded: Loaded) -> list[str]:
    """Return where the numbers come from, and the commands that repeat them."""
    study, trials = loaded.results.study, loaded.results.trials
    happened, packages = mapping(study, "happened"), mapping(study, "on", "packages")
    commit, dirty = get(study, "on", "git", "commit"), get(study, "on", "git", "dirty")
    changes = {True: "with uncommitted changes", False: "no uncommitted changes"}.get(
        dirty, "changes unknown"
    )
    seeds = {
        str(stage): several([str(seed) for seed in sorted(rows["seed"].dropna().unique())], 12)
        for stage, rows in trials.groupby("stage", sort=True)
    }
    times = {
        "wall time": happened.get("wall_seconds"),
        "training, summed over trials": happened.get("training_seconds"),
    }
    machine = [get(study, "on", name) for name in ("python", "platform", "device")]
    rows = {
        "commit": f"{commit}, {changes}" if commit else "",
        "packages": ", ".join(f"{name} {version}" for name, version in packages.items()),
        "Python, platform, device": ", ".join(str(value) for value in machine if value),
        "seeds": "; ".join(f"{stage} {text}" for stage, text in seeds.items() if text),
        "started, ended": ", ".join(
            str(happened[name]) for name in ("started", "ended") if happened.get(name)
        ),
        "seconds": _joined(times),
        "trials at a time": str(happened.get("concurrency") or ""),
    }
    command = get(study, "asked", "command")
    commands = [str(command)] if command else []
    return [
        _facts(rows),
        "To repeat the study (first line), and to rebuild this page from its files alone (last line):",
        "\n".join(["```", *commands, "python -m reports <the folder of this page>", "```"]),
    ]


def limits(loaded: Loaded, evidence: Evidence) -> list[str]:
    """Return what the page does not show, a sentence or two each."""
    plan, claims = loaded.plan, evidence.claims
    found = [
        "One backbone and one dataset: nothing here says how far the findings carry.",
        "Intervals of means cover the spread between seeds (initialisation and order of the data). Only those under "
        "*What the intervals cover* that say so cover the choice of examples too. None covers the choice of the "
        "training examples, which all trials share.",
        "Arms were compared with the control, not with each other.",
        "Verdicts are corrected together, over arms and looks: without any real difference, at most 5% of studies ever "
        "claim one, as long as paired differences are roughly normal. Scores, entropy of the mix and speed are "
        "corrected each by itself.",
    ]
    if claims:
        found += [seeds_for_one_sd(claims), seeds_for_smallest_effect(claims, plan)]
    return [sentence for sentence in found if sentence]


def _added(loaded: Loaded) -> str:
    """Return the parameters that trials train, and their share of the backbone's."""
    added = numbers(loaded.results.trials, "parameters").dropna()
    if added.empty:
        return ""
    ends = sorted({int(added.min()), int(added.max())})
    text = " to ".join(f"{end:,}" for end in ends)
    size = get(loaded.results.study, "on", "backbone", "parameters")
    if isinstance(size, (int, float)) and size > 0:
        text += f" ({' to '.join(f'{end / size:.2%}' for end in ends)} of the backbone)"
    return text


def _named(what: Mapping[str, Any]) -> str:
    """Return "name (id or source, revision ..., fingerprint ...)" with what is known."""
    known = [str(what[key]) for key in ("id", "source") if what.get(key)]
    known += [f"{key} {what[key]}" for key in ("revision", "fingerprint") if what.get(key)]
    name = str(what.get("name") or "")
    return f"{name} ({', '.join(known)})" if known else name


def _joined(values: Mapping[str, Any]) -> str:
    """Return "train 7,695, test 1,043", whole numbers as such, unknown values left out."""

    def text(value: Any) -> str:
        if not isinstance(value, (int, float)):
            return str(value)
        return number(value, 0 if float(value).is_integer() else 3)

    return ", ".join(f"{name} {text(value)}" for name, value in values.items() if value is not None)


def _facts(rows: Mapping[str, str]) -> str:
    return table(
        ["what", "value"], [[name, escape(value, 1000) or "not stated"] for name, value in rows.items()]
    )
