"""Reports: from the files of a results folder to tables, claims, figures and a page of Markdown.

One way, each step pure but the last:

    load        results folder -> frames and the plan of the study, with all that is missing named
    tables, history_tables, claims, looks, rungs, resampling (on statistics)     frames -> small frames, verdicts
    space, importances, interaction, ranges, surfaces, curves, layers, data_size, predicted (together: findings)
                frames -> small frames that no claim rests on
    evidence    all of these, worked out once per report
    figures, *_figures (on drawing, style)                  small frames -> matplotlib figures
    markdown, answer, *sections, discipline, checks, colophon, cover, index      small frames -> text
    kept        importances that take long, in the results folder
    write       puts it on disk: report.md, claims.json, contrasts.json, figures/, index.md

Nothing here imports torch, ray, transformers, mlflow or datasets, and nothing needs the network. Optuna is
imported where importances are worked out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adalayers.results.folder import Folder

__all__ = ["write_cover", "write_report"]


def write_report(folder: Folder | str | Path) -> str:
    """Write the report of a results folder, as `reports.write.write_report` does; imported when it is called."""
    from reports import write

    return write.write_report(folder)


def write_cover(study_root: Folder | str | Path, folders: Sequence[Folder | str | Path]) -> str:
    """Write the cover over several, as `reports.write.write_cover` does; imported when it is called."""
    from reports import write

    return write.write_cover(study_root, folders)
