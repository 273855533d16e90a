"""The model card of a trained task: what it is, what it costs, and what its study found."""

from __future__ import annotations

import json

from huggingface_hub import ModelCardData

from adalayers.deploy.predictions import label_names, task_kind
from adalayers.deploy.summary import ScoreSummary, study_of
from adalayers.escaping import code, escape
from adalayers.models.model import FusionModel
from adalayers.results.intervals import LEVEL, MIN_N
from adalayers.results.study_file import splits_in_words
from adalayers.storage import hub

_BAR_WIDTH = 20


def model_card(model: FusionModel) -> str:
    """Return the card as Markdown with its header in YAML."""
    base = _backbone(model).partition("@")[0]
    header = ModelCardData(
        library_name="adalayers",
        tags=["adalayers", "layer-fusion"],
        pipeline_tag=f"{'token' if model.shape.per_token else 'text'}-classification",
        base_model=base if base.count("/") == 1 else None,  # a hub id, not a folder
    )
    return f"---\n{header.to_yaml()}\n---\n\n{description(model)}\n\n{_use(model)}\n"


def description(model: FusionModel) -> str:
    """Return what is known of a trained task as Markdown: what it is, scores, mix weights, cost, training."""
    study, dataset = study_of(model.about), model.about.get("dataset")
    data = study.dataset.name if study else dataset.get("source") if isinstance(dataset, dict) else None
    base = hub.last_part(_backbone(model).partition("@")[0])
    title = f"# {escape(data or 'unknown data')} on {escape(base)}"
    sections = [title, _contents(model), _scores(model), _mix_weights(model), _cost(model), _training(model)]
    return "\n\n".join(section for section in sections if section)


def _backbone(model: FusionModel) -> str:
    """Return the id of the base model with its revision; its family where the parts do not name it."""
    backbone = model.about.get("backbone", {})
    full_id = backbone.get("id", model.shape.family)
    return f"{full_id}@{backbone['revision']}" if backbone.get("revision") else full_id


def _frozen(model: FusionModel) -> bool:
    return model.config.base_model == "frozen"


def _contents(model: FusionModel) -> str:
    frozen, labels = _frozen(model), label_names(model)
    base_weights = "no weight of it is" if frozen else "the weights that were trained within it are"
    sharing = " One pass of the base model serves its own task and any number of these." if frozen else ""
    return (
        f"A trained fusion of hidden states (`{model.config.fusion}`) and a head for {task_kind(model).title}: "
        f"{model.n_parameters():,} trained parameters next to {code(_backbone(model))}; {base_weights} inside.{sharing}"
        + (f" Labels: {', '.join(map(code, labels))}." if labels else "")
    )


def _scores(model: FusionModel) -> str:
    study = study_of(model.about)
    if study is None or not study.scores:
        return ""
    rows = [
        f"| {escape(score.split)} | {escape(score.metric)} | {score.value:.4f} | {_interval(score)} | {score.n} |"
        for score in study.scores
    ]
    smoke = " **A smoke run: these numbers mean nothing.**" if study.smoke else ""
    head = "| split | score | this model | mean over seeds | n |\n|---|---|---|---|---|"
    return (
        "\n".join(["## Scores", "", head, *rows, ""])
        + "\nThis model is the best of its study on validation, so its own scores there flatter it. Mean over seeds: "
        f"models of the same configuration, with the {LEVEL:.0%} t interval of their mean from {MIN_N} seeds on.{smoke}"
    )


def _interval(score: ScoreSummary) -> str:
    """Return the mean of a score with its interval: "0.5210 [0.4921, 0.5499]"."""
    if score.low is None or score.high is None:
        return f"{score.mean:.4f}"
    return f"{score.mean:.4f} [{score.low:.4f}, {score.high:.4f}]"


