"""The model card of a trained task: what it is, what it costs, and what its study found."""

from __future__ import annotations

import json
from pathlib import Path

from huggingface_hub import ModelCard, ModelCardData

from adalayers.deploy.predictions import label_names, task_kind
from adalayers.deploy.summary import study_of
from adalayers.escaping import code, escape
from adalayers.models.model import FusionModel
from adalayers.results.intervals import LEVEL, MIN_N
from adalayers.results.study_file import splits_in_words
from adalayers.storage import hub

_TEMPLATE = str(Path(__file__).with_name("model_card.md.j2"))


def model_card(model: FusionModel) -> ModelCard:
    """Return the card: what a task is, its scores with intervals, mix weights, cost, training and use."""
    study, dataset, about = study_of(model.about), model.about.get("dataset"), model.about.get("backbone", {})
    base, revision = str(about.get("id", model.shape.family)), about.get("revision")
    header = ModelCardData(
        library_name="adalayers",
        tags=["adalayers", "layer-fusion"],
        pipeline_tag=f"{'token' if model.shape.per_token else 'text'}-classification",
        base_model=base if base.count("/") == 1 else None,  # a hub id, not a folder
    )
    diagnostics = model.fusion.diagnostics().items()
    weights = {key.partition("/weight_")[2]: value for key, value in diagnostics if "/weight_" in key}
    return ModelCard.from_template(
        header,
        _TEMPLATE,
        model=model,
        study=study,
        data=study.dataset.name if study else dataset.get("source") if isinstance(dataset, dict) else None,
        base=base,
        backbone=f"{base}@{revision}" if revision else base,
        named=json.dumps(base) + (f", revision={json.dumps(revision)}" if revision else ""),
        title=task_kind(model).title,
        labels=[code(label) for label in label_names(model)],
        weights=weights,
        most=max(map(abs, weights.values()), default=0.0) or 1.0,
        level=f"{LEVEL:.0%}",
        min_n=MIN_N,
        escape=escape,
        code=code,
        last_part=hub.last_part,
        splits_in_words=splits_in_words,
    )
