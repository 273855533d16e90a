"""What a results folder holds. `adalayers.results(folder)` reads one: the package itself can be called."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from adalayers.results.frames import AllResults, StudyResults


class _Called(ModuleType):
    """A module that is a function too."""

    def __call__(self, folder: str | Path) -> StudyResults | AllResults:
        from adalayers.results.frames import results

        return results(folder)


sys.modules[__name__].__class__ = _Called
