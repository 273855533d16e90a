"""Made-up results folders of an `alpha_lambda`-like study, written as a study writes them.

    made = MadeUp(seeds=3, effects={"alpha=8 entropy_weight=0": 0.1})
    made.write(tmp_path / "minilm-cola")

Scores are a level plus the arm's effect plus a seed's own luck, shared by all arms, plus noise. Nothing
here trains: a test knows every number it put in.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from adalayers.comparisons import FIRST, planned_comparisons
from adalayers.results import files as results
from adalayers.results.interim_analyses import CROSSED, EXTENSIONS, InterimAnalysis
from adalayers.results.study_file import Run, StudyFile, from_json
from adalayers.storage.folder import Folder
from adalayers.tasks.metrics import class_scores, token_scores
from adalayers.tasks.schemes import scheme_or_runs
from tests.helpers.made_scores import analysed

CONTROL = "alpha=1 entropy_weight=0"
ALPHAS, WEIGHTS, LAYERS = (1, 8, 64, 512), (0.0, 0.001, 0.01), 6
CELLS = [(alpha, weight) for alpha in ALPHAS for weight in WEIGHTS]
CORE = tuple(f"alpha={alpha} entropy_weight={weight:g}" for alpha, weight in CELLS)
TYPES = ("LOC", "MISC", "ORG", "PER")
TAGS = ("O", *(f"{place}-{name}" for name in TYPES for place in "BI"))
DOCUMENT = Path(__file__).with_suffix(".json")
"""Of `study.json`: all that no made-up study changes."""


@dataclass
class MadeUp:
    """A made-up study; change any field, or `study` and `trials` after `build`, before `write`.

    effects:   arm -> added to its level on every seed
    failed:    trials (arm, seed) that failed; noise: SD of what differs between arms on one seed
    stopped:   search trials that the scheduler stopped, among `search` of them
    evaluations: rows of history per trial, each after one of mix weights alone
    examples:  of the test split; with any, test scores are those of predictions that are right as often as
               the trial's level says; without, there are none, and their hashes differ from arm to arm
    """

    seeds: int = 3
    effects: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.01
    failed: tuple[tuple[str, int], ...] = ()
    search: int = 6
    stopped: int = 2
    evaluations: int = 5
    tokens: bool = False
    test: bool = True
    layers: int = LAYERS
    seed: int = 0
    examples: int = 0

    def __post_init__(self) -> None:
        self.metric = "f1" if self.tokens else "matthews"
        self.arms = self._arms()
        self.trials: list[dict[str, Any]] = []
        self.history: list[dict[str, Any]] = []
        self.predictions: list[dict[str, Any]] = []
        self.rng = np.random.default_rng(self.seed)
        self._luck = {seed: 0.02 * self.rng.normal() for seed in range(1, self.seeds + 1)}
        for number in range(self.search):
            self._search_trial(number)
        for arm in self.arms:
            for seed in range(1, self.seeds + 1):
                self._confirm_trial(arm, seed)
        self.study = self._study()

    def write(self, folder: str | Path, *, best: bool = True) -> Folder:
        """Write all files, `study.json`'s counts in line with the trials."""
        place, hashes = Folder(folder), dict[str, dict[str, str]]()
        names = ["trial_id", "split", "index", "label", "prediction", "score"]
        predictions = pd.DataFrame(self.predictions, columns=names)
        for trial_id, rows in predictions.groupby("trial_id"):
            hashes[trial_id] = {"predictions": results.prediction_hash(rows)}
        trials = [{"predictions": ""} | row | hashes.get(row["trial_id"], {}) for row in self.trials]
        results.write_trials(place, trials)
        study = copy.deepcopy(self.study)
        study["runs"]["counts"] = results.counts(results.read_trials(place))
        for split, rows in predictions.groupby("split"):
            sizes = study["environment"]["dataset"]["examples"]
            sizes[{"val": "validation"}.get(split, split)] = int(rows.groupby("trial_id").size().max())
        study["runs"]["history"] = study["runs"]["history"] or [self._one_run()]
        if not study["request"]["comparisons"]:
            asked = from_json(StudyFile, study).request
            factors = [factor.name for factor in asked.factors]
            planned = planned_comparisons(asked.arms, factors, asked.control)
            study["request"]["comparisons"] = [dataclasses.asdict(pair) for pair in planned]
        place.write_json(results.STUDY, study)
        weights = [f"mix/weight_{layer:02d}" for layer in range(1, self.layers + 1)]
        columns = ["trial_id", "epoch", "step", "lr", "train/loss", f"val/{self.metric}", *weights]
        columns = list(dict.fromkeys([*columns, *(key for row in self.history for key in row)]))
        place.write_parquet(results.HISTORY, pd.DataFrame(self.history, columns=columns))
        place.write_parquet(results.PREDICTIONS, predictions)
        if best:
            place.write_bytes(f"{results.BEST}/model.safetensors", b"")
        return place

    def of(self, arm: str) -> list[dict[str, Any]]:
        """Return the rows of one arm, to be changed in place."""
        return [row for row in self.trials if row["arm"] == arm]

    def ran(self, *runs: Sequence[int], planned: Sequence[int] = ()) -> MadeUp:
        """Record runs by their analyses, each after how many seeds: those of the first were planned.

        planned: the most seeds of each run; without, those of its last analysis. A run without analyses added nothing.
        """
        names, before = [arm["name"] for arm in self.arms], 0
        happened: list[dict[str, Any]] = []
        for day, ends in enumerate(runs, start=1):
            end = max(ends, default=before)
            level = CROSSED / len(runs[0]) if day == 1 else EXTENSIONS / 2 ** (day - 1)
            how = {"level": level, "planned": tuple(runs[0]), "extension": day > 1}
            analyses = tuple(analysed(names, *(after for after in ends if after >= FIRST), **how))
            scored = dict.fromkeys(("confirmed", "test_scored"), len(names) * (end - before))
            when = {"started": f"2026-05-0{day}", "ended": f"2026-05-0{day}T12:00", "seconds": 812.0}
            made = Run(
                seeds={name: [*range(before + 1, end + 1)] for name in names},
                planned=planned[day - 1] if planned else end,
                until_decided=len(ends) > 1,
                **{"analyses": analyses, "commit": "abc", "dirty": False, **when, **scored},
            )
            happened.append(dataclasses.asdict(made))
            before = end
        counts = {"analyses": sum(map(len, runs)), "test_opened": sum(map(bool, runs))}
        self.study["runs"] |= {"history": happened, **counts}
        return self

    def _one_run(self) -> dict[str, Any]:
        """Return a run of all trials as they are, with one analysis at its end."""
        seeds: dict[str, list[int]] = {arm["name"]: [] for arm in self.arms}
        for row in self.trials:
            if row["stage"] == "confirm":
                seeds.setdefault(row["arm"], []).append(row["seed"])
        most = max(map(len, seeds.values()), default=0)
        last = InterimAnalysis(after=most, level=CROSSED, planned=(most,), covered=seeds)
        analyses = (last,) if most >= FIRST else ()
        return dataclasses.asdict(Run(confirmed=1, seeds=seeds, planned=max(1, most), analyses=analyses))

    def _arms(self) -> list[dict[str, Any]]:
        best = {"alpha": 91.5, "entropy_weight": 0.0004, "mix": "learned"}
        core = [{"alpha": alpha, "entropy_weight": weight, "mix": "learned"} for alpha, weight in CELLS]
        arms = [{"name": name, "role": "core", "config": own} for name, own in zip(CORE, core, strict=True)]
        arms[6]["aliases"] = ["published"]
        others = {"uniform": {"mix": "uniform"}, "last": {"mix": "last"}, "best": best}
        arms += [{"name": name, "role": name, "config": config} for name, config in others.items()]
        for arm in arms:
            rates = {"lr": 0.001, "mix_lr": 0.001} if arm["config"]["mix"] == "learned" else {"lr": 0.001}
            arm["config"] = {**rates, **arm["config"]}
        return [{"aliases": [], "label": "", "tunes": [], "fusion": "layer-mix", **arm} for arm in arms]

    def _search_trial(self, number: int) -> None:
        stopped = number < self.stopped
        alpha = float(np.exp(self.rng.uniform(np.log(0.5), np.log(1024))))
        weight = float(self.rng.choice([0.0, 10.0 ** round(self.rng.uniform(-4, -1))]))
        config = {"alpha": alpha, "entropy_weight": weight, "mix": "learned"}
        config |= {"lr": 10 ** self.rng.uniform(-4, -2), "mix_lr": 10 ** self.rng.uniform(-4, -1)}
        level = 0.35 + 0.03 * math.log10(alpha) + 0.03 * self.rng.normal()
        row = self._row(config, trial_id=f"search{number:03d}", stage="search", arm="", seed=0)
        row["status"] = "stopped" if stopped else "completed"
        self._run(row, level * (0.7 if stopped else 1.0), 2 if stopped else self.evaluations)

    def _confirm_trial(self, arm: Mapping[str, Any], seed: int) -> None:
        name = arm["name"]
        trial_id = f"{self.arms.index(dict(arm)):02d}{seed:02d}"
        config = {"lr": 0.001, "mix_lr": 0.001, **arm["config"]}
        row = self._row(config, trial_id=trial_id, stage="confirm", arm=name, status="completed", seed=seed)
        if (name, seed) in self.failed:
            self.trials.append(row | {"status": "failed", "error": "RuntimeError: loss | was\n`nan`"})
            return
        level = 0.4 + self.effects.get(name, 0.0) + self._luck[seed] + self.noise * self.rng.normal()
        self._run(row, level, self.evaluations)
        if self.test:
            row[f"test/{self.metric}"] = level - 0.01 + 0.3 * self.noise * self.rng.normal()
            if self.tokens:
                row |= {f"test/f1/{kind}": level + 0.02 * place for place, kind in enumerate(TYPES)}
        if self.examples:
            self._predict(row, level)
        else:
            row["predictions"] = f"p{self.arms.index(dict(arm))}"

    def _predict(self, row: dict[str, Any], level: float) -> None:
        """Add predictions on the test split, and the score that they have."""
        right = self.rng.random(self.examples) < 0.5 + level / 2
        if self.tokens:
            labels = [("B-LOC I-LOC O B-PER", "O B-ORG")[i % 2] for i in range(self.examples)]
            wrong = [tags.replace("I-", "B-").replace("ORG", "LOC") for tags in labels]
            pairs = zip(right, labels, wrong, strict=True)
            said = [(tags if ok else other).split() for ok, tags, other in pairs]
            labels = [tags.split() for tags in labels]
            scores = token_scores(labels, said, scheme_or_runs(TAGS))
        else:
            gold = np.arange(self.examples) % 3 // 2
            answer = np.where(right, gold, 1 - gold)
            names = np.array(["unacceptable", "acceptable"])
            labels, said = names[gold].tolist(), names[answer].tolist()
            scores = class_scores(gold, answer, 2)
        row |= {f"test/{name}": score for name, score in scores.items()}
        self.predictions += [
            {"trial_id": row["trial_id"], "split": "test", "index": i}
            | {"label": a, "prediction": b, "score": 0.9}
            for i, (a, b) in enumerate(zip(labels, said, strict=True))
        ]

    def _row(self, config: Mapping[str, Any], **row: Any) -> dict[str, Any]:
        return {"error": "", **row} | {f"config/{name}": value for name, value in config.items()}

    def _run(self, row: dict[str, Any], level: float, evaluations: int) -> None:
        """Add a trial that reaches `level` at its last evaluation but one, and its history."""
        mix, alpha = row["config/mix"], float(row.get("config/alpha", 1.0))
        weight = float(row.get("config/entropy_weight", 0.0))
        pull = np.linspace(-1.0, 1.0, self.layers) + 0.3 * self.rng.normal(size=self.layers)
        best = max(1, evaluations - 1)
        speed = 0.15 * math.log2(1 + alpha) * (1 + 60 * weight)
        p = np.full(self.layers, 1 / self.layers)
        for step in range(1, evaluations * 2 + 1):
            epoch = step / 2
            logits = speed * pull * epoch / evaluations
            if mix == "learned":
                p = np.exp(logits) / np.exp(logits).sum()
            elif mix == "last":
                p = np.eye(self.layers)[-1]
            point = {"trial_id": row["trial_id"], "epoch": epoch, "step": 100 * step, "lr": 0.001}
            point |= {f"mix/weight_{layer:02d}": float(share) for layer, share in enumerate(p, start=1)}
            if step % 2 == 0:
                reached = min(1.0, epoch / best) ** (1 / (1 + math.log2(1 + alpha)))
                score = level * reached if epoch <= best else level - 0.005
                point |= {"train/loss": 1 - 0.5 * reached, f"val/{self.metric}": score}
            self.history.append(point)
        entropy = float(-(p[p > 0] * np.log(p[p > 0])).sum())
        row |= {"epochs": evaluations, "best_epoch": best, f"val/{self.metric}": level}
        row |= {"mix/entropy": entropy, "mix/live_layers": int((p > 0.02).sum())}
        row |= {"parameters": 165_512, "seconds": 12.5}
        self.trials.append(row)

    def _study(self) -> dict[str, Any]:
        document = json.loads(DOCUMENT.read_text())
        document["name"] = "minilm-conll2003" if self.tokens else "minilm-cola"
        document["request"] |= {"trials": self.search, "seeds": self.seeds, "epochs": self.evaluations}
        document["request"] |= {"metric": self.metric, "control": CONTROL}
        environment = document["environment"]
        environment["backbone"]["layers"] = self.layers
        environment["hidden_states"] = [f"{layer:02d}" for layer in range(1, self.layers + 1)]
        environment["dataset"]["metric"] = self.metric
        if self.examples:
            environment["dataset"]["examples"]["test"] = self.examples
        if self.tokens:
            environment["dataset"] |= {"name": "conll2003", "kind": "token", "labels": list(TAGS)}
        study = TypeAdapter(StudyFile).validate_python(document).as_json()  # with defaults
        study["request"]["arms"] = self.arms  # the same objects: a test changes either
        return study
