"""`adalayers report <folder>...`: rebuild report, claims and figures from the files of a results folder.

A folder above several studies rebuilds each below it, and the cover of every study with folders of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adalayers.console.command_line import BAD_INPUT, DONE, Parser, run_command
from adalayers.errors import BadInput
from adalayers.escaping import plain
from reports import check

if TYPE_CHECKING:
    from adalayers.storage.folder import Folder
    from reports.evidence.evidence import Evidence


def main(arguments: Sequence[str] | None = None, program: str = "python -m reports") -> int:
    """Return the exit code: 0 done, 2 bad input."""
    parser = Parser(prog=program, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder",
        nargs="+",
        help="a results folder, <output>/<study>/<backbone>-<dataset>, or one above several",
    )
    parser.add_argument(
        "--html",
        action="store_true",
        help="report.html too: both pages with their figures in one file, to share",
    )

    def run() -> int:
        flags = parser.parse_args(arguments)
        broken = False
        for folder in flags.folder:
            written, errors = rebuild(folder, html=flags.html)
            for path in written:
                print(plain(path))
            for error in errors:
                print(plain(error), file=sys.stderr)
            broken = broken or bool(errors)
        return BAD_INPUT if broken else DONE

    return run_command(run)


def rebuild(folder: str, *, html: bool = False) -> tuple[list[str], list[BadInput]]:
    """Rebuild every report at or below `folder`; returns the paths written, covers last.

    Also returns what was wrong with studies that cannot be read: they do not keep others from their reports.
    """
    # Here, not above: `--help` and a mistyped flag need no pandas and no matplotlib.
    from adalayers.results.files import REPORT
    from adalayers.results.frames import find_studies
    from adalayers.storage.folder import Folder
    from reports.write import build, write_cover, write_html

    studies = find_studies(Folder(folder))
    check()
    built: list[Evidence] = []
    written, errors = [], []
    for study in studies:
        try:
            built.append(build(study))
            written += [f"{study.uri}/{REPORT}", *([write_html(study)] if html else [])]
        except BadInput as error:
            errors.append(error)
    above: dict[str, list[Folder]] = {}
    for study in studies:
        above.setdefault(study.parent().address, []).append(study)
    covers = [write_cover(parent, below, built) for parent, below in above.items() if len(below) > 1]
    return [*written, *covers], errors


if __name__ == "__main__":
    sys.exit(main())
