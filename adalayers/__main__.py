"""The command line, `adalayers` or `python -m adalayers`: studies, reports, and what is done with their results.

Each command's own module is imported once its flags are parsed: `--help` does not wait for it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable

from adalayers import __version__
from adalayers.command.main import main as run_study
from adalayers.console.command_line import DONE, Parser, run_command
from adalayers.installed import own_module

_TRAINED = "a study's best/, a folder that save_pretrained wrote, or a hub id org/name"
_RESULTS = "<output>/<study>/<backbone>-<dataset>"


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

    def run() -> int:
        arguments = vars(_parser().parse_args(argv))
        module, _, function = arguments.pop("run").partition(":")
        command = getattr(importlib.import_module(f"adalayers.command.{module}"), function)
        return command(**arguments) or DONE

    return run_command(run)


def _study(words: list[str]) -> int:
    """Run the study that the first word names, or list all of them."""
    from adalayers.command.studies import find_study, list_studies

    if not words or words[0] in ("-h", "--help"):
        list_studies()
        return DONE
    return run_study(find_study(words[0]), argv=words[1:], program=f"adalayers study {words[0]}")


def _parser() -> argparse.ArgumentParser:
    whole = Parser(prog="adalayers", allow_abbrev=False)
    whole.add_argument("--version", action="version", version=f"adalayers {__version__}")
    commands = whole.add_subparsers(required=True, metavar="command")

    def command(name: str, runs: str, help: str) -> argparse.ArgumentParser:
        """Add a command that runs "module:function" with its flags by name; return its parser."""
        added: argparse.ArgumentParser = commands.add_parser(name, help=help)
        added.set_defaults(run=runs)
        return added

    command("study", "", "run a study by its name; without one, list all of them")
    command("report", "", "rebuild the reports of results folders")

    flag = command("list", "results:list_results", "list the studies of a folder, with states").add_argument
    flag("folder", nargs="?", default="results", metavar="FOLDER", help="default: %(default)s")

    flag = command("new-study", "new_study:new_study", "write a study of your own to begin with").add_argument
    flag("name", metavar="NAME", help="of the study and its files, which are written here")

    flag = command("cache", "cache:list_or_remove", "list the feature store, and remove of it").add_argument
    flag("--cache-dir", metavar="DIR", help="default: ADALAYERS_CACHE, else the user's cache folder")
    flag("--remove", dest="names", nargs="+", default=[], metavar="NAME", help="remove these; * and ? match")
    flag("--keep-gb", type=float, metavar="N", help="remove those used longest ago until this much is left")
    flag("--dry-run", action="store_true", help="say what would be removed, and leave it")

    flag = command("sync", "results:sync", "mirror a finished study's results folder to MLflow").add_argument
    flag("folder", help=_RESULTS)
    flag("--tracking-uri", metavar="URI", help="default: MLFLOW_TRACKING_URI, else <output>/mlflow.db")

    parser = command("decide", "decide:run_decide", "say what scores made elsewhere allow one to claim")
    flag, either = parser.add_argument, parser.add_mutually_exclusive_group(required=True).add_argument
    either("--control", default="", metavar="NAME", help="compare every other arm with this one")
    either("--pairs", nargs="+", default=[], metavar="ARM:CONTROL", help="compare these alone")
    flag("--lower-is-better", action="store_true", help="of errors, losses, times")
    flag("--gate", metavar="NAME", help="exit code 0 if it is better, 3 worse, 4 no difference, 5 open")
    _format(flag, "page", "latex", "json")
    _scores(flag)

    flag = command("noise", "decide:run_noise", "say how much such scores vary over seeds").add_argument
    _scores(flag)

    flag = command("export", "results:export", "print a study's tables for a paper").add_argument
    flag("folder", metavar="FOLDER", help=_RESULTS)
    _format(flag, "latex", "csv", "json", what="two tables in booktabs, or all columns; ")

    flag = command("repeat", "repeat:repeat", "train a study's trial again, alone, and compare").add_argument
    flag("folder", metavar="FOLDER", help=_RESULTS)
    flag("trial_id", metavar="TRIAL", help="a trial_id of its trials.csv")
    flag("--backbone", metavar="NAME", help="where the backbone is; default: as the study has it")
    flag("--dataset", metavar="NAME", help="where the dataset is; default: as the study has it")
    _data_dir(flag)

    parser = command("predict", "predict:predict", "ask trained tasks of one base model about texts")
    flag, either = parser.add_argument, parser.add_mutually_exclusive_group().add_argument
    flag("folders", nargs="+", metavar="FOLDER", help=_TRAINED)
    either("--text", dest="texts", action="append", metavar="TEXT", help="a text; may be given again")
    either("--file", metavar="FILE", help="a text a line; default: standard input")
    _format(flag, "text", "jsonl")
    flag("--words", action="store_true", help="lines are words already, apart by white space")
    flag("--backbone", metavar="NAME", help="where the base model is; default: by the id in the folders")
    _data_dir(flag)
    flag("--max-length", type=int, metavar="N", help="in tokens; default: as in the study, else 512")

    flag = command("inspect", "results:inspect", "say what a trained task is, and what it costs").add_argument
    flag("folder", metavar="FOLDER", help=_TRAINED)
    return whole


def _format(flag: Callable[..., argparse.Action], *forms: str, what: str = "") -> None:
    """Add --format; the first is the default."""
    flag("--format", dest="form", choices=forms, default=forms[0], help=f"{what}default: %(default)s")


def _data_dir(flag: Callable[..., argparse.Action]) -> None:
    there = os.environ.get("ADALAYERS_DATA") or None
    flag("--data-dir", metavar="DIR", default=there, help="of local copies; default: ADALAYERS_DATA")


def _scores(flag: Callable[..., argparse.Action]) -> None:
    """Add the flags that say how a table of runs is read."""
    flag("file", metavar="SCORES.csv", help="a row per run; - for standard input")
    flag("--arm-column", dest="arm", default="arm", metavar="NAME", help="default: %(default)s")
    seed = {"default": "seed", "type": lambda name: None if name == "none" else name}
    flag("--seed-column", dest="seed", metavar="NAME", help="default: %(default)s; or none", **seed)
    flag("--score-columns", dest="scores", nargs="+", default=["score"], metavar="NAME")
    flag("--case-columns", dest="cases", nargs="+", default=[], metavar="NAME", help="compare within these")
    flag("--smallest-effect", type=float, metavar="X", help="the smallest difference of interest")


if __name__ == "__main__":
    sys.exit(main())
