"""The command line that all study scripts share: one definition of every flag, then the study from end to end."""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from adalayers import backbone as backbones
from adalayers import tasks
from adalayers.config import TrialConfig, parse_overrides, with_overrides
from adalayers.errors import BadInput, unknown
from adalayers.examples import write_examples
from adalayers.features import default_cache
from adalayers.prepare import DataRequest, Prepared, prepare
from adalayers.progress import Rate, say
from adalayers.results import Folder
from adalayers.study import Plan, Study
from adalayers.tracking import Mirror, default_uri, redacted

DONE, ALL_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

WriteReport = Callable[[Folder], str]
WriteCover = Callable[[Folder, list[Folder]], str]

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
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
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
        help="how configurations are chosen",
    )
    how.add_argument(
        "--scheduler",
        choices=["asha", "fifo"],
        default="asha",
        help="how the search's trials are stopped early",
    )
    how.add_argument("--trials", type=int, metavar="N", help="configurations of the search (default: 16)")
    how.add_argument(
        "--seeds", type=int, metavar="N", help="every confirmed arm runs with seeds S+1..S+N (default: 5)"
    )
    how.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of the search and of the data subset"
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
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="fix hyperparameters"
    )
    how.add_argument(
        "--smoke",
        action="store_true",
        help="a few tiny trials, label smoke: a complete report within 2 minutes",
    )
    how.add_argument("--dry-run", action="store_true", help="print the plan; run, write and keep nothing")
    where = p.add_argument_group("where")
    where.add_argument("--output", default="results", metavar="DIR", help="results root, a folder or a URI")
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
        help="how stored hidden states are used",
    )
    machine = p.add_argument_group("with what")
    machine.add_argument(
        "--cpus-per-trial", type=float, default=1.0, metavar="N", help="CPUs, and threads, of a trial"
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
    demo = "entities-demo" if study.token_task else "acceptability-demo"
    flags.dataset = flags.dataset or ["cola" if flags.backbone else demo]
    flags.backbone = flags.backbone or ["minilm"]
    for name in ("data_dir", "cache_dir"):
        value = getattr(flags, name)
        setattr(flags, name, None if value is None else str(Path(value).expanduser().resolve()))
    flags.data_dir = flags.data_dir or os.environ.get("ADALAYERS_DATA") or None
    return flags


def main(
    study: Study, write_report: WriteReport, write_cover: WriteCover, argv: Sequence[str] | None = None
) -> int:
    """Run a study script; return its exit code: 0 done, 1 all trials failed, 2 bad input, 130 interrupted."""
    argv = list(sys.argv[1:] if argv is None else argv)
    command = " ".join([f"python studies/{study.name}.py", *(redacted(word) for word in argv)])
    try:
        flags = parse(study, argv)
        base = with_overrides(TrialConfig(), {**flags.fixed, "epochs": flags.epochs})
        cases = _cases(study, flags, base, command)
        if flags.dry_run:
            from adalayers.estimate import describe

            for case in cases:
                print(describe(case.prepared, case.plan, flags))
            return DONE
        return _run(study, flags, cases, write_report, write_cover, command)
    except BadInput as error:
        say(f"error: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        say(f"interrupted; continue with: {command}")
        return INTERRUPTED


@dataclass(frozen=True)
class _Case:
    """A study on one backbone and dataset, ready to run."""

    prepared: Prepared
    plan: Plan
    folder: Folder
    identity: dict[str, Any]
    before: dict[str, Any]


def _cases(study: Study, flags: argparse.Namespace, base: TrialConfig, command: str) -> list[_Case]:
    """Return all that is to run; every input is looked at before anything runs."""
    from adalayers.tuning.run import opened, study_plan

    for name in flags.backbone:
        backbones.canonical(name)
    for name in flags.dataset:
        tasks.canonical(name)
    cases: list[_Case] = []
    for backbone, dataset in itertools.product(flags.backbone, flags.dataset):
        prepared = prepare(
            DataRequest(
                backbone,
                dataset,
                data_dir=flags.data_dir,
                text_column=flags.text_column,
                label_column=flags.label_column,
                train_examples=flags.train_examples,
                eval_examples=flags.eval_examples,
                max_length=flags.max_length,
                seed=flags.seed,
            )
        )
        if study.token_task and prepared.task.kind != "token":
            raise BadInput(
                f"wanted a token classification dataset for {study.name}, {dataset} has one label per text; "
                "name another"
            )
        plan = study_plan(study, prepared, base, flags.fixed)
        name = "-".join(
            [prepared.source.name, prepared.task.name, *([_safe(flags.label)] if flags.label else [])]
        )
        folder = Folder(flags.output).child(study.name).child(name)
        if any(case.folder.uri == folder.uri for case in cases):
            raise BadInput(f"wanted each backbone and dataset once, got {folder.uri} twice; name it once")
        identity = _identity(flags, prepared)
        before = {} if flags.fresh else opened(folder, identity)
        cases.append(_Case(prepared, plan, folder, identity, before))
    return cases


def _identity(flags: argparse.Namespace, prepared: Prepared) -> dict[str, Any]:
    """Return the flags that make a study, with names resolved: an alias and the full id are one study."""
    about = prepared.about()
    return {
        # Not the revision: a mirror does not know it, and the fingerprint says all that matters of it.
        **{f"backbone {key}": about["backbone"][key] for key in ("id", "fingerprint")},
        **{f"dataset {key}": about["dataset"][key] for key in ("source", "fingerprint")},
        **{
            name: getattr(flags, name)
            for name in ("label", "search", "scheduler", "seed", "epochs", "max_length", "smoke")
        },
        **{
            name: getattr(flags, name)
            for name in ("train_examples", "eval_examples", "text_column", "label_column")
        },
        "set": flags.fixed,
    }


def _safe(label: str) -> str:
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in label.lower()).strip("-.")
    if not safe:
        raise BadInput(f"wanted a --label with a letter or digit, got {label!r}; choose another")
    return safe


def _run(
    study: Study,
    flags: argparse.Namespace,
    cases: list[_Case],
    write_report: WriteReport,
    write_cover: WriteCover,
    command: str,
) -> int:
    from adalayers.tuning.run import Ask, Limits, feature_mode, run_study

    output = Folder(flags.output)
    tracking = flags.tracking_uri or default_uri(output)
    cache = Path(flags.cache_dir) if flags.cache_dir else default_cache()
    began = time.monotonic()
    outcomes = []
    for case in cases:
        before = _set_aside(case) if flags.fresh else case.before
        say(f"{study.name} on {case.prepared.source.name} and {case.prepared.task.name}: {case.folder.uri}")
        cache.mkdir(parents=True, exist_ok=True)
        mode = feature_mode(flags.features, case.prepared, shutil.disk_usage(cache).free)
        data = case.prepared.data(mode, cache=cache, on_progress=_rates())
        spent = (time.monotonic() - began) / 3600
        limits = Limits(
            flags.cpus_per_trial,
            flags.gpus_per_trial,
            flags.max_concurrent,
            None if flags.max_hours is None else max(0.0, flags.max_hours - spent),
            flags.address,
        )
        ask = Ask(
            flags.search,
            flags.scheduler,
            flags.trials,
            flags.seeds,
            flags.seed,
            flags.fixed,
            case.identity,
            command,
            flags.smoke,
        )
        mirror = Mirror(
            tracking,
            experiment=study.name,
            run_name=case.folder.uri.rsplit("/", 1)[-1],
            study_key=before["id"],
            artifact_root=None,  # a sqlite file keeps them in `mlartifacts` beside it, a server where it wants
        )
        outcome = run_study(
            study, case.plan, data, case.folder, ask, limits, mirror, _on(case.prepared), before
        )
        report = write_report(case.folder)
        if flags.show_text:
            say(f"misclassified texts: {write_examples(case.folder, case.prepared.task)}")
        for sentence in mirror.finish(case.folder):
            say(sentence)
        say(f"{outcome.state}: {outcome.counts}")
        outcomes.append(outcome)
        print(report, flush=True)
        if outcome.state == "interrupted":
            say(f"interrupted; continue with: {command}")
            return INTERRUPTED
    if len(cases) > 1:
        print(write_cover(output.child(study.name), [case.folder for case in cases]), flush=True)
    return ALL_FAILED if all(outcome.all_failed for outcome in outcomes) else DONE


def _set_aside(case: _Case) -> dict[str, Any]:
    from adalayers.tuning.run import opened

    if case.folder.exists():
        parent, name = case.folder.uri.rsplit("/", 1)
        aside = Folder(f"{parent}/{name}.{time.strftime('%Y%m%d-%H%M%S')}")
        case.folder.move("", aside)
        say(f"the earlier study is now {aside.uri}")
    return opened(case.folder, {})


def _rates() -> Callable[[str, int, int], None]:
    rates: dict[str, Rate] = {}

    def on_progress(split: str, done: int, total: int) -> None:
        rate = rates.setdefault(split, Rate(f"hidden states of {split}", "sequences"))
        rate(done, total)

    return on_progress


def _on(prepared: Prepared) -> dict[str, Any]:
    source, task = prepared.source, prepared.task
    return {
        "backbone": {
            "name": source.name,
            **prepared.about()["backbone"],
            "family": source.family,
            "layers": source.layers,
            "width": source.width,
            "parameters": prepared.backbone_parameters,
        },
        "dataset": {
            "name": task.name,
            **prepared.about()["dataset"],
            "kind": task.kind,
            "labels": list(task.label_names),
            "metric": task.metric,
            "examples": {name: len(split) for name, split in task.splits.items()},
            "tokens": {name: len(encoded.input_ids) for name, encoded in prepared.encoded.items()},
            "baseline": {
                prefix: task.baseline(name)
                for name, prefix in (("validation", "val"), ("test", "test"))
                if name in task.splits
            },
        },
    }
