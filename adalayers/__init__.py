"""AdaLayers: hyperparameter and ablation studies of layer fusion on frozen transformers."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adalayers.command.decide import decide as decide
    from adalayers.command.from_python import study as study
    from adalayers.results.frames import results as results

__version__ = "0.1.0"
__all__ = ["TrainedTask", "__version__", "attach", "decide", "load", "results", "study"]

_LAZY = {
    "TrainedTask": "adalayers.deploy.task",
    "attach": "adalayers.deploy.attached",
    "decide": "adalayers.command.decide",
    "load": "adalayers.models.saved",
    "results": "adalayers.results.frames",
    "study": "adalayers.command.from_python",
}


class _Package(ModuleType):
    """`adalayers.results` and `adalayers.study` are functions, also once the modules of these names are imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Import what needs torch only when it is asked for: `import adalayers` stays free of it."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'adalayers' has no attribute {name!r}")
