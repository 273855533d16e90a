"""The command line, `adalayers` or `python -m adalayers`: studies, reports, and what is done with their results.

Each command's own module is imported once its flags are parsed: `--help` does not wait for it.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from adalayers import __version__
from adalayers.command.main import main as run_study
from adalayers.console.command_line import DONE, Parser, run_command
from adalayers.errors import local_path
from adalayers.installed import own_module
from adalayers.storage.cache_folder import default_cache

_FOLDER = "a study's best/, a folder that save_pretrained wrote, or a hub id org/name"


def main(argv: list[str] | None = None) -> int:
    """Run a command; return its exit code: 0 done, 1 a repeated trial scores otherwise, 2 bad input.

    A study's is that of `adalayers.command.main`.
    """
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["study"]:
        return run_command(lambda: _study(argv[1:]))
    if argv[:1] == ["report"]:
        code: int = own_module("reports.__main__").main(argv[1:], "adalayers report")
        return code
    parser = Parser(prog="adalayers", allow_abbrev=False)
    parser.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        default=argparse.SUPPRESS,
        help="print the version, and its commit where known",
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    commands.add_parser("study", help="run a study by its name; without one, list all of them")
    commands.add_parser("report", help="rebuild the reports of results folders")
    _add_list(commands.add_parser("list", help="list the studies of a results folder, and how each stands"))
    _add_new_study(commands.add_parser("new-study", help="write a study of your own to begin with"))
    _add_cache(commands.add_parser("cache", help="list what the feature store holds, and remove of it"))
    _add_sync(commands.add_parser("sync", help="mirror a finished study's results folder to MLflow"))
    _add_decide(commands.add_parser("decide", help="say what scores made elsewhere allow one to claim"))
    noise = commands.add_parser("noise", help="say how much such scores vary, and how many seeds they take")
    _add_scores(noise)
    noise.set_defaults(run=_noise)
    _add_export(
        commands.add_parser("export", help="print a study's tables for a paper: arms and comparisons")
    )
    _add_repeat(commands.add_parser("repeat", help="train one trial of a study again, alone, and compare"))
    _add_predict(
        commands.add_parser(
            "predict", help="ask trained tasks about texts, those of one base model on one pass"
        )
    )
    _add_inspect(commands.add_parser("inspect", help="say what a trained task is, and what it costs"))

    def run() -> int:
        arguments = vars(parser.parse_args(argv))
        return arguments.pop("run")(**arguments) or DONE

    return run_command(run)


def _study(words: list[str]) -> int:
    """Run the study that the first word names, or list all of them."""
    from adalayers.command.studies import find_study, list_studies

    if not words or words[0] in ("-h", "--help"):
        list_studies()
        return DONE
    return run_study(find_study(words[0]), argv=words[1:], program=f"adalayers study {words[0]}")


class _Version(argparse.Action):
    """Prints what this is, and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from adalayers.console.progress import show
        from adalayers.results.provenance import git_state

        commit = git_state().commit
        show(f"adalayers {__version__}" + (f" ({commit})" if commit else ""))
        parser.exit()


def _add_list(parser: argparse.ArgumentParser) -> None:
    help = "results/, or a folder within (default: %(default)s)"
    parser.add_argument("folder", nargs="?", default="results", metavar="FOLDER", help=help)
    parser.set_defaults(run=_list)


def _list(*, folder: str) -> None:
    from adalayers.command.list_results import list_results
    from adalayers.storage.folder import Folder

    list_results(Folder(folder))


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache-dir", metavar="DIR", help="default: ADALAYERS_CACHE, else the user's cache folder"
    )
    parser.add_argument(
        "--remove",
        dest="names",
        nargs="+",
        default=[],
        metavar="NAME",
        help="remove these; * and ? stand for any characters",
    )
    parser.add_argument(
        "--keep-gb", type=float, metavar="N", help="remove what was used longest ago until this much is left"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and leave it")
    parser.set_defaults(run=_cache)


def _cache(*, cache_dir: str | None, **removal: Any) -> None:
    from adalayers.command.cache import Removal, list_or_remove

    root = local_path(cache_dir, "--cache-dir") if cache_dir else default_cache()
    list_or_remove(root, Removal(**removal))


def _add_sync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", help="<output>/<study>/<backbone>-<dataset>")
    parser.add_argument(
        "--tracking-uri", metavar="URI", help="default: MLFLOW_TRACKING_URI, else <output>/mlflow.db"
    )
    parser.set_defaults(run=_sync)


def _sync(*, folder: str, tracking_uri: str | None) -> None:
    from adalayers.console.progress import show
    from adalayers.storage.folder import Folder
    from adalayers.storage.redaction import redacted
    from adalayers.tracking.mirror import default_uri, sync

    results = Folder(folder)
    uri = tracking_uri or default_uri(results.parent().parent())
    written = sync(results, uri)
    show(f"{written} trials written to MLflow at {redacted(uri)}; those already there were left as they are")


def _add_new_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the study and its files, which are written here")
    parser.set_defaults(run=_new_study)


def _new_study(*, name: str) -> None:
    from adalayers.command.new_study import new_study

    new_study(name)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="<output>/<study>/<backbone>-<dataset>")
    parser.add_argument(
        "--format",
        dest="form",
        choices=("latex", "csv", "json"),
        default="latex",
        help="latex: two tables in booktabs; csv and json: with all columns (default: %(default)s)",
    )
    parser.set_defaults(run=_export)


