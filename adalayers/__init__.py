"""AdaLayers: hyperparameter and ablation studies of layer fusion on frozen transformers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adalayers.results.frames import results as results

__version__ = "0.1.0"
__all__ = ["TrainedTask", "__version__", "attach", "load", "results"]

_LAZY = {
    "TrainedTask": "adalayers.deploy.task",
    "attach": "adalayers.deploy.attached",
    "load": "adalayers.models.saved",
}


def __getattr__(name: str) -> Any:
    """Import what needs torch only when it is asked for: `import adalayers` stays free of it."""
    if name == "results":
        return importlib.import_module("adalayers.results")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'adalayers' has no attribute {name!r}")
