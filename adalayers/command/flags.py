"""Every flag of the study scripts, defined once."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from adalayers.config import TrialConfig, parse_overrides
from adalayers.errors import BadInput, unknown
from adalayers.features.store import PRECISIONS, default_cache
from adalayers.study import Study
from adalayers.tasks.kinds import KINDS

SMOKE = {"trials": 3, "seeds": 2, "epochs": 2, "train_examples": 96, "eval_examples": 64, "max_length": 64}
"""What --smoke asks for where the user does not."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message}; see --help")


def parser(study: Study) -> argparse.ArgumentParser:
    """Return the parser of a study's flags (`contract.md` lists them)."""
    p = _Parser(
        prog=f"studies/{study.name}.py",
        description=study.question,
        allow_abbrev=False,
    )
    what = p.add_argument_group("on what")
    what.add_argument(
        "--backbone",
        nargs="+",
        metavar="NAME",
        help="alias, hub id[@revision] or local folder, one or more (default: minilm)",
    )
    what.add_argument(
        "--dataset",
        nargs="+",
        metavar="NAME",
        help="imdb, cola, conll2003, acceptability-demo, entities-demo, hub id[:config][@revision] or local folder, "
        "one or more (default: the embedded demo; cola where --backbone is given)",
    )
    what.add_argument(
        "--text-column",
        metavar="NAME",
        help="column of texts or tokens, where the dataset's features do not tell",
    )
    what.add_argument("--label-column", metavar="NAME", help="column of labels, likewise")
    what.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder of local copies of datasets and backbones, tried before the hub (default: ADALAYERS_DATA)",
    )
    how = p.add_argument_group("how much")
    how.add_argument(
        "--search",
        choices=["grid", "random", "optuna"],
        default="optuna",
        help="how configurations are chosen (default: optuna)",
    )
    how.add_argument(
        "--scheduler",
        choices=["asha", "fifo"],
        default="asha",
        help="how the search's trials are stopped early (default: asha)",
    )
    how.add_argument("--trials", type=int, metavar="N", help="configurations of the search (default: 16)")
    how.add_argument(
        "--seeds", type=int, metavar="N", help="every confirmed arm runs with seeds S+1..S+N (default: 5)"
    )
    how.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="seed of the search and of the data subset (default: 0)",
    )
    how.add_argument("--epochs", type=int, metavar="N", help="most epochs of a trial (default: 20)")
    how.add_argument(
        "--train-examples", type=int, metavar="N", help="train on a uniform subset (default: all)"
    )
    how.add_argument(
        "--eval-examples",
        type=int,
        metavar="N",
        help="at most this many for validation and for test (default: all)",
    )
    how.add_argument("--max-length", type=int, metavar="N", help="tokens a text is cut to (default: 256)")
    how.add_argument(
        "--max-hours", type=float, metavar="H", help="end in good order after this time (default: no limit)"
    )
    how.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="fix hyperparameters (default: none)",
    )
    how.add_argument(
        "--smoke",
        action="store_true",
        help="a few tiny trials, label smoke: a complete report within 2 minutes",
    )
    how.add_argument("--dry-run", action="store_true", help="print the plan; run, write and keep nothing")
    where = p.add_argument_group("where")
    where.add_argument(
        "--output",
        default="results",
        metavar="DIR",
        help="results root, folder or URI (default: results)",
    )
    where.add_argument("--label", metavar="NAME", help="a second study of the same kind beside the first")
    where.add_argument(
        "--fresh", action="store_true", help="set an earlier study of this name aside and start anew"
    )
    where.add_argument(
        "--show-text", action="store_true", help="misclassified texts into examples.md beside the report"
    )
    where.add_argument(
        "--tracking-uri",
        metavar="URI",
        help="MLflow; none turns it off (default: MLFLOW_TRACKING_URI, else <output>/mlflow.db)",
    )
    where.add_argument(
        "--cache-dir",
        metavar="DIR",
        help="the store of hidden states (default: ADALAYERS_CACHE, else the user's cache folder)",
    )
    where.add_argument(
        "--features",
        choices=["auto", "memory", "disk", "live"],
        default="auto",
        help="hidden states in memory, read from disk, or computed anew (default: auto, by what there is room for)",
    )
    where.add_argument(
        "--precision",
        choices=list(PRECISIONS),
        default="float16",
        help="how the store keeps hidden states; another one is another study (default: float16)",
    )
    machine = p.add_argument_group("with what")
    machine.add_argument(
        "--cpus-per-trial",
        type=float,
        default=1.0,
        metavar="N",
        help="CPUs, and threads, of a trial (default: 1)",
    )
    machine.add_argument(
        "--gpus-per-trial",
        type=float,
        metavar="N",
        help="GPUs of a trial, fractions allowed (default: 1 where there is one)",
    )
    machine.add_argument(
        "--max-concurrent", type=int, metavar="N", help="trials at a time (default: as many as fit)"
    )
    machine.add_argument("--address", metavar="ADDR", help="an existing Ray cluster (default: a local one)")
    return p


