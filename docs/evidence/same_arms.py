"""Trains the pool that `docs.evidence.calibration` draws equal arms from.

    python -m docs.evidence.same_arms entities-demo cola --trials 1500     goes on with the pool where it stands

The pool is a parquet file per corpus beside this file, a row per trial of one of three configurations: `order`, the
seed of its batches, and `seed`, that of its start and its dropout, its scores, a hash of its test predictions, and the
machine. As a rule both seeds are the same; of every tenth order there are eight trials that share its batches alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pandas as pd
import torch

from adalayers.config import TrialConfig
from adalayers.data.prepare import prepare
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.environ import default_cache
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest
from adalayers.results.provenance import device, versions
from adalayers.results.study_file import EnvironmentRecord
from adalayers.training.together import Steps, Together
from adalayers.training.trainer import Trainer

POOLS = Path(__file__).resolve().parent
SHARED, STREAMS = 10, 8
"""Every so many orders, so many trials of one configuration share the order."""
APART = 1_000_000
"""Seeds of trials that share an order lie so far apart."""
KEEP_SECONDS = 60.0
CPUS = Path("/proc/cpuinfo")


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
            "data": dataclasses.asdict(self.data.provenance),
        }
        about = json.loads(json.dumps(about))  # as it is read back
        self.pool = pd.read_parquet(self.path) if self.path.exists() else pd.DataFrame()
        if len(self.pool) and self.pool.attrs != about:
            raise SystemExit(f"wanted a pool of what is trained now, {self.path} is of {self.pool.attrs}")
        self.about = about
        model = re.search(r"model name\s*: (.*)", CPUS.read_text()) if CPUS.exists() else None
        about_machine = EnvironmentRecord(device=device(), packages=versions()).machine
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
    rows, shuffled = [], SplitData.shuffled

    def trial(name: str, config: TrialConfig, seed: int) -> Steps[None]:
        trainer = Trainer(config, data, seed=seed, device=torch.device("cpu"))
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
        Together().run(trials)
    return sorted(rows, key=lambda row: (str(row["configuration"]), row["seed"]))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m docs.evidence.same_arms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpora", nargs="+", choices=CORPORA)
    parser.add_argument("--trials", type=int, default=1500, help="that the pool of each is to hold")
    parser.add_argument("--pool", type=Path, default=POOLS, help="folder of the pool")
    flags = parser.parse_args(argv)
    make_pools(flags.corpora, flags.trials, flags.pool)
    return 0


if __name__ == "__main__":
    sys.exit(main())
