"""A/A studies of real trials: how often does a study of arms that are one configuration claim that they differ?

    python -m tests.same_arms --processes 2                   the studies, from the pool alone; a last line of JSON
    python -m tests.same_arms --make-pool entities-demo cola --trials 1500     goes on with the pool where it stands

The pool is a parquet file per corpus in docs/evidence/, a row per trial of one of three configurations: `order`, the
seed of its batches, and `seed`, that of its start and its dropout, its scores, a hash of its test predictions, and the
machine. As a rule both seeds are the same; of every tenth order there are eight trials that share its batches alone.

A study of four arms is drawn from it, run by `--until-decided`'s own agenda and judged by the report's own code, over
its files. What is counted is conditional on the pool: its trials come again in many studies. The pool is of two
machines, and so are the trials of an arm, but for `machines`.

same             one configuration under four names, disjoint seeds; until decided, then extended by two blocks
machines         the same; two arms of one machine, two of the other
fixed            the same with six seeds, then extended to twelve
order            the same until decided; the arms of a seed share its batches, and nothing else
diverged         as `same`; the worst 15% of the trials of the configuration have diverged
shift 0.5, 1, 2  as `same`; one arm is better by so many SDs of a difference
real             the learned mix against itself, the last layer, and ten times the rate, seeds in common but for itself
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch

import reports
from adalayers.comparisons import BLOCK, FIRST, PlannedArm
from adalayers.config import TrialConfig
from adalayers.data.prepare import prepare
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest, StudyRequest
from adalayers.results.files import CLAIMS, PREDICTIONS, STUDY, write_trials
from adalayers.results.provenance import provenance
from adalayers.results.record import StudyRecord
from adalayers.results.study_file import StudyFile, parse
from adalayers.storage.cache_folder import default_cache
from adalayers.storage.folder import Folder
from adalayers.study import ConfirmedArm, StudyPlan
from adalayers.training.steps import SharedClock, Steps, in_turn
from adalayers.training.together import Together
from adalayers.training.trainer import Trainer
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.run_log import RunLog
from reports.evidence.claims import BETTER, SAME, WORSE
from tests.calibration import PART, Share, planned_for_power, print_row
from tests.helpers.made_data import made_data
from tests.helpers.made_study import study_of
from tests.helpers.pages import rebuild_claims

POOLS = Path(__file__).resolve().parents[1] / "docs" / "evidence"
SHARED, STREAMS = 10, 8
"""Every so many orders, so many trials of one configuration share the order."""
APART = 1_000_000
"""Seeds of trials that share an order lie so far apart."""
KEEP_SECONDS = 60.0
CPUS, MEMORY = Path("/proc/cpuinfo"), "/dev/shm"


@dataclass(frozen=True)
class Corpus:
    """What is trained: a few hundred examples, so that a trial takes a second, by configuration."""

    request: DataRequest
    configs: Mapping[str, TrialConfig]


def _corpus(dataset: str, train: int, test: int, fast: float, **common: object) -> Corpus:
    sizes = {"train_examples": train, "eval_examples": train * 3 // 10, "test_examples": test}
    request = DataRequest("minilm", dataset, data_dir=os.environ.get("ADALAYERS_DATA"), **sizes)  # type: ignore[arg-type]
    how = [{}, {"mix": "last"}, {"lr": fast}]
    configs = [LayerMixConfig(**{"lr": 3e-3, **common, **own}) for own in how]  # type: ignore[arg-type]
    return Corpus(request, dict(zip(("mix", "last", "fast"), configs, strict=True)))


CORPORA = {
    "entities-demo": _corpus("entities-demo", 200, 200, 3e-2, read_out="linear", batch_size=16, epochs=3),
    "cola": _corpus(
        "cola", 2000, 1000, 3e-2, read_out="first-token", batch_size=64, epochs=4, class_weights="balanced"
    ),
}


def pool_file(corpus: str, folder: Path = POOLS) -> Path:
    return folder / f"same_arms_{corpus}.parquet"


def make_pools(names: Sequence[str], trials: int, folder: Path) -> None:
    """Train until the pool of each corpus holds so many trials, in turn; what there is stays, and is added to."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # as a study's workers
    makers = [_Maker(name, folder) for name in names]
    while left := [maker for maker in makers if len(maker.pool) < trials]:
        for maker in left:
            maker.add()
    for maker in makers:
        maker.keep()


