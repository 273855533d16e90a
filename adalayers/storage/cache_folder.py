"""Where hidden states are stored where the user names no folder."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from adalayers.environ import HOME_PREFIX
from adalayers.errors import local_path

logger = logging.getLogger(__name__)


def default_cache() -> Path:
    """Return ADALAYERS_CACHE, else `adalayers` in the user's cache folder.

    It is said where that goes with the command, for the user has no home.
    """
    if path := os.environ.get("ADALAYERS_CACHE"):
        return local_path(path, "ADALAYERS_CACHE")
    folder = local_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "the user's cache folder")
    if any(parent.name.startswith(HOME_PREFIX) for parent in folder.parents):
        logger.warning(
            "this user has no home folder: hidden states are not kept for a next run; give --cache-dir"
        )
    return folder / "adalayers"
