"""Reports: from the files of a results folder to tables, claims, figures and a page of Markdown.

    words     names, numbers and tables as text
    reading   a results folder -> frames and the plan of the study, with all that is missing named
    evidence  frames -> small tables, claims and their statistics
    drawing   how figures look
    parts     one file per part of the page: what it shows, its figures, its words
    page      the parts in their order; the cover over several folders; the index of a results root
    write     puts it on disk: report.md, claims.json, contrasts.json, figures/, index.md

Each room imports those above it in this list alone. Nothing here imports torch, ray, transformers, mlflow or
datasets, and nothing needs the network. Importing this package imports none of the rooms: a command that only
prints its help pays for no pandas and no matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adalayers.results.folder import Folder

__all__ = ["write_cover", "write_report"]


def write_report(folder: Folder | str | Path) -> str:
    """Rebuild report.md, claims.json, contrasts.json and figures/ of a results folder from its files alone.

    Returns the path (or URI) of report.md. The same files give the same bytes. Raises `BadInput` where
    the folder holds no study.
    """
    from reports import write

    return write.build(folder).path


def write_cover(study_root: Folder | str | Path, folders: Iterable[Folder | str | Path]) -> str:
    """Write `<study_root>/report.md` and its figure over several results folders; returns its path (or URI).

    A folder is a `Folder`, a path, or the name of one below `study_root`. One that cannot be read is named
    on the page.
    """
    from reports import write

    return write.write_cover(study_root, folders)
