"""Every flag of the study scripts, defined once. Nothing here imports torch or Ray: `--help` waits for neither."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from adalayers.config import TrialConfig, parse_overrides
from adalayers.errors import BadInput, local_path, unknown
from adalayers.request import DataRequest, Resources, Scheduler, Search, StudyRequest
from adalayers.states import ComputeType, Precision
from adalayers.storage.cache_folder import default_cache
from adalayers.study import Study

FeatureMode = Literal["auto", "memory", "disk", "live"]

SMOKE = {"trials": 3, "seeds": 2, "epochs": 2, "train_examples": 96, "eval_examples": 64, "max_length": 64}
"""What --smoke asks for where the user does not."""

DEFAULTS = {"trials": 16, "seeds": 5, "epochs": TrialConfig.epochs, "max_length": 256}

LEAST = {
    "trials": 0,
    "seeds": 1,
    "seed": 0,
    "train_examples": 1,
    "eval_examples": 1,
    "max_length": 1,
    "max_concurrent": 1,
    "retries": 0,
}
MOST = {"trials": 1_000_000, "seeds": 100_000, "seed": 2**32 - 1, "max_length": 1_000_000, "retries": 100}
"""Beyond these no study ends, or a random generator takes no such seed."""
MOST_LABEL = 64
"""Characters of a label: it is part of a folder's name, and file systems take 255 bytes."""


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line asks for, checked and with defaults filled in.

    requests:        a case each: every backbone with every dataset, and with every column of labels that is named
    epochs:          of a trial, at most
    fixed:           hyperparameters of --set
    smallest_effect: None: that of the study that is continued, else by metric
    resources:       for trials, and the hours that all cases together may take
    features:        how hidden states are had; cache_dir: the folder of their store
    output:          the results root, a folder or a URI
    tracking_uri:    None: `MLFLOW_TRACKING_URI`, else a file in the results root
    own:             the flags that the study alone has; own_identity: the same, as they identify it
    """

    requests: tuple[DataRequest, ...]
    search: Search
    scheduler: Scheduler
    trials: int
    seeds: int
    seed: int
    until_decided: bool
    epochs: int
    fixed: dict[str, Any]
    smallest_effect: float | None
    resources: Resources
    features: FeatureMode
    cache_dir: Path
    output: str
    label: str | None
    tracking_uri: str | None
    fresh: bool
    show_text: bool
    dry_run: bool
    smoke: bool
    own: dict[str, str] = field(default_factory=dict)
    own_identity: dict[str, str] = field(default_factory=dict)

    def ask(self, command: str) -> StudyRequest:
        """Return what all cases are asked for; `command` is what was typed."""
        return StudyRequest(
            search=self.search,
            scheduler=self.scheduler,
            trials=self.trials,
            seeds=self.seeds,
            seed=self.seed,
            until_decided=self.until_decided,
            fixed=self.fixed,
            command=command,
            smoke=self.smoke,
        )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message}; see --help")


def parser(study: Study) -> argparse.ArgumentParser:
    """Return the parser of a study's flags."""
    size = {**DEFAULTS, **study.defaults}
    own = "".join(f"{metric} for {kind} tasks, else " for kind, metric in study.metrics.items())
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
        help="alias, hub id[@revision] or local folder, one or more; random: in front of one gives its shape with "
        f"random weights (default: {' '.join(study.backbones)})",
    )
    what.add_argument(
        "--dataset",
        nargs="+",
        metavar="NAME",
        help="a dataset that has a name here (imdb, cola, conll2003, mnli, stsb, ...; see README), an embedded "
        "one (acceptability-demo, inference-demo, similarity-demo, entities-demo, word-classes-demo), hub "
        "id[:config][@revision] or local folder, one or more (default: the embedded demo; cola where --backbone is "
        "given)",
    )
    what.add_argument(
        "--text-column",
        metavar="NAME",
        help="column of texts or tokens, where the dataset's features do not tell; two with a comma between them are "
        "pairs of texts",
    )
    what.add_argument(
        "--label-column",
        nargs="+",
        metavar="NAME",
        help="column of labels, likewise; one of numbers is regression; of several, each is a case of its own",
    )
    what.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder of local copies of datasets and backbones, tried before the hub (default: ADALAYERS_DATA)",
    )
    how = p.add_argument_group("how much")
    how.add_argument(
        "--search",
        choices=typing.get_args(Search),
        default="optuna",
        help="how configurations are chosen (default: optuna)",
    )
    how.add_argument(
        "--scheduler",
        choices=typing.get_args(Scheduler),
        default="asha",
        help="how the search's trials are stopped early (default: asha)",
    )
    how.add_argument(
        "--trials", type=int, metavar="N", help=f"configurations of the search (default: {size['trials']})"
    )
    how.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help=f"every confirmed arm runs with seeds S+1..S+N (default: {size['seeds']})",
    )
    how.add_argument(
        "--until-decided",
        action="store_true",
        help="confirm in blocks of 3 seeds, until every primary comparison is decided or --seeds is reached",
    )
    how.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="seed of the search and of the data subset (default: 0)",
    )
    how.add_argument(
        "--metric",
        metavar="NAME",
        help=f"the score that selects, of those the task has (default: {own}the task's own)",
    )
    how.add_argument(
        "--smallest-effect",
        type=float,
        metavar="X",
        help="smallest difference of interest, on the metric's scale; another one is another study (default: by "
        "metric; that of the study that is continued)",
    )
    how.add_argument(
        "--epochs", type=int, metavar="N", help=f"most epochs of a trial (default: {size['epochs']})"
    )
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
    where.add_argument("--label", metavar="NAME", help="a second study of the same kind next to the first")
    where.add_argument(
        "--fresh", action="store_true", help="set an earlier study of this name aside and start again"
    )
    where.add_argument(
        "--show-text", action="store_true", help="misclassified texts into examples.md next to the report"
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
        choices=typing.get_args(FeatureMode),
        default="auto",
        help="hidden states in memory, read from disk, or computed again (default: auto, by what there is room for)",
    )
    where.add_argument(
        "--precision",
        choices=typing.get_args(Precision),
        default="float16",
        help="how the store keeps hidden states; another one is another study (default: float16)",
    )
    where.add_argument(
        "--backbone-dtype",
        choices=["auto", *typing.get_args(ComputeType)],
        default="auto",
        help="in what the backbone computes; another one is another study (default: auto: float32, bfloat16 where that "
        "does not fit the memory of a GPU, or without one of this machine)",
    )
    if study.flags:
        alone = p.add_argument_group(f"of {study.name} alone")
        for flag in study.flags:
            alone.add_argument(f"--{flag.name}", metavar="NAME", help=flag.help)
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
    machine.add_argument(
        "--retries",
        type=int,
        default=Resources.retries,
        metavar="N",
        help="how often a trial that fails, or whose worker dies, is tried again from its checkpoint "
        f"(default: {Resources.retries})",
    )
    machine.add_argument(
        "--hang-minutes",
        type=float,
        default=Resources.hang_minutes,
        metavar="M",
        help="a trial without a sign of life for so long is ended and counts as one whose worker died "
        f"(default: {Resources.hang_minutes:g})",
    )
    machine.add_argument("--address", metavar="ADDR", help="an existing Ray cluster (default: a local one)")
    return p


