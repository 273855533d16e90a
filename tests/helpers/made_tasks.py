"""A trained task in a folder as a study leaves it, made in seconds: tiny backbone, embedded data, no Ray."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from adalayers.comparisons import PlannedArm
from adalayers.config import TrialConfig, as_values
from adalayers.data.prepare import DataRequest, prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.saved import save
from adalayers.results import study_file as records
from adalayers.results.files import BEST, STUDY, write_trials
from adalayers.storage.folder import Folder
from adalayers.training.trainer import Outcome, train

SMALL = {"k": 8, "heads": 2, "feedforward": 16, "epochs": 1, "lr": 0.01}


@dataclass(frozen=True)
class Made:
    """best: the folder of the trained parts; inputs: the test split's; predicted: of them; outcome: of training"""

    best: Path
    inputs: list[Any]
    outcome: Outcome

    @property
    def predicted(self) -> pd.DataFrame:
        rows = self.outcome.predictions
        return rows[rows["split"] == "test"]


def made_task(folder: Path, backbone: str, dataset: str, config: TrialConfig | None = None) -> Made:
    """Train on an embedded dataset, and leave what a study of three seeds would around it."""
    config = config or LayerMixConfig(**SMALL)
    prepared = prepare(DataRequest(backbone, dataset, train_examples=64, eval_examples=24, test_examples=24))
    data = prepared.data("live")
    outcome = train(config, data, seed=1, test=True)
    about = {"trial_id": "t1", "kind": data.kind.name, "labels": list(data.label_names)}
    about |= {name: asdict(getattr(data.provenance, name)) for name in ("backbone", "dataset")}
    about |= {"max_length": data.max_length}
    results = Folder(folder)
    save(outcome.model, results.child(BEST), about=about)
    trial = {"stage": "confirm", "arm": "alpha=1", "search": "", "status": "completed", "error": ""}
    trial |= {f"config/{name}": value for name, value in as_values(config).items() if name != "fusion"}
    trial |= {"fusion": config.fusion, **outcome.row, "cost/use": 2e-4}
    rows = [
        {"trial_id": f"t{seed}", **trial, "seed": seed, f"test/{data.metric}": score}
        for seed, score in ((1, 0.5), (2, 0.6), (3, 0.7))
    ]
    write_trials(results, rows)
    source, task = prepared.source, prepared.task
    examples = {name: len(split.inputs) for name, split in task.splits.items()}
    known = {"kind": task.kind.name, "labels": task.label_names, "examples": examples, **asdict(task.reading)}
    sizes = {"layers": source.layers, "layer_parameters": 1000}
    base = records.BackboneRecord(name=source.name, id=source.id, **sizes)
    read = records.DatasetRecord(name=task.name, source=task.source, **known)
    environment = records.EnvironmentRecord(backbone=base, dataset=read)
    arms = (PlannedArm("alpha=1", "core"),)
    request = records.RequestRecord(question="How much?", metric=data.metric, arms=arms, control="alpha=1")
    runs = records.RunsRecord(state="finished")
    of = {"study": "alpha_lambda", "name": folder.name}
    document = records.StudyFile(**of, request=request, environment=environment, runs=runs)
    results.write_json(STUDY, document.as_json())
    return Made(folder / BEST, list(task.splits["test"].inputs), outcome)
