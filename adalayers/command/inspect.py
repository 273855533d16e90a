"""python -m adalayers inspect: what a trained task is, where its weight lies, and what it costs."""

from __future__ import annotations

from adalayers.deploy.model_card import bars, interval
from adalayers.deploy.summary import TaskSummary, summarize
from adalayers.deploy.task import TrainedTask


def inspect(folder: str) -> None:
    """Print what is known of the trained parts in a folder, or in a repository of the hub."""
    print(described(summarize(TrainedTask.from_pretrained(folder).model)))


def described(summary: TaskSummary) -> str:
    """Return a summary as lines for a terminal."""
    lines = [
        summary.title,
        f"  {summary.kind}" + (f", labels {', '.join(summary.labels)}" if summary.labels else ""),
        f"  base model {summary.backbone}",
    ]
    lines.append(f"  fusion {summary.fusion}, {summary.parameters:,} trained parameters")
    if summary.weights:
        lines += [
            "",
            "mix weights (00: embeddings)",
            *("  " + line for line in bars(summary.weights).splitlines()),
        ]
    lines += ["", f"hidden states read: {', '.join(summary.live)} of a base model of {summary.layers} layers"]
    if summary.frozen:
        how = (
            "one sum, added up while it runs"
            if summary.summed
            else "hidden states, kept until its pass is over"
        )
        lines.append(f"kept per token: {summary.kept:,} numbers ({how})")
    share = (
        ""
        if summary.base_operations is None
        else f", {summary.operations / summary.base_operations:.2%} of the base model's layers"
    )
    lines.append(
        f"per token: {summary.operations / 1e6:.3g} million operations next to the base model's pass{share}"
    )
    return "\n".join([*lines, *_study(summary)])


def _study(summary: TaskSummary) -> list[str]:
    """Return what the study says, as far as it is known."""
    study = summary.study
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