class _Maker:
    """Adds to the pool of a corpus, order by order."""

    def __init__(self, name: str, folder: Path):
        corpus, self.path = CORPORA[name], pool_file(name, folder)
        prepared = prepare(corpus.request).reading(corpus.configs.values())
        self.configs, self.data = corpus.configs, prepared.data("memory", cache=default_cache())
        about: dict[str, object] = {
            "corpus": name,
            "metric": self.data.metric,
            "baseline": prepared.task.baseline("test"),
            "examples": {split: len(examples) for split, examples in self.data.splits.items()},
            "configurations": {name: config.used(self.data.shape) for name, config in self.configs.items()},
            "data": self.data.about,
        }
        about = json.loads(json.dumps(about))  # as it is read back
        self.pool = pd.read_parquet(self.path) if self.path.exists() else pd.DataFrame()
        if len(self.pool) and self.pool.attrs != about:
            raise SystemExit(f"wanted a pool of what is trained now, {self.path} is of {self.pool.attrs}")
        self.about = about
        model = re.search(r"model name\s*: (.*)", CPUS.read_text()) if CPUS.exists() else None
        about_machine = parse({"environment": provenance()})[0].environment.machine
        self.machine = ", ".join([*([model[1]] if model else []), about_machine])
        self._kept = time.monotonic()

    def add(self) -> None:
        """Train all configurations on the next order of batches."""
        order = 1 + (int(self.pool["order"].max()) if len(self.pool) else 0)
        rows = pd.DataFrame(train(self.data, self.configs, order)).assign(machine=self.machine)
        self.pool = pd.concat([self.pool, rows], ignore_index=True)
        if time.monotonic() - self._kept > KEEP_SECONDS:
            self.keep()

    def keep(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".partial")
        self.pool.attrs = self.about
        text = dict.fromkeys(("configuration", "machine"), "category")
        self.pool.astype({"order": "int32", "seed": "int32", **text}).to_parquet(beside, compression="zstd")
        beside.replace(self.path)
        self._kept = time.monotonic()
        print(f"{time.strftime('%H:%M:%S')} {self.path.name}: {len(self.pool)} trials", flush=True)


def train(data: TrialData, configs: Mapping[str, TrialConfig], order: int) -> list[dict[str, object]]:
    """Train each configuration on one order of batches, in one program; return a row of the pool each."""
    clock, rows, shuffled = SharedClock(), [], SplitData.shuffled

    def trial(name: str, config: TrialConfig, seed: int) -> Steps[None]:
        trainer = Trainer(config, data, seed=seed, device=torch.device("cpu"))
        trainer.clock = clock
        outcome = yield from trainer.steps(lambda evaluation: None, test=True)
        said = outcome.predictions.loc[outcome.predictions["split"] == "test", "prediction"].astype(str)
        scores = {split: outcome.row[f"{split}/{data.metric}"] for split in ("val", "test")}
        digest = hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]
        rows.append({"configuration": name, "order": order, "seed": seed, **scores, "predictions": digest})

    seeds = [order + APART * number for number in range(1 if order % SHARED else STREAMS)]
    trials = [trial(name, config, seed) for seed in seeds for name, config in configs.items()]
    with mock.patch.object(
        SplitData, "shuffled", lambda own, size, _, epoch: shuffled(own, size, order, epoch)
    ):
        in_turn(trials, clock, together=Together())
    return sorted(rows, key=lambda row: (str(row["configuration"]), row["seed"]))


# Studies


ARMS = ("control", "first", "second", "third")
SAME_ARMS = ("same", "fixed", "order", "diverged", "machines")
FORMS = (*SAME_ARMS, "shift 0.5", "shift 1", "shift 2", "real")


@dataclass(frozen=True)
class Drawn:
    """A study that is about to be run: its trials, and what is true of them.

    trials:   arm -> rows of the pool, in the order of seeds 1, 2, ...; `status` where one is not completed
    truth:    arm -> its mean difference from the control, the first arm
    smallest: the smallest effect of interest: the SD of a difference of two trials of the control's configuration
    """

    trials: Mapping[str, pd.DataFrame]
    truth: Mapping[str, float]
    smallest: float


@dataclass(frozen=True)
class Tally:
    """Counts over studies.

    false:  with a verdict that is not so, at any analysis; missed: with an interval that leaves out the truth
    decided, found, better: comparisons decided; found better, of those that are by at least the smallest effect
    trials, fixed: trials run; those of a fixed design that finds one SD nine times in ten
    """

    studies: int = 0
    false: int = 0
    missed: int = 0
    decided: int = 0
    found: int = 0
    better: int = 0
    trials: int = 0
    fixed: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def cells(self) -> list[str]:
        found = str(Share(self.found, self.better)) if self.better else "none there"
        decided = self.decided / self.studies / (len(ARMS) - 1)
        shares = [str(Share(hits, self.studies)) for hits in (self.false, self.missed)]
        return [*shares, f"{decided:.0%}", found, f"{self.trials / self.fixed:.0%}"]


