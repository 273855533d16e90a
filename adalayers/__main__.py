"""Commands beside the study scripts: python -m adalayers sync <folder>."""

from __future__ import annotations

import argparse
import sys

from adalayers.errors import BadInput
from adalayers.progress import say
from adalayers.redaction import redacted
from adalayers.results import Folder
from adalayers.tracking import default_uri, sync


def main(argv: list[str] | None = None) -> int:
    """Run a command; return its exit code: 0 done, 2 bad input."""
    parser = argparse.ArgumentParser(prog="python -m adalayers", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    syncing = commands.add_parser("sync", help="mirror a finished study's results folder to MLflow")
    syncing.add_argument("folder", help="<output>/<study>/<backbone>-<dataset>")
    syncing.add_argument(
        "--tracking-uri", metavar="URI", help="default: MLFLOW_TRACKING_URI, else <output>/mlflow.db"
    )
    arguments = parser.parse_args(argv)
    folder = Folder(arguments.folder)
    try:
        uri = arguments.tracking_uri or default_uri(Folder(folder.uri.rsplit("/", 2)[0]))
        written = sync(folder, uri)
    except BadInput as error:
        say(f"error: {error}")
        return 2
    print(f"{written} trials written to MLflow at {redacted(uri)}; those already there were left as they are")
    return 0


if __name__ == "__main__":
    sys.exit(main())
