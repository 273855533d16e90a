"""`adalayers report <folder>...`: rebuild report, claims and figures from the files of a results folder.

A folder above several studies rebuilds each below it, and the cover of every study with folders of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from adalayers.console.command_line import BAD_INPUT, DONE, Parser, run_command
from adalayers.errors import BadInput
from adalayers.escaping import plain
from reports import check


def main(arguments: Sequence[str] | None = None, program: str = "python -m reports") -> int:
    """Return the exit code: 0 done, 2 bad input."""
    parser = Parser(prog=program, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder",
        nargs="+",
        help="a results folder, <output>/<study>/<backbone>-<dataset>, or one above several",
    )

    def run() -> int:
        whole = [rebuild(folder) for folder in parser.parse_args(arguments).folder]
        return DONE if all(whole) else BAD_INPUT

    return run_command(run)


def rebuild(folder: str) -> bool:
    """Rebuild every report at or below `folder`, covers last, and print their paths.

    What is wrong with studies that cannot be read is printed too, and does not keep others from their reports; returns
    whether all could be.
    """
    # Here, not above: `--help` and a mistyped flag need no pandas and no matplotlib.
    from adalayers.results.files import ASIDE, REPORT
    from adalayers.results.frames import find_studies
    from adalayers.storage.folder import Folder
    from reports.write import build, write_cover

    studies = find_studies(Folder(folder))
    check()
    built = []
    for study in studies:
        try:
            built.append(build(study))
            print(plain(f"{study.uri}/{REPORT}"))
        except BadInput as error:
            print(plain(error), file=sys.stderr)
    above = Counter(study.parent().address for study in studies if not ASIDE.search(study.name))
    for parent, named in above.items():
        if named > 1 or Folder(parent).exists(REPORT):
            print(plain(write_cover(parent, built)))
    return len(built) == len(studies)


if __name__ == "__main__":
    sys.exit(main())
