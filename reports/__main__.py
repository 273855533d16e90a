"""`python -m reports <folder>...`: rebuild report, claims and figures from the files of a results folder.

A folder above several studies rebuilds each below it, and the cover of every study with folders of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from adalayers.errors import BadInput
from adalayers.results import Folder
from reports.write import find_studies, write_cover, write_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0 done, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m reports", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder",
        nargs="+",
        help="a results folder, <output>/<study>/<backbone>-<dataset>, or one above several",
    )
    try:
        for folder in parser.parse_args(arguments).folder:
            for path in rebuild(folder):
                print(path)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def rebuild(folder: str) -> list[str]:
    """Rebuild every report at or below `folder`; returns the paths written, covers last."""
    root = _local(folder)
    studies = find_studies(root)
    if not studies:
        raise BadInput(
            f"wanted a results folder, found no study.json in or below {root.uri}; name a folder that a "
            "study wrote, <output>/<study>/<backbone>-<dataset>, or one above it"
        )
    written = [write_report(study) for study in studies]
    if studies[0].uri == root.uri:
        return written
    above: dict[str, list[Folder]] = {}
    for study in studies:
        above.setdefault(study.uri.rsplit("/", 1)[0], []).append(study)
    return written + [write_cover(parent, below) for parent, below in above.items()]


def _local(folder: str) -> Folder:
    try:
        return Folder(folder)
    except (ValueError, OSError) as error:  # a URI that nothing here can open
        raise BadInput(f"wanted a results folder, got {folder!r}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
