"""What there is to say of trained parts without a base model at hand: mix weights, size, cost, origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adalayers.deploy.answers import kind_of, label_names
from adalayers.models.model import FusionModel
from adalayers.storage import hub


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts of trained parts.

    weights:    hidden state -> its mix weight, in order; empty for a method without such weights
    live:       names of the hidden states that are read; of: how many the base model has
    parameters: trained numbers; acting: weights that act on a token at use, next to the base model
    kept:       numbers per token kept until a pass of the base model is over
    frozen:     whether the base model is as it was, so that other tasks can share its passes
    summed:     whether the fusion is added up while the base model runs
    operations: per token next to the base model; base: of the base model's layers, None where that is not known
    """

    title: str
    fusion: str
    kind: str
    labels: tuple[str, ...]
    backbone: str
    weights: dict[str, float]
    live: tuple[str, ...]
    of: int
    parameters: int
    acting: int
    kept: int
    frozen: bool
    summed: bool
    operations: int
    base: int | None
    study: dict[str, Any]


def facts(model: FusionModel) -> Facts:
    """Return the facts of trained parts; those of their study as far as they are kept with them."""
    about = model.about
    study = about.get("study", {})
    of = about.get("backbone", {})
    named = f"{of['id']}@{of['revision']}" if of.get("revision") else of.get("id", model.shape.family)
    data = study.get("dataset", {}).get("name") or about.get("dataset", {}).get("source") or "unknown data"
    noted = model.fusion.diagnostics()
    weights = {key.partition("/weight_")[2]: value for key, value in noted.items() if "/weight_" in key}
    of_layer = study.get("backbone", {}).get("layer_parameters") or 0
    acting = model.weights_at_use()
    return Facts(
        title=f"{data} on {hub.last_part(named.partition('@')[0])}",
        fusion=model.config.fusion,
        kind=kind_of(model).title,
        labels=label_names(model),
        backbone=named,
        weights=weights,
        live=tuple(state.name for state in model.fusion.live()),
        of=model.shape.streams[0].layers,
        parameters=model.n_parameters(),
        acting=acting,
        kept=model.kept_at_use(),
        frozen=model.config.base_model == "frozen",
        summed=model.fusion.terms() is not None,
        operations=2 * acting,
        base=2 * of_layer * model.shape.streams[0].layers or None,
        study=study,
    )
