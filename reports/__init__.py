"""Reports: from the files of a results folder to tables, claims, figures and a page of Markdown.

    words     numbers as text, labels
    render    templates (`templates/`), in which all text is escaped that is not Markdown already
    reading   a results folder -> frames and the request of the study, with all that is missing named
    tables    frames -> tidy frames
    evidence  claims and their statistics; all that pages rest on, computed once
    plots     tidy frames -> figures
    sections  one file per section of details.md: its tables and figures
    page      report.md and details.md; the cover over several folders
    write     puts it on disk: report.md, details.md, claims.json, contrasts.json, figures/

Each package imports those above it in this list alone. Nothing here imports torch, ray, transformers, mlflow or
datasets, and nothing needs the network. Importing this package imports none of them: a command that only
prints its help pays for no pandas and no matplotlib.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from adalayers.errors import BadInput

if TYPE_CHECKING:
    from adalayers.storage.folder import Folder

__all__ = ["check", "undecided_arms", "write_cover", "write_report"]


def check() -> None:
    """Draw a figure of a word and keep nothing: asked before a study whose end its pages are.

    Raises:
        BadInput: It cannot be drawn.
    """
    try:
        from reports import plots as style
        from reports.write import images

        with style.own_style():
            figure, _ = style.single(1.0, "word", "word")
        images(figure)
    except Exception as error:  # of many kinds: matplotlib reads files and fonts of the user's
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise BadInput(
            f"wanted to draw figures, which fails here ({why}); mend Matplotlib's installation, or the matplotlibrc "
            "of the current folder or of yours"
        ) from error


def write_report(folder: Folder | str | Path) -> str:
    """Rebuild the pages, claims, contrasts and figures/ of a folder from its files alone.

    Returns the path (or URI) of report.md. The same files give the same bytes. Raises `BadInput` where
    the folder holds no study.
    """
    from reports import write

    return f"{write.build(folder).loaded.folder.uri}/{write.REPORT}"


def write_cover(study_root: Folder | str | Path) -> str:
    """Write `<study_root>/report.md` and its figure over the results folders in it; returns its path (or URI).

    One that cannot be read is named on the page.
    """
    from reports import write

    return write.write_cover(study_root)


def undecided_arms(folder: Folder | str | Path, running: Collection[str] | None = None) -> frozenset[str]:
    """Return the arms that some primary comparison of a study needs more seeds of, from its files as they are.

    A comparison is decided once it is better, worse or within the smallest effect; one whose arms ran without
    giving a single pair of seeds is waited for no longer.

    Args:
        folder: Of the study.
        running: The arms that can get seeds; None: all.
    """
    from reports.evidence.claims import undecided
    from reports.evidence.evidence import Evidence
    from reports.reading.load import load

    evidence = Evidence(load(folder))
    trials = evidence.trials
    ended = trials[(trials["stage"] == "confirm") & (trials["status"] != "unfinished")]
    return undecided(evidence.over_seeds, set(ended["arm"]), running)
