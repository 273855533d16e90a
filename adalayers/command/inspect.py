"""python -m adalayers inspect: what a trained task is, where its weight lies, and what it costs."""

from __future__ import annotations

from adalayers.deploy.card import bars, interval
from adalayers.deploy.facts import Facts, facts
from adalayers.deploy.task import TrainedTask


def inspect(folder: str) -> None:
    """Print the facts of the trained parts in a folder, or in a repository of the hub."""
    print(described(facts(TrainedTask.from_pretrained(folder).model)))


def described(known: Facts) -> str:
    """Return the facts as lines for a terminal."""
    lines = [
        known.title,
        f"  {known.kind}" + (f", labels {', '.join(known.labels)}" if known.labels else ""),
        f"  base model {known.backbone}",
    ]
    lines.append(f"  fusion {known.fusion}, {known.parameters:,} trained parameters")
    if known.weights:
        lines += [
            "",
            "mix weights (00: embeddings)",
            *("  " + line for line in bars(known.weights).splitlines()),
        ]
    lines += ["", f"hidden states read: {', '.join(known.live)} of a base model of {known.of} layers"]
    if known.frozen:
        how = (
            "one sum, added up while it runs"
            if known.summed
            else "hidden states, kept until its pass is over"
        )
        lines.append(f"kept per token: {known.kept:,} numbers ({how})")
    share = "" if known.base is None else f", {known.operations / known.base:.2%} of the base model's layers"
    lines.append(
        f"per token: {known.operations / 1e6:.3g} million operations next to the base model's pass{share}"
    )
    return "\n".join([*lines, *_study(known)])


def _study(known: Facts) -> list[str]:
    """Return what the study says, as far as it is known."""
    study = known.study
    if not study:
        return ["", "trained on: nothing says (no study around this folder)"]
    data = study["dataset"]
    sizes = ", ".join(f"{count:,} {split}" for split, count in data.get("examples", {}).items())
    lines = ["", f"trained on: {data['name']} ({sizes}), study {study['study']}, {study['name']}"]
    if study.get("smoke"):
        lines.append("a smoke run: its scores mean nothing")
    for one in study.get("scores", []):
        mean = f"mean of {one['n']} seeds {interval(one)}" if one["n"] > 1 else "one seed"
        lines.append(f"  {one['split']} {one['metric']}: {one['value']:.4f} ({mean})")
    return lines
