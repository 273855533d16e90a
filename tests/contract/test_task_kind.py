"""The task kind of CONTRIBUTING.md is defined as it stands there, and then loads, trains and is scored."""

from datetime import date

import numpy as np
import pytest
from datasets import Dataset

from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest
from adalayers.tasks.kinds import KINDS
from adalayers.training.trainer import train
from tests.helpers.documented import snippet
from tests.helpers.tiny import tiny_backbone


@pytest.fixture
def year(monkeypatch):
    """Run the snippet; the registry is as before afterwards."""
    before = dict(KINDS)
    exec(compile(snippet("task-kind"), "CONTRIBUTING.md", "exec"), {"__name__": "snippet"})
    yield KINDS["year"]
    KINDS.clear()
    KINDS.update(before)


def test_a_kind_defined_in_one_file_loads_trains_and_is_scored(year, tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "letters"
    folder.mkdir()
    for split, n in (("train", 80), ("test", 30)):
        good = rng.random(n) < 0.5
        rows = {
            "text": ["the film is good" if yes else "the river was bad" for yes in good],
            "written": [date(2004 if yes else 2001, 5, 1) for yes in good],
        }
        Dataset.from_dict(rows).to_parquet(str(folder / f"{split}-00000-of-00001.parquet"))
    backbone = tiny_backbone(tmp_path / "tiny", layers=2, width=16, heads=2)
    prepared = prepare(DataRequest(str(backbone), str(folder)))
    task = prepared.task
    assert (task.kind, task.metric, task.label_names) == (year, "closeness", ())
    assert [len(task.splits[name]) for name in ("train", "validation", "test")] == [72, 8, 30]
    settings = LayerMixConfig(k=8, heads=2, epochs=30, patience=30, lr=2e-2, dropout=0.0)
    outcome = train(settings, prepared.data("live"), seed=0, test=True)
    assert outcome.row["test/closeness"] > 0.7 > task.baseline("test")
    assert set(outcome.predictions["label"]) == {"2004", "2001"}
    assert prepared.provenance.splits["train"] != prepared.provenance.splits["test"]
