"""The flags of the study scripts, as the records of `adalayers.request` and `Flags` define them.

Nothing here imports torch or Ray: `--help` waits for neither.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal

from adalayers.config import parse_overrides
from adalayers.console.command_line import Parser
from adalayers.environ import default_cache
from adalayers.errors import BadInput, local_path, require_within, unknown
from adalayers.request import DataRequest, Resources, StudyRequest, flag
from adalayers.results import reference_names
from adalayers.study import Study

FeatureMode = Literal["auto", "memory", "disk", "live"]

_EXAMPLES = {"train_examples": 96, "eval_examples": 64, "test_examples": 64}
SMOKE = {"trials": 3, "seeds": 2, "epochs": 2, "max_length": 64, **_EXAMPLES}
"""What --smoke asks for where the user does not."""
REFERENCES = tuple(reference_names.REFERENCES)
"""Names of the rows for scale."""
LABEL_LENGTH = 64
"""Most characters of a label: it is part of a folder's name, and file systems take 255 bytes."""


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line asks for, checked and with defaults filled in.

    requests:        a case each: every backbone with every dataset, and with every column of labels that is named
    own:             the flags that the study alone has; own_identity: the same, as they identify it
    output:          the results root, a folder or a URI
    tracking_uri:    None: `MLFLOW_TRACKING_URI`, else a file in the results root
    features:        where hidden states come from; cache_dir: the folder of their store
    """

    requests: tuple[DataRequest, ...]
    study: StudyRequest
    resources: Resources
    own: dict[str, str]
    own_identity: dict[str, str]
    output: str = flag("results root, folder or URI (default: %(default)s)", "results", "DIR")
    label: str | None = flag("a second study of the same kind next to the first", metavar="NAME")
    fresh: bool = flag("set an earlier study of this name aside and start again", False)
    dry_run: bool = flag("print the plan; run, write and keep nothing", False)
    show_text: bool = flag("misclassified texts into examples.md next to the report", False)
    references: tuple[str, ...] = flag(
        "rows for scale, in seconds: majority, tf-idf, frequent-tag, linear-probe; none leaves them out "
        "(default: those that the task has)",
        REFERENCES,
        "NAME",
    )
    tracking_uri: str | None = flag(
        "MLflow; none turns it off (default: MLFLOW_TRACKING_URI, else <output>/mlflow.db where that is no URI)",
        metavar="URI",
    )
    cache_dir: Path = flag(
        "the store of hidden states (default: ADALAYERS_CACHE, else the user's cache folder)", metavar="DIR"
    )
    features: FeatureMode = flag(
        "hidden states in memory, read from disk, or computed again (default: auto, by what there is room for)",
        "auto",
    )


GROUPS = {"Data": DataRequest, "Budget": StudyRequest, "Resources": Resources, "Output and cache": Flags}


def parser(study: Study, program: str = "") -> argparse.ArgumentParser:
    """Return the parser of a study's flags."""
    name = program or f"studies/{study.name}.py"
    p = Parser(prog=name, description=study.question, allow_abbrev=False)
    metrics = (f"{metric} for {kind} tasks, else " for kind, metric in study.defaults.metrics.items())
    of_study = {"backbones": " ".join(study.defaults.backbones), "metrics": "".join(metrics)}
    for title, record in GROUPS.items():
        group, types = p.add_argument_group(title), typing.get_type_hints(record)
        for field in _flag_fields(record):
            reading = _reading(field, types[field.name])
            about = field.metadata["help"].format(**of_study)
            group.add_argument(_option(field), dest=field.name, help=about, **reading)
    if study.flags:
        group = p.add_argument_group(f"Of {study.name} alone")
        for own in study.flags:
            several = {"nargs": "+", "action": "extend"} if own.several else {}
            reading = {"metavar": "NAME", "choices": own.choices or None} | several
            group.add_argument(f"--{own.name}", help=own.help, **reading)
    # Each of several searches has a few trials: a scheduler would stop most of them while their rates still rise.
    all_to_the_end = {"scheduler": "fifo"} if study.design.tunings else {}
    p.set_defaults(**study.defaults.sizes, **all_to_the_end)
    return p


def _flag_fields(record: type[Any]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(record) if "help" in field.metadata]


def _option(field: dataclasses.Field[Any]) -> str:
    return "--" + field.name.replace("_", "-")


def _reading(field: dataclasses.Field[Any], hint: Any) -> dict[str, Any]:
    """Return how argparse reads the flag of a field of this type."""
    union = typing.get_origin(hint) in (typing.Union, UnionType)
    types = [part for part in (typing.get_args(hint) if union else (hint,)) if part is not NoneType]
    if types == [bool]:
        return {"action": "store_true"}
    choices = typing.get_args(types[0]) if typing.get_origin(types[0]) is Literal else ()
    if choices := field.metadata.get("choices", choices):
        refused = field.metadata.get("refused", {})
        return {"choices": choices, "default": field.default, "type": partial(_chosen, refused)}
    reading = {"metavar": field.metadata["metavar"], "default": field.default}
    if field.metadata.get("several") or typing.get_origin(types[0]) in (dict, tuple):
        of_each = {"type": float} if float in typing.get_args(types[0]) else {}
        return reading | {"nargs": "+", "action": "extend", "default": []} | of_each
    return reading | {"type": types[0]}


def _chosen(refused: Mapping[str, str], text: str) -> str:
    if why := refused.get(text):
        raise argparse.ArgumentTypeError(f"no {text}: {why}")
    return text


