"""Commands next to the study scripts: python -m adalayers cache | sync.

Each command's own module is imported once its flags are parsed: `--help` does not wait for it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from adalayers.cache_folder import default_cache
from adalayers.errors import BadInput
from adalayers.progress import say


def main(argv: list[str] | None = None) -> int:
    """Run a command; return its exit code: 0 done, 2 bad input."""
    parser = argparse.ArgumentParser(prog="python -m adalayers", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    _add_cache(commands.add_parser("cache", help="list what the feature store holds, and remove of it"))
    _add_sync(commands.add_parser("sync", help="mirror a finished study's results folder to MLflow"))
    arguments = parser.parse_args(argv)
    try:
        arguments.run(arguments)
    except BadInput as error:
        say(f"error: {error}")
        return 2
    return 0


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache-dir", metavar="DIR", help="default: ADALAYERS_CACHE, else the user's cache folder"
    )
    parser.add_argument(
        "--remove",
        nargs="+",
        default=[],
        metavar="NAME",
        help="remove these; * and ? stand for any characters",
    )
    parser.add_argument(
        "--unused-days", type=float, metavar="N", help="remove what no study has used for so many days"
    )
    parser.add_argument(
        "--keep-gb", type=float, metavar="N", help="remove what was used longest ago until this much is left"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and leave it")
    parser.set_defaults(run=_cache)


def _cache(arguments: argparse.Namespace) -> None:
    from adalayers.command.cache import Removal, list_or_remove

    root = Path(arguments.cache_dir).expanduser().resolve() if arguments.cache_dir else default_cache()
    removal = Removal(
        names=tuple(arguments.remove),
        unused_days=arguments.unused_days,
        keep_gb=arguments.keep_gb,
        dry_run=arguments.dry_run,
    )
    list_or_remove(root, removal)


def _add_sync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", help="<output>/<study>/<backbone>-<dataset>")
    parser.add_argument(
        "--tracking-uri", metavar="URI", help="default: MLFLOW_TRACKING_URI, else <output>/mlflow.db"
    )
    parser.set_defaults(run=_sync)


def _sync(arguments: argparse.Namespace) -> None:
    from adalayers.results.folder import Folder
    from adalayers.results.redaction import redacted
    from adalayers.tracking.mirror import default_uri, sync

    folder = Folder(arguments.folder)
    uri = arguments.tracking_uri or default_uri(Folder(folder.uri.rsplit("/", 2)[0]))
    written = sync(folder, uri)
    print(f"{written} trials written to MLflow at {redacted(uri)}; those already there were left as they are")


if __name__ == "__main__":
    sys.exit(main())
