"""Commands beside the study scripts: python -m adalayers cache | sync."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from adalayers.errors import BadInput
from adalayers.features import cache
from adalayers.features.store import default_cache
from adalayers.progress import duration, say
from adalayers.results.folder import Folder
from adalayers.results.redaction import redacted
from adalayers.tracking.mirror import default_uri, sync


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
    root = Path(arguments.cache_dir).expanduser().resolve() if arguments.cache_dir else default_cache()
    for flag in ("unused_days", "keep_gb"):
        value = getattr(arguments, flag)
        if value is not None and not value >= 0:
            raise BadInput(f"wanted --{flag.replace('_', '-')} of at least 0, got {value:g}; raise it")
    found = cache.entries(root)
    taken = cache.chosen(
        found,
        names=arguments.remove,
        unused_days=arguments.unused_days,
        keep_bytes=None if arguments.keep_gb is None else arguments.keep_gb * 1e9,
    )
    if arguments.remove and not taken:
        raise BadInput(
            f"wanted stores named {' '.join(arguments.remove)}, {root} holds {_names(found)}; "
            "python -m adalayers cache lists them"
        )
    if arguments.remove or arguments.unused_days is not None or arguments.keep_gb is not None:
        _remove(taken, dry_run=arguments.dry_run)
        return
    for entry in found:
        print(_described(entry))
    print(f"{len(found)} stores, {_size(sum(entry.bytes for entry in found))}, in {root}")


def _remove(taken: list[cache.Entry], *, dry_run: bool) -> None:
    freed = 0
    for entry in taken:
        if dry_run:
            print(f"would remove {entry.name}, {_size(entry.bytes)}")
        elif cache.remove(entry):
            freed += entry.bytes
            print(f"removed {entry.name}, {_size(entry.bytes)}")
        else:
            print(f"left {entry.name}: another process is computing it")
    print(f"{_size(freed)} freed")


def _described(entry: cache.Entry) -> str:
    about, ago = entry.about, duration(max(0.0, time.time() - entry.used))
    what = (
        f"{about.get('dataset', '?')} {about.get('split', '?')}, {about.get('examples', '?')} sequences, "
        f"{about.get('tokens', '?')} tokens, {about.get('stored_as', '?')}"
        if entry.is_whole
        else "not finished: the next study that needs it goes on with it"
    )
    return f"{entry.name}  {_size(entry.bytes)}, used {ago} ago  {what}"


def _names(found: list[cache.Entry]) -> str:
    return ", ".join(entry.name for entry in found) or "none"


def _size(n: float) -> str:
    return f"{n / 1e9:.2f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"


def _add_sync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", help="<output>/<study>/<backbone>-<dataset>")
    parser.add_argument(
        "--tracking-uri", metavar="URI", help="default: MLFLOW_TRACKING_URI, else <output>/mlflow.db"
    )
    parser.set_defaults(run=_sync)


def _sync(arguments: argparse.Namespace) -> None:
    folder = Folder(arguments.folder)
    uri = arguments.tracking_uri or default_uri(Folder(folder.uri.rsplit("/", 2)[0]))
    written = sync(folder, uri)
    print(f"{written} trials written to MLflow at {redacted(uri)}; those already there were left as they are")


if __name__ == "__main__":
    sys.exit(main())
