"""What a study of many trials costs its driver: without Ray and without training, through its agenda and its record."""

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ray import tune
from ray.tune.search import Searcher

import reports
from adalayers.comparisons import PlannedArm
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import Resources, StudyRequest
from adalayers.results.files import PREDICTIONS, write_trials
from adalayers.results.record import PROGRESS, StudyRecord
from adalayers.results.trial_row import TrialRow
from adalayers.storage.folder import Folder
from adalayers.study import ConfirmedArm, PlannedSearch, Space, StudyPlan
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.run_log import RunLog
from adalayers.tuning.searcher import StudySearcher
from tests.benchmarks.measure import logger
from tests.benchmarks.memory import anonymous_mb
from tests.helpers.made_data import made_data
from tests.helpers.made_study import study_of

EXAMPLES, EVALUATIONS, SEEDS = 200, 8, 10
"""Of a trial: test examples, rows of its history; of an arm: its seeds."""


class MadeCase:
    """A study of so many trials, a tenth of them a search's, whose trials end at once."""

    live = False

    def __init__(self, folder: Folder, trials: int):
        self.data, searched = made_data(), trials // 10
        base = LayerMixConfig()
        space = Space({"lr": tune.loguniform(1e-4, 1e-2)}, {}, {})
        arms = [
            ConfirmedArm(f"alpha={number}", "core", LayerMixConfig(alpha=float(number)))
            for number in range(1, (trials - searched) // SEEDS + 1)
        ]
        plan = StudyPlan(base, arms, searches=[PlannedSearch(base, space)])
        self.request = StudyRequest(trials=searched, seeds=SEEDS, search="random")
        self.record = StudyRecord(folder, self.data.metric)
        planned = [PlannedArm(arm.name, arm.role, arm.config.used(self.data.shape)) for arm in arms]
        self.study = study_of(planned, self.data.metric, smallest_effect=0.01, baseline=0.5)
        self.agenda = Agenda(plan, self.record, self.data, self.request, before=self.study)
        self.log = RunLog(self.study.runs, self.record, self.study.environment, self.request)
        self.rng = np.random.default_rng(0)

    def on_epoch(self, program: str, trials: int, epoch: float = 0.0, seconds: float = 0.0) -> None:
        """Nothing: the line of progress is not measured."""

    def on_end(self, row: TrialRow) -> None:
        self.agenda.total(), self.agenda.remaining()  # as the line of progress
        if self.record.written:
            self.write("running")

    def write(self, state: str) -> None:
        names = [arm.name for arm in self.agenda.arms]
        runs = self.log.runs(state, names, self.agenda.analyses(closing=state != "running"))
        self.record.write_study(replace(self.study, runs=runs).as_json())

    def train(self, trial_id: str) -> None:
        """Leave what a worker leaves."""
        work, metric = self.record.work(trial_id), self.data.metric
        score = float(self.rng.normal(0.8, 0.02))
        history = [
            {"epoch": float(epoch), "step": 3.0 * epoch, "train/loss": 1.0 / epoch, f"val/{metric}": score}
            for epoch in range(1, EVALUATIONS + 1)
        ]
        row = {f"{split}/{metric}": score for split in ("val", "test")} | {
            "epochs": EVALUATIONS,
            "seconds": 1.0,
        }
        labels = self.rng.integers(0, 3, EXAMPLES)
        said = np.where(self.rng.random(EXAMPLES) < score, labels, 0)
        rows = pd.DataFrame({"split": "test", "index": range(EXAMPLES), "label": labels, "prediction": said})
        work.write_parquet(PREDICTIONS, rows.astype({"label": str, "prediction": str}).assign(score=0.5))
        work.write_json(PROGRESS, {"status": "completed", "error": "", "row": row, "history": history})


def driver_costs(trials: int) -> dict[str, float]:
    """Return what a study of so many trials costs: CPU of a trial, MB, and seconds of what is done once."""
    with tempfile.TemporaryDirectory(prefix="adalayers-driver-") as root:
        before, folder = anonymous_mb(), Folder(f"{root}/made")
        case = MadeCase(folder, trials)
        searcher = StudySearcher([case], Resources(group="1"))
        cpu, ended = 0.0, 0
        while True:
            began = time.process_time()
            asked = searcher.suggest(str(ended))
            cpu += time.process_time() - began
            if asked == Searcher.FINISHED:
                break
            case.train(asked["jobs"][0].trial_id)
            began = time.process_time()
            searcher.on_trial_complete(str(ended), {"epoch": EVALUATIONS})
            cpu += time.process_time() - began
            ended += 1
        costs = {"driver_ms_a_trial": 1000 * cpu / ended, "driver_mb": anonymous_mb() - before}
        for name, step in {
            "files_s": case.record.write,
            "trials_csv_s": lambda: write_trials(folder, [row.cells() for row in case.record.rows.values()]),
            "study_json_s": lambda: case.write("finished"),
            "analysis_s": lambda: reports.undecided_arms(folder),
            "report_s": lambda: reports.write_report(folder),
        }.items():
            began = time.process_time()
            step()
            costs[name] = time.process_time() - began
        return costs


def driver(root: Path, sizes: Any) -> dict[str, float]:
    """Measure studies of 100 to 3,000 trials; CPU seconds throughout."""
    measured = {}
    for trials in (100, 300, 1000, 3000)[: sizes.levels]:
        costs = driver_costs(trials)
        logger.info(f"{trials:,} trials: {', '.join(f'{name} {cost:.3g}' for name, cost in costs.items())}")
        measured |= {f"{name}_{trials}": cost for name, cost in costs.items()}
    return measured
