"""Cut a results folder down to what a repository should hold: `python -m reports.publish FOLDER...`.

What stays is the page with the figures that it shows, the claims, and the files that both are rebuilt from;
`python -m reports FOLDER` writes the rest again. The folder's own trained model and unfinished trials go too: publish
a copy.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from adalayers.results.files import BEST, REPORT, WORK
from reports.parts.part import DETAILS, FIGURES
from reports.write import BEST_SET, CONTRASTS

NOTE = (
    f"*Published without `{DETAILS}` and vector figures; `python -m reports` on this folder writes them.*\n"
)
_FIGURE_LINK = re.compile(r"\[(!\[[^\]]*\]\([^)]*\.png\))\]\([^)]*\.svg\)")
_ONLY_A_LINK = re.compile(rf" ?(?:All numbers|More): \[details\]\({re.escape(DETAILS)}[^)]*\)\.")
_DETAILS_LINK = re.compile(rf"\[[^\]]*\]\([^)]*{re.escape(DETAILS)}[^)]*\)")
_SHOWN = re.compile(rf"\({FIGURES}/([^)]*\.png)\)")


def published(page: str) -> str:
    """Return a page without links to what is not published."""
    page = _ONLY_A_LINK.sub("", _FIGURE_LINK.sub(r"\1", page))
    return _DETAILS_LINK.sub(f"`{DETAILS}`", page).removesuffix(NOTE).rstrip("\n") + f"\n\n{NOTE}"


def publish(folder: Path) -> None:
    """Remove from a study's folder, or that of its cover, all that the published page does not need."""
    page = published((folder / REPORT).read_text())
    (folder / REPORT).write_text(page)
    shown = set(_SHOWN.findall(page))
    for name in (DETAILS, CONTRASTS, BEST_SET):
        (folder / name).unlink(missing_ok=True)
    for name in (BEST, WORK):
        shutil.rmtree(folder / name, ignore_errors=True)
    for figure in (folder / FIGURES).glob("*"):
        if figure.name not in shown:
            figure.unlink()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        publish(Path(argument))
