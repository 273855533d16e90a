"""The model card of a trained task, written from what its study found."""

from __future__ import annotations

import json
from typing import Any

from adalayers.deploy.summary import LEVEL, TaskSummary, summarize
from adalayers.models.model import FusionModel

_PIPELINES = {"sequence": "text-classification", "token": "token-classification"}
"""What the hub calls a task, by what its head gives outputs of."""
_BAR_WIDTH = 20


def model_card(model: FusionModel) -> str:
    """Return the card as Markdown with its header in YAML."""
    summary = summarize(model)
    parts = [
        _header(model, summary),
        f"# {summary.title}",
        _contents(summary),
        *_results(summary),
        _training(summary),
        _use(summary),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(model: FusionModel, summary: TaskSummary) -> str:
    fields: dict[str, Any] = {
        "library_name": "adalayers",
        "tags": ["adalayers", "layer-fusion"],
        "pipeline_tag": _PIPELINES[model.shape.head],
    }
    base = summary.backbone.partition("@")[0]
    if base.count("/") == 1:  # a hub id, not a folder
        fields["base_model"] = base
    # A value of JSON is one of YAML too.
    return "\n".join(["---", *(f"{name}: {json.dumps(value)}" for name, value in fields.items()), "---"])


def _contents(summary: TaskSummary) -> str:
    base_weights = "no weight of it is" if summary.frozen else "the weights that were trained within it are"
    sharing = (
        " One pass of the base model serves its own task and any number of these." if summary.frozen else ""
    )
    return (
        f"A trained fusion of hidden states (`{summary.fusion}`) and a head for {summary.kind}: "
        f"{summary.parameters:,} trained parameters next to `{summary.backbone}`; {base_weights} inside.{sharing}"
        + (f" Labels: {', '.join(f'`{label}`' for label in summary.labels)}." if summary.labels else "")
    )


def _results(summary: TaskSummary) -> list[str]:
    """Return scores and mix weights, as far as they are known."""
    sections = []
    if scores := summary.study.get("scores"):
        rows = ["| split | score | this model | mean over seeds | n |", "|---|---|---|---|---|"]
        rows += [
            f"| {score['split']} | {score['metric']} | {score['value']:.4f} | {interval(score)} | {score['n']} |"
            for score in scores
        ]
        smoke = " **A smoke run: these numbers mean nothing.**" if summary.study.get("smoke") else ""
        sections.append(
            "## Scores\n\n"
            + "\n".join(rows)
            + f"\n\nThis model is the best of its study on validation, so its own "
            f"scores there flatter it. Mean over seeds: models of the same configuration, with the {LEVEL:.0%} Student "
            f"interval of their mean.{smoke}"
        )
    if summary.weights:
        sections.append(f"## Mix weights\n\n```\n{bars(summary.weights)}\n```\n\n00 is the embeddings.")
    return sections


def _training(summary: TaskSummary) -> str:
    study = summary.study
    if not study:
        return ""
    data, examples = study["dataset"], study["dataset"].get("examples", {})
    revision = f" at revision `{data['revision']}`" if data.get("revision") else ""
    sizes = ", ".join(f"{count:,} {split}" for split, count in examples.items())
    lines = [
        f"- Data: {data['name']} (`{data['source']}`{revision}); examples: {sizes}",
        f"- Base model: `{summary.backbone}`" + (", frozen" if summary.frozen else ""),
        f"- Study: `{study['study']}` (`{study['name']}`), selected by {study['metric']} on validation"
        + (f"; arm `{study['arm']}`" if study.get("arm") else "; found by its search"),
    ]
    if study.get("commit"):
        lines.append(f"- Code: commit `{study['commit']}`")
    return "## Trained on\n\n" + "\n".join(lines)


def _use(summary: TaskSummary) -> str:
    base = summary.backbone.partition("@")[0]
    if not summary.frozen:
        return (
            "## Use\n\n```python\nfrom adalayers import TrainedTask\n\n"
            'task = TrainedTask.from_pretrained("<this repository>")  # loads its base model too\n```'
        )
    return (
        "## Use\n\n```python\nimport adalayers\nfrom transformers import AutoModel, AutoTokenizer\n\n"
        f'base, tokenizer = AutoModel.from_pretrained("{base}"), AutoTokenizer.from_pretrained("{base}")\n'
        'task = adalayers.TrainedTask.from_pretrained("<this repository>")\n'
        "with adalayers.attach(base.eval(), task=task) as attached:\n"
        '    base(**tokenizer("A text.", return_tensors="pt"))  # or a task model\'s own pass\n'
        '    print(attached.answer("task"))\n```\n\n'
        'From the command line: `python -m adalayers predict <folder> --text "A text."`'
    )


def interval(score: dict[str, Any]) -> str:
    """Return the mean of a score with its interval: "0.5210 [0.4921, 0.5499]"."""
    mean = f"{score['mean']:.4f}"
    return mean if score["low"] is None else f"{mean} [{score['low']:.4f}, {score['high']:.4f}]"


def bars(weights: dict[str, float]) -> str:
    """Return mix weights as bars of text, one hidden state a line, the widest `_BAR_WIDTH` wide."""
    most = max((abs(weight) for weight in weights.values()), default=0.0) or 1.0
    width = max(map(len, weights))
    return "\n".join(
        f"{name:>{width}} {weight:7.4f} {'█' * round(_BAR_WIDTH * abs(weight) / most)}".rstrip()
        for name, weight in weights.items()
    )