def parse(study: Study, argv: Sequence[str]) -> Flags:
    """Return the flags, checked one by one. Raises `BadInput` for a mistyped flag or an impossible value."""
    p = parser(study)
    given, rest = p.parse_known_args(argv)
    _refuse_unknown(p, rest)
    fixed = parse_overrides(given.set)
    _fill_in(given, fixed, study)
    _check(given)
    requests = _requests(study, given)
    datasets = list(dict.fromkeys(request.dataset for request in requests))
    own = {flag.key: getattr(given, flag.key) or flag.default(datasets) for flag in study.flags}
    return Flags(
        requests=requests,
        search=given.search,
        scheduler=given.scheduler,
        trials=given.trials,
        seeds=given.seeds,
        seed=given.seed,
        until_decided=given.until_decided,
        epochs=given.epochs,
        fixed=fixed,
        smallest_effect=given.smallest_effect,
        resources=Resources(
            cpus_per_trial=given.cpus_per_trial,
            gpus_per_trial=given.gpus_per_trial,
            max_concurrent=given.max_concurrent,
            max_hours=given.max_hours,
            address=given.address,
            retries=given.retries,
            hang_minutes=given.hang_minutes,
        ),
        features=given.features,
        cache_dir=local_path(given.cache_dir or default_cache(), "--cache-dir"),
        output=given.output,
        label=given.label,
        tracking_uri=given.tracking_uri,
        fresh=given.fresh,
        show_text=given.show_text,
        dry_run=given.dry_run,
        smoke=given.smoke,
        own=own,
        own_identity={flag.key: flag.canonical(own[flag.key]) for flag in study.flags},
    )