def _export(*, folder: str, form: Any) -> None:
    from adalayers.results.export import export
    from adalayers.results.frames import StudyResults

    print(export(StudyResults(folder), form), end="")


def _add_decide(parser: argparse.ArgumentParser) -> None:
    compared = parser.add_mutually_exclusive_group(required=True)
    compared.add_argument(
        "--control", default="", metavar="NAME", help="compare every other arm with this one"
    )
    help = "compare these alone"
    compared.add_argument("--pairs", nargs="+", default=[], metavar="ARM:CONTROL", help=help)
    parser.add_argument("--lower-is-better", action="store_true", help="of errors, losses, times")
    help = "exit code 0 if this arm is better, 3 worse, 4 no difference, 5 open"
    parser.add_argument("--gate", metavar="NAME", help=help)
    help = "default: %(default)s"
    forms = ("page", "latex", "json")
    parser.add_argument("--format", dest="form", choices=forms, default="page", help=help)
    _add_scores(parser)
    parser.set_defaults(run=_decide)


def _add_scores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="SCORES.csv", help="a row per run; - for standard input")
    for name in ("arm", "seed"):
        help = "default: %(default)s" + "; none: no runs belong together" * (name == "seed")
        parser.add_argument(f"--{name}-column", dest=name, default=name, metavar="NAME", help=help)
    for name, default, help in (("score", ["score"], "default: score"), ("case", [], "compare within these")):
        parser.add_argument(
            f"--{name}-columns", dest=f"{name}s", nargs="+", default=default, metavar="NAME", help=help
        )
    help = "the smallest difference of interest, on the scores' scale"
    parser.add_argument("--smallest-effect", type=float, metavar="X", help=help)


def _decide(*, seed: str, **arguments: Any) -> int:
    from adalayers.command.decide import run_decide

    return run_decide(seed=None if seed == "none" else seed, **arguments)


def _noise(*, seed: str, **arguments: Any) -> None:
    from adalayers.command.decide import run_noise

    run_noise(seed=None if seed == "none" else seed, **arguments)


def _add_repeat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="<output>/<study>/<backbone>-<dataset>")
    parser.add_argument("trial_id", metavar="TRIAL", help="a trial_id of its trials.csv")
    for name in ("backbone", "dataset"):
        help = f"where the {name} is; default: by the name that the study has"
        parser.add_argument(f"--{name}", metavar="NAME", help=help)
    _add_data_dir(parser)
    parser.set_defaults(run=_repeat)


def _repeat(**arguments: Any) -> int:
    from adalayers.command.repeat import repeat

    return repeat(**arguments)


def _add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        default=os.environ.get("ADALAYERS_DATA") or None,
        help="folder of local copies, tried before the hub (default: ADALAYERS_DATA)",
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help=_FOLDER)
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument(
        "--text", dest="texts", action="append", metavar="TEXT", help="a text; as often as there are texts"
    )
    texts.add_argument("--file", metavar="FILE", help="a text a line; default: standard input")
    parser.add_argument(
        "--format",
        dest="form",
        choices=("text", "jsonl"),
        default="text",
        help="of the answers (default: %(default)s)",
    )
    parser.add_argument(
        "--words",
        action="store_true",
        help="lines are words already, apart by white space: read them word by word",
    )
    parser.add_argument(
        "--backbone", metavar="NAME", help="where the base model is; default: by the id that the folders name"
    )
    _add_data_dir(parser)
    parser.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="most tokens of a text; default: 512, or what the base model takes",
    )
    parser.set_defaults(run=_predict)


def _predict(**arguments: Any) -> None:
    from adalayers.command.predict import predict

    predict(**arguments)


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help=_FOLDER)
    parser.set_defaults(run=_inspect)


def _inspect(*, folder: str) -> None:
    from adalayers.console.progress import show
    from adalayers.deploy.model_card import description
    from adalayers.deploy.task import TrainedTask

    show(description(TrainedTask.from_pretrained(folder).model))


if __name__ == "__main__":
    sys.exit(main())