def parse(study: Study, argv: Sequence[str]) -> argparse.Namespace:
    """Return the flags, checked one by one. Raises `BadInput` for a mistyped flag or an impossible value."""
    p = parser(study)
    flags, rest = p.parse_known_args(argv)
    for word in rest:
        if word.startswith("--"):
            known = [
                option for action in p._actions for option in action.option_strings if option.startswith("--")
            ]
            raise unknown("flag", word.partition("=")[0], known, hint="--help explains each flag")
        raise BadInput(f"wanted flags alone, got {word!r}; see --help")
    flags.fixed = parse_overrides(flags.set)
    if "epochs" in flags.fixed:
        if flags.epochs not in (None, flags.fixed["epochs"]):
            raise BadInput(
                f"wanted one number of epochs, got --epochs {flags.epochs} and --set epochs={flags.fixed['epochs']}; "
                "keep one of them"
            )
        flags.epochs = flags.fixed["epochs"]
    defaults: dict[str, Any] = {"trials": 16, "seeds": 5, "epochs": TrialConfig.epochs, "max_length": 256}
    for name, value in ({**defaults, **SMOKE} if flags.smoke else defaults).items():
        if getattr(flags, name) is None:
            setattr(flags, name, value)
    if flags.smoke and flags.label is None:
        flags.label = "smoke"
    least = {"trials": 0, "seeds": 1, "seed": 0, "train_examples": 1, "eval_examples": 1, "max_concurrent": 1}
    for name, bound in least.items():
        value = getattr(flags, name)
        if value is not None and value < bound:
            raise BadInput(f"wanted --{name.replace('_', '-')} of at least {bound}, got {value}; raise it")
    for name in ("max_hours", "cpus_per_trial"):
        value = getattr(flags, name)
        if value is not None and not value > 0:
            raise BadInput(f"wanted --{name.replace('_', '-')} above 0, got {value:g}; raise it")
    cores = os.cpu_count() or 1
    if flags.address is None and flags.cpus_per_trial > cores:
        raise BadInput(
            f"wanted --cpus-per-trial of at most {cores}, the CPUs of this machine, got {flags.cpus_per_trial:g}; "
            "lower it"
        )
    if flags.gpus_per_trial is not None and not flags.gpus_per_trial >= 0:
        raise BadInput(f"wanted --gpus-per-trial of at least 0, got {flags.gpus_per_trial:g}; raise it")
    demo = KINDS[study.task_kind].demo or "cola" if study.task_kind else "acceptability-demo"
    flags.dataset = flags.dataset or ["cola" if flags.backbone else demo]
    flags.backbone = flags.backbone or ["minilm"]
    flags.data_dir = flags.data_dir or os.environ.get("ADALAYERS_DATA") or None
    flags.cache_dir = flags.cache_dir or str(default_cache())
    for name in ("data_dir", "cache_dir"):
        value = getattr(flags, name)
        setattr(flags, name, None if value is None else str(Path(value).expanduser().resolve()))
    return flags