def parse(study: Study, argv: Sequence[str], command: str = "", program: str = "") -> Flags:
    """Return the flags, checked one by one; `command` is what was typed, `program` its first words.

    Raises:
        BadInput: For a mistyped flag or an impossible value.
    """
    p = parser(study, program)
    if "--smoke" in argv:
        no_search = {} if p.get_default("trials") else {"trials": 0}
        p.set_defaults(label="smoke", **{**SMOKE, **no_search, **study.defaults.smoke})
    given = _given(p, argv)
    fixed = parse_overrides(given.set)
    epochs = fixed.pop("epochs", given.epochs)  # --set epochs=N is --epochs N
    if given.epochs not in (None, epochs):
        raise BadInput(
            f"wanted one number of epochs, got --epochs {given.epochs} and --set epochs={epochs}; keep one of them"
        )
    given.epochs = p.get_default("epochs") if epochs is None else epochs
    _check(given)
    rates = tuple(sorted(set(given.rates)))
    if rates and (len(rates) == 1 or "lr" in fixed):
        typed = [*(f"{rate:g}" for rate in given.rates), *(f"--set {word}" for word in given.set)]
        raise BadInput(
            f"wanted two --rates or more without --set lr, got --rates {' '.join(typed)}; one rate for all is --set "
            "lr=LR alone"
        )
    requests = _requests(study, given)
    datasets = list(dict.fromkeys(request.dataset for request in requests))
    own = {flag.key: _text(getattr(given, flag.key)) or flag.default(datasets) for flag in study.flags}
    given.cache_dir = local_path(given.cache_dir or default_cache(), "--cache-dir")
    given.set, given.rates, given.references = fixed, rates, _references(given.references)
    return Flags(
        requests=requests,
        study=StudyRequest(**_values(StudyRequest, given), command=command),
        resources=Resources(**_values(Resources, given)),
        own=own,
        own_identity={flag.key: flag.canonical(own[flag.key], requests[0].data_dir) for flag in study.flags},
        **_values(Flags, given),
    )


def _references(given: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the rows of scale: all of them where none is named; `none` stands for no row."""
    if wrong := [name for name in given if name not in (*REFERENCES, "none")]:
        raise unknown("reference", wrong[0], (*REFERENCES, "none"))
    return () if "none" in given else tuple(name for name in REFERENCES if name in given or not given)


def _text(given: str | list[str] | None) -> str:
    return given if isinstance(given, str) else " ".join(given or ())


def _given(p: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    given, rest = p.parse_known_args(argv, argparse.Namespace(epochs=None))  # None: it was not typed
    if rest:
        if not rest[0].startswith("--"):
            raise BadInput(f"wanted flags alone, got {rest[0]!r}; see --help")
        options = [option for option in p._option_string_actions if option.startswith("--")]
        raise unknown("flag", rest[0].partition("=")[0], options, hint="--help explains each flag")
    return given


def _values(record: type[Any], given: argparse.Namespace) -> dict[str, Any]:
    """Return what was given for the fields of a record."""
    return {field.name: getattr(given, field.name) for field in _flag_fields(record)}


def _check(given: argparse.Namespace) -> None:
    for field in itertools.chain.from_iterable(map(_flag_fields, GROUPS.values())):
        values = getattr(given, field.name)
        for value in values if isinstance(values, list | tuple) else [values]:
            if value is not None:
                require_within(_option(field), value, field.metadata)
    if given.label is not None and len(given.label) > LABEL_LENGTH:
        raise BadInput(
            f"wanted a --label of at most {LABEL_LENGTH} characters, it is part of a folder's name, got one of "
            f"{len(given.label)}; shorten it"
        )
    if given.group != "auto" and not (given.group.isdecimal() and len(given.group) < 10 and int(given.group)):
        raise BadInput(f"wanted --group auto or a number of at least 1, got {given.group!r}; change it")


def _requests(study: Study, given: argparse.Namespace) -> tuple[DataRequest, ...]:
    """Return the data of every case; relative paths are resolved now, from where the user typed them."""
    from adalayers.tasks.kinds import KINDS  # needs NumPy, which `--help` need not wait for

    demo = KINDS[study.task_kind].demo or "cola" if study.task_kind else "acceptability-demo"
    data_dir = given.data_dir or os.environ.get("ADALAYERS_DATA") or None
    shared = _values(DataRequest, given) | {
        "data_dir": None if data_dir is None else str(local_path(data_dir, "--data-dir")),
        "metrics": tuple(study.defaults.metrics.items()),
        "seed": given.seed,
    }
    cases = itertools.product(
        given.backbone or study.defaults.backbones,
        given.dataset or ["cola" if given.backbone else demo],
        given.label_column or [None],
    )
    requests = (
        shared
        | {"backbone": backbone, "dataset": dataset, "label_column": column}
        | {"splits": _splits(given.splits, dataset)}
        for backbone, dataset, column in cases
    )
    return tuple(dict.fromkeys(DataRequest(**request) for request in requests))


def _splits(typed: Sequence[str], dataset: str) -> tuple[str, ...]:
    """Return `--splits` with files of the dataset's folder named from there, and others by their absolute path."""
    named, folder = [], local_path(dataset, "--dataset")
    for item in typed:
        role, _, name = item.partition("=")
        path = local_path(name, "--splits") if name else folder
        if name and path.exists() and not (folder / name).exists():
            inside = path.is_relative_to(folder)
            item = f"{role}={path.relative_to(folder).as_posix() if inside else path}"
        named.append(item)
    return tuple(sorted(named))
