"""Where hidden states are stored where the user names no folder."""

from __future__ import annotations

import os
from pathlib import Path

from adalayers.errors import local_path


def default_cache() -> Path:
    """Return ADALAYERS_CACHE, else `adalayers` in the user's cache folder."""
    if path := os.environ.get("ADALAYERS_CACHE"):
        return local_path(path, "ADALAYERS_CACHE")
    return local_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "the user's cache folder") / "adalayers"
