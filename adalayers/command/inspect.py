"""adalayers inspect: what a trained task is, where its weight lies, and what it costs."""

from __future__ import annotations

from adalayers.console.progress import show
from adalayers.deploy.model_card import description
from adalayers.deploy.task import TrainedTask


def inspect(folder: str) -> None:
    """Print what is known of the trained parts in a folder, or in a repository of the hub."""
    show(description(TrainedTask.from_pretrained(folder).model))
