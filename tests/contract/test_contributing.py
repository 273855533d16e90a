"""What CONTRIBUTING.md shows works as it stands: studies, a section, a task kind, a hyperparameter of the step."""

import re
import runpy
import sys
import types
from datetime import date
from unittest import mock

import numpy as np
import pytest
import torch
from datasets import Dataset
from matplotlib.backends.backend_agg import FigureCanvasAgg

import search_spaces
from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMix, LayerMixConfig
from adalayers.request import DataRequest
from adalayers.tasks.kinds import KINDS
from adalayers.training import together
from adalayers.training.together import Together
from adalayers.training.trainer import Trainer, train
from reports.page.details import SECTIONS, details
from tests.helpers.documented import fenced, snippet
from tests.helpers.long_form import MINILM
from tests.helpers.made_data import made_data
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.pages import evidence_of
from tests.helpers.studying import ROOT
from tests.helpers.tiny import tiny_backbone

SNIPPET = re.compile(r"^```python\n# ((?:studies|search_spaces)/\w+\.py)\n(.*?)^```$", re.M | re.S)


SHOWN = {"dropout": ("CONTRIBUTING.md", 11), "batch": ("search_spaces/README.md", 21)}
"""Study -> the page that shows it, and the trials of its arms in a smoke run."""


@MINILM
@pytest.mark.parametrize("name", SHOWN)
def test_the_dry_run_plans_its_arms_on_the_embedded_demo(name, tmp_path, monkeypatch, capsys):
    """Its files are written elsewhere; its `search_spaces` joins the project's own, as if the file stood there."""
    page, trials = SHOWN[name]
    files = dict(SNIPPET.findall((ROOT / page).read_text()))
    assert [*files] == [f"search_spaces/{name}.py", f"studies/{name}.py"]
    for path, text in files.items():
        assert not (ROOT / path).exists(), "it is a study of ours"
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    script = str(tmp_path / "studies" / f"{name}.py")
    monkeypatch.setattr(search_spaces, "__path__", [*search_spaces.__path__, str(tmp_path / "search_spaces")])
    monkeypatch.setattr(sys, "argv", [script, "--smoke", "--dry-run"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(script, run_name="__main__")
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    arms = "arms +3 and the best of each search, 2 seeds each; a verdict takes 6 seeds"
    for words in ("minilm", "acceptability-demo", rf"trials +{trials}, 0 done", arms):
        assert re.search(words, said.out), said.out
    assert not (tmp_path / "results").exists()


GUIDE = ROOT / "CONTRIBUTING.md"


@pytest.fixture
def section(monkeypatch) -> str:
    """The guide's last snippet as the module that it says it is."""
    (name,) = re.findall(r"^`reports/sections/(\w+)\.py`, whole", GUIDE.read_text(), re.M)
    module = types.ModuleType(f"reports.sections.{name}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(fenced(GUIDE, "python")[-1], str(GUIDE), "exec"), vars(module))
    return name


def test_the_section_is_shown_with_its_numbers_and_its_figure_where_it_applies(tmp_path, section):
    made = MadeUp(seeds=2, search=2, evaluations=2)
    for row, seconds in zip(made.of(CONTROL), (10.0, 20.0), strict=True):
        row["seconds"] = seconds
    page = details(evidence_of(made, tmp_path / "whole"), (SECTIONS[0], section))
    text = page.text
    assert "## Training time" in text
    assert rf"| {CONTROL} | 15.000 |".replace("_", r"\_") in text
    FigureCanvasAgg(page.figures[section]).draw()
    made.trials = [row for row in made.trials if row["stage"] == "search"]
    assert "Training time" not in details(evidence_of(made, tmp_path / "search"), (section,)).text


@pytest.fixture
def year():
    """Run the snippet; the registry is as before afterwards."""
    with mock.patch.dict(KINDS):
        exec(compile(snippet("task-kind"), "CONTRIBUTING.md", "exec"), {"__name__": "snippet"})
        yield KINDS["year"]


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


SMALL = {"k": 8, "heads": 2, "batch_size": 16, "epochs": 2, "lr": 3e-3, "dropout": 0.0}
NORMS = (0.0, 0.01, 1e9)


@pytest.fixture
def bounded(monkeypatch):
    exec(snippet("hyperparameter"), added := {"__name__": "added"})
    monkeypatch.setattr(together, "Members", added["Members"])
    return added["LayerMixConfig"]


def trained(configs):
    """Return the losses of trials that train together, by epoch."""
    data, device = made_data(), torch.device("cpu")
    trainers = [Trainer(config, data, seed=1, device=device) for config in configs]
    outcomes = Together().run([trial.steps(lambda evaluation: None) for trial in trainers])
    return [[row["train/loss"] for row in outcome.history if "train/loss" in row] for outcome in outcomes]


@pytest.mark.parametrize("stacked", [True, False])
def test_a_group_of_several_values_gives_what_each_gives_alone(bounded, stacked, monkeypatch):
    if not stacked:
        monkeypatch.setattr(LayerMix, "alike", lambda self: None)
    configs = [bounded(**SMALL, gradient_norm=norm, optimiser="adamw") for norm in NORMS]
    group = trained(configs)
    for own, each in zip(group, configs, strict=True):
        assert own == pytest.approx(*trained([each]), rel=1e-5)
    assert group[2] == pytest.approx(group[0], rel=1e-6), "a bound beyond all norms changes nothing"
    assert group[1] != pytest.approx(group[0], rel=1e-6)