def draw(pool: pd.DataFrame, form: str, configuration: str, rng: np.random.Generator, most: int) -> Drawn:
    """Draw a study of at most so many seeds."""
    own = pool[pool["order"] == pool["seed"]].pivot(index="seed", columns="configuration")
    trials = own.xs("mix" if form == "real" else configuration, axis=1, level="configuration").sample(
        frac=1.0, random_state=rng
    )
    sd = float(trials["test"].std()) * math.sqrt(2)
    if form == "diverged":
        trials["status"] = np.where(trials["test"] < trials["test"].quantile(0.15), "diverged", "completed")
    parts = {name: trials.iloc[place * most : (place + 1) * most] for place, name in enumerate(ARMS)}
    if form == "machines":
        by_machine = [rows for _, rows in trials.groupby("machine", observed=True)]
        places = [(own, half) for half in range(2) for own in by_machine]
        parts = {
            name: own.iloc[half * most : (half + 1) * most]
            for name, (own, half) in zip(ARMS, places, strict=True)
        }
    truth = dict.fromkeys(ARMS[1:], 0.0)
    if form == "order":
        of_order = pool[(pool["configuration"] == configuration) & (pool["order"] % SHARED == 0)]
        numbers = of_order.assign(number=of_order["seed"] // APART).pivot(index="order", columns="number")
        numbers, streams = numbers.dropna().sample(frac=1.0, random_state=rng), rng.permutation(STREAMS)
        parts = {
            name: numbers.xs(stream, axis=1, level="number")
            for name, stream in zip(ARMS, streams, strict=False)
        }
    elif form == "real":
        others = dict(zip(ARMS[2:], ("last", "fast"), strict=True))
        same = own.loc[parts["control"].index]
        parts |= {name: same.xs(other, axis=1, level="configuration") for name, other in others.items()}
        means = own["test"].mean()
        truth |= {name: float(means[other] - means["mix"]) for name, other in others.items()}
    elif form.startswith("shift"):
        truth["first"] = float(form.split()[1]) * sd
        parts["first"] = parts["first"].assign(test=parts["first"]["test"] + truth["first"])
    return Drawn(parts, truth, sd)


class PoolStudy:
    """A drawn study in a folder: its trials are there at once, all else is the product's own.

    about: of the pool
    """

    def __init__(self, folder: Folder, drawn: Drawn, about: Mapping[str, Any]):
        self.folder, self.metric, self.names = folder, str(about["metric"]), list(drawn.trials)
        self.trials = {name: rows.to_dict("records") for name, rows in drawn.trials.items()}
        # Names of one configuration are one arm: these end after other epochs without gain, more than there are.
        arms = [ConfirmedArm(name, "", LayerMixConfig(patience=100 + n)) for n, name in enumerate(self.names)]
        self.plan = StudyPlan(LayerMixConfig(), arms)
        self.record = StudyRecord(folder, self.metric)
        planned, baseline = [PlannedArm(name) for name in self.names], float(about["baseline"])
        self.study = study_of(planned, self.metric, smallest_effect=drawn.smallest, baseline=baseline)
        self.predictions: dict[str, str] = {}

    def run(self, request: StudyRequest) -> None:
        """Do what a command does, the training left out."""
        self.log = RunLog(self.study.runs, self.record, self.study.environment, request)
        undecided = self._undecided if request.until_decided else None
        self.agenda = Agenda(
            self.plan, self.record, _made_data(), request, undecided=undecided, before=self.study
        )
        while not isinstance(job := self.agenda.next(), str):
            trial = self.trials[job.arm][job.seed - 1]
            status, row = trial.get("status", "completed"), self.agenda.row(job)
            if status == "completed":
                row |= {f"{split}/{self.metric}": trial[split] for split in ("val", "test")}
                self.predictions[job.trial_id] = trial["predictions"]
            self.record.rows[job.trial_id] = {
                "trial_id": job.trial_id,
                **row,
                "status": status,
                "error": "",
            }
            self.agenda.ended(job.trial_id, status)
        self.study = self._write("finished")

    def claims(self) -> list[dict[str, Any]]:
        rebuild_claims(self.folder)
        return self.folder.read_json(CLAIMS)

    def _undecided(self) -> frozenset[str]:
        self._write("running")
        return reports.undecided_arms(self.folder)

    def _write(self, state: str) -> StudyFile:
        write_trials(self.folder, self.record.rows.values())
        if len({*self.predictions.values()}) < len(self.predictions):  # else nothing can be a tie
            rows = pd.DataFrame(self.predictions.items(), columns=["trial_id", "prediction"])
            rows = rows.assign(split="test", index=0, label="", score=1.0)
            self.folder.write_parquet(PREDICTIONS, rows)
        runs = self.log.runs(state, self.names, self.agenda.analyses(closing=state != "running"))
        study = replace(self.study, runs=runs)
        self.folder.write_json(STUDY, study.as_json())
        return study


_made_data = functools.cache(made_data)
_planned = functools.cache(planned_for_power)


def commands_of(form: str, seeds: int) -> list[StudyRequest]:
    """Return what is asked for, one command after the other, of a form whose arms have at most so many seeds."""
    planned = _planned(len(ARMS) - 1)[1]
    ends = [FIRST, 2 * FIRST] if form == "fixed" else [planned, planned + 2 * BLOCK]
    ends = sorted({min(end, seeds // BLOCK * BLOCK) for end in ends})
    return [StudyRequest(trials=0, seeds=end, until_decided=form != "fixed") for end in ends]


def studies(pool: pd.DataFrame, form: str, numbers: Sequence[int]) -> Tally:
    """Run the studies of these numbers, and count what they claim."""
    tally, configurations = Tally(), sorted(pool["configuration"].unique())
    about = pool.attrs
    pool = pool.astype({"configuration": str, "machine": str})
    fixed = _planned(len(ARMS) - 1)[0] * len(ARMS)
    seeds = int((pool["order"] == pool["seed"]).sum()) // len(configurations) // len(ARMS)
    if form == "order":
        seeds = int(pool["order"].max()) // SHARED
    if form == "machines":
        own = pool[(pool["order"] == pool["seed"]) & (pool["configuration"] == configurations[0])]
        seeds = int(own["machine"].value_counts().min()) // 2
    for number in numbers:
        rng = np.random.default_rng([number, FORMS.index(form)])
        requests = commands_of(form, seeds)
        drawn = draw(pool, form, configurations[number % len(configurations)], rng, requests[-1].seeds)
        # In memory where there is such a place: most of a study here is waiting for a disk.
        with tempfile.TemporaryDirectory(dir=MEMORY if Path(MEMORY).is_dir() else None) as folder:
            study = PoolStudy(Folder(folder), drawn, about)
            for request in requests:
                study.run(request)
            tally += _counted(study.claims(), drawn, len(study.record.rows), fixed)
    return tally


def _counted(claims: Sequence[Mapping[str, Any]], drawn: Drawn, trials: int, fixed: int) -> Tally:
    false, missed, decided, found, better = 0, 0, 0, 0, 0
    for claim in claims:
        truth, verdict = drawn.truth[claim["arm"]], claim["verdict"]
        large = abs(truth) >= drawn.smallest
        false += (
            (verdict == BETTER and truth <= 0)
            or (verdict == WORSE and truth >= 0)
            or (verdict == SAME and large)
        )
        missed += claim["low"] is not None and not claim["low"] <= truth + 1e-12 <= claim["high"] + 2e-12
        decided += verdict in (BETTER, WORSE, SAME)
        found += large and verdict == (BETTER if truth > 0 else WORSE)
        better += large
    return Tally(1, int(false > 0), int(missed > 0), decided, int(found), int(better), trials, fixed)


def run_all(corpora: Sequence[str], many: int, processes: int, folder: Path) -> dict[str, float]:
    """Print a table of all forms of all corpora; return the last line."""
    same, shifted = Tally(), Tally()
    with ProcessPoolExecutor(processes) as executor:
        for corpus in corpora:
            pool = pd.read_parquet(pool_file(corpus, folder))
            print(
                f"\n{corpus}: {len(pool):,} trials of {', '.join(pool['machine'].unique())}; test scores:\n"
            )
            print(pool.groupby("configuration", observed=True)["test"].agg(["mean", "std"]).to_string(), "\n")
            heads = ("false claims", "an interval misses", "decided", "effects found", "trials of fixed")
            print_row("form", *heads, head=True)
            for form in FORMS:
                n = many if form in SAME_ARMS else math.ceil(many / 2)
                parts = [range(start, min(start + PART, n)) for start in range(0, n, PART)]
                tallies = executor.map(studies, itertools.repeat(pool), itertools.repeat(form), parts)
                tally = functools.reduce(Tally.__add__, tallies)
                same += tally if form in SAME_ARMS else Tally()
                shifted += tally if form == "shift 1" else Tally()
                print_row(form, *tally.cells())
    low, high = Share(same.false, same.studies).interval
    false, found = same.false / same.studies, shifted.found / shifted.better
    return {"studies": same.studies, "false": false, "low": low, "high": high, "found": found}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.same_arms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--studies", type=int, default=250, help="of each form without an effect; of others half"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--pool", type=Path, default=POOLS, help="folder of the pool")
    parser.add_argument("--make-pool", nargs="+", choices=CORPORA, metavar="CORPUS")
    parser.add_argument("--trials", type=int, default=1500, help="of --make-pool")
    flags = parser.parse_args(argv)
    if flags.make_pool:
        make_pools(flags.make_pool, flags.trials, flags.pool)
    else:
        print(json.dumps(run_all(flags.corpora, flags.studies, flags.processes, flags.pool)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