def _mix_weights(model: FusionModel) -> str:
    """Return the mix weights as bars of text, one hidden state a line, the widest `_BAR_WIDTH` wide."""
    diagnostics = model.fusion.diagnostics().items()
    weights = {key.partition("/weight_")[2]: value for key, value in diagnostics if "/weight_" in key}
    if not weights:
        return ""
    most = max(map(abs, weights.values())) or 1.0
    width = max(map(len, weights))
    bars = [
        f"{name:>{width}} {weight:7.4f} {'█' * round(_BAR_WIDTH * abs(weight) / most)}".rstrip()
        for name, weight in weights.items()
    ]
    embeddings = ["", "00 is the embeddings."] if any(name.endswith("00") for name in weights) else []
    return "\n".join(["## Mix weights", "", "```", *bars, "```", *embeddings])


def _cost(model: FusionModel) -> str:
    """Return what is read of the base model, and what the task takes next to its pass."""
    layers, operations = model.shape.streams[0].layers, 2 * model.weights_at_use()
    study = study_of(model.about)
    layer_parameters = study.layer_parameters if study else 0
    share = (
        f", {operations / (2 * layer_parameters * layers):.2%} of the base model's layers"
        if layer_parameters
        else ""
    )
    live = ", ".join(state.name for state in model.fusion.live())
    lines = [f"- Hidden states read: {live} of a base model of {layers} layers"]
    if _frozen(model):
        summed = model.fusion.terms() is not None
        how = "one sum, added up while it runs" if summed else "hidden states, kept until its pass is over"
        lines.append(f"- Kept per token: {model.kept_at_use():,} numbers ({how})")
    lines.append(
        f"- Per token: {operations / 1e6:.3g} million operations next to the base model's pass{share}"
    )
    return "\n".join(["## Cost", "", *lines])


def _training(model: FusionModel) -> str:
    study = study_of(model.about)
    if study is None:
        return ""
    data = study.dataset
    revision = f" at revision {code(data.revision)}" if data.revision else ""
    copied = f", read from a local folder {code(data.path)}" if data.path else ""
    sizes = ", ".join(f"{count:,} {escape(split)}" for split, count in data.examples.items())
    commit = [f"- Code: commit {code(study.commit)}"] if study.commit else []
    lines = [
        f"- Data: {escape(data.name)} ({code(data.source)}{revision}{copied}); examples: {sizes}",
        *([f"- Splits: {escape(splits_in_words(data.roles, data.unused))}"] if data.roles else []),
        f"- Base model: {code(_backbone(model))}" + (", frozen" if _frozen(model) else ""),
        f"- Study: {code(study.study)} ({code(study.name)}), selected by {escape(study.metric)} on validation"
        + (f"; arm {code(study.arm)}" if study.arm else "; found by its search"),
        *commit,
    ]
    return "\n".join(["## Trained on", "", *lines])


def _use(model: FusionModel) -> str:
    base, _, revision = _backbone(model).partition("@")
    named = json.dumps(base) + (f", revision={json.dumps(revision)}" if revision else "")
    if not _frozen(model):
        return (
            "## Use\n\n```python\nfrom adalayers import TrainedTask\n\n"
            'task = TrainedTask.from_pretrained("<this repository>")  # loads its base model too\n```'
        )
    return (
        "## Use\n\n```python\nimport adalayers\nfrom transformers import AutoModel, AutoTokenizer\n\n"
        f"base, tokenizer = AutoModel.from_pretrained({named}), AutoTokenizer.from_pretrained({named})\n"
        'task = adalayers.TrainedTask.from_pretrained("<this repository>")\n'
        "with adalayers.attach(base.eval(), task=task) as attached:\n"
        '    texts = ["A text."]\n    inputs = tokenizer(texts, return_tensors="pt")\n'
        "    base(**inputs)  # or a task model's own pass\n"
        "    print(attached.answers(texts, inputs))\n```\n\n"
        'From the command line: `adalayers predict <folder> --text "A text."`'
    )