def _refuse_unknown(p: argparse.ArgumentParser, rest: Sequence[str]) -> None:
    for word in rest:
        if word.startswith("--"):
            known = [
                option for action in p._actions for option in action.option_strings if option.startswith("--")
            ]
            raise unknown("flag", word.partition("=")[0], known, hint="--help explains each flag")
        raise BadInput(f"wanted flags alone, got {word!r}; see --help")


def _fill_in(given: argparse.Namespace, fixed: dict[str, Any], study: Study) -> None:
    """Give what the user left out its default; `--set epochs=N` is `--epochs N`."""
    if "epochs" in fixed:
        if given.epochs not in (None, fixed["epochs"]):
            raise BadInput(
                f"wanted one number of epochs, got --epochs {given.epochs} and --set epochs={fixed['epochs']}; "
                "keep one of them"
            )
        given.epochs = fixed["epochs"]
    defaults: dict[str, int] = {**DEFAULTS, **study.defaults}
    if given.smoke:
        defaults |= {**(SMOKE if defaults["trials"] else {**SMOKE, "trials": 0}), **study.smoke}
    for name, value in defaults.items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    if given.smoke and given.label is None:
        given.label = "smoke"


def _check(given: argparse.Namespace) -> None:
    for name, bound in LEAST.items():
        value = getattr(given, name)
        if value is not None and value < bound:
            raise BadInput(f"wanted --{name.replace('_', '-')} of at least {bound}, got {value}; raise it")
    for name, bound in MOST.items():
        value = getattr(given, name)
        if value is not None and value > bound:
            raise BadInput(f"wanted --{name.replace('_', '-')} of at most {bound:,}, got {value:,}; lower it")
    for name in ("max_hours", "cpus_per_trial", "smallest_effect", "hang_minutes"):
        value = getattr(given, name)
        if value is not None and not 0 < value < math.inf:
            raise BadInput(f"wanted --{name.replace('_', '-')} above 0 and finite, got {value:g}; change it")
    if given.label is not None and len(given.label) > MOST_LABEL:
        raise BadInput(
            f"wanted a --label of at most {MOST_LABEL} characters, it is part of a folder's name, got one of "
            f"{len(given.label)}; shorten it"
        )
    cores = os.cpu_count() or 1
    if given.address is None and given.cpus_per_trial > cores:
        raise BadInput(
            f"wanted --cpus-per-trial of at most {cores}, the CPUs of this machine, got {given.cpus_per_trial:g}; "
            "lower it"
        )
    if given.gpus_per_trial is not None and not 0 <= given.gpus_per_trial < math.inf:
        raise BadInput(
            f"wanted --gpus-per-trial of at least 0 and finite, got {given.gpus_per_trial:g}; change it"
        )


def _requests(study: Study, given: argparse.Namespace) -> tuple[DataRequest, ...]:
    """Return the data of every case; relative paths are resolved now, from where the user typed them."""
    from adalayers.tasks.kinds import KINDS  # needs NumPy, which `--help` need not wait for

    demo = KINDS[study.task_kind].demo or "cola" if study.task_kind else "acceptability-demo"
    data_dir = given.data_dir or os.environ.get("ADALAYERS_DATA") or None
    return tuple(
        DataRequest(
            backbone,
            dataset,
            data_dir=None if data_dir is None else str(local_path(data_dir, "--data-dir")),
            text_column=given.text_column,
            label_column=label_column,
            train_examples=given.train_examples,
            eval_examples=given.eval_examples,
            max_length=given.max_length,
            precision=given.precision,
            backbone_dtype=given.backbone_dtype,
            seed=given.seed,
            metric=given.metric,
            metrics=tuple(study.metrics.items()),
        )
        for backbone, dataset, label_column in itertools.product(
            given.backbone or study.backbones,
            given.dataset or ["cola" if given.backbone else demo],
            given.label_column or [None],
        )
    )
