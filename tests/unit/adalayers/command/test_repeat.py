"""A trial of a study trained again, alone."""

import functools

import pytest
import torch

from adalayers.__main__ import main
from adalayers.command.repeat import data_request
from adalayers.data.prepare import DataRequest, prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.results import study_file as records
from adalayers.results.files import STUDY, TRIALS, write_trials
from adalayers.results.trial_row import TrialRow
from adalayers.storage.folder import Folder
from adalayers.study import trial_id
from adalayers.training.trainer import train
from tests.helpers.tiny import tiny_backbone

DATASET = records.DatasetRecord(name="acceptability-demo", source="embedded")
FLAGS = {"train_examples": 64, "eval_examples": 24, "max_length": 32, "seed": 0}
CONFIG = LayerMixConfig(k=8, heads=2, epochs=2, lr=0.1 + 0.2, train_examples=32)


@pytest.fixture(scope="module")
def trained(world):
    """Return, by type of the base model's numbers, what a confirmed trial was trained on, and its row."""

    @functools.cache
    def trained(dtype):
        prepared = prepare(DataRequest(str(world["backbone"]), DATASET.name, backbone_dtype=dtype, **FLAGS))
        data = prepared.data("live")
        known = {"stage": "confirm", "arm": "a", "seed": 1, "status": "completed"}
        known |= {"settings": CONFIG.used(data.shape), "found": train(CONFIG, data, seed=1, test=True).row}
        return prepared, TrialRow(trial_id=trial_id(CONFIG, data.shape, 1, data.provenance), **known).cells()

    return trained


@pytest.fixture(autouse=True)
def _denormal_numbers_again():
    yield
    torch.set_flush_denormal(False)  # which `repeat` sets for good


@pytest.fixture
def repeated(trained, world, tmp_path, monkeypatch, capsys):
    """Return what writes a study of one trial with changes, repeats it, and returns its code and what it says."""
    monkeypatch.setenv("ADALAYERS_CACHE", str(tmp_path / "cache"))

    def repeated(edit=str, *, dtype="float32", dataset=DATASET, trial="", at=world["backbone"], **changes):
        prepared, row = trained(dtype)
        folder = Folder(tmp_path / "study")
        write_trials(folder, [row | changes])
        folder.write_bytes(TRIALS, edit(folder.read_bytes(TRIALS).decode()).encode())
        base = records.BackboneRecord(id=prepared.source.id, dtype=dtype)
        environment = records.EnvironmentRecord(backbone=base, dataset=dataset)
        request = records.RequestRecord(metric=prepared.task.metric, data=DataRequest(**FLAGS))
        folder.write_json(STUDY, records.StudyFile(request=request, environment=environment).as_json())
        code = main(["repeat", folder.uri, trial or row["trial_id"], "--backbone", str(at)])
        return code, "".join(capsys.readouterr())

    return repeated


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_trial_gives_its_scores_again(repeated, trained, dtype):
    code, said = repeated(lambda text: "\ufeff" + text, dtype=dtype)  # a byte order mark changes nothing
    assert code == 0, said
    assert said.splitlines()[-1] == "the same"
    assert f"again {trained(dtype)[1]['test/matthews']:.6f}" in said


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("test/matthews", 0.987654, "0.987654  again"),
        ("predictions", "p0123456789abcdef", ""),  # of the same scores
        ("test/matthews", "", "test/matthews            nan  again"),
        ("val/accuracy", "n/a", "val/accuracy             nan  again"),
    ],
)
def test_others_are_not_the_same(repeated, column, value, told):
    code, said = repeated(**{column: value})
    assert code == 1
    assert "not the same" in said
    assert told in said


def test_without_names_the_data_are_those_of_the_study(tmp_path):
    """A folder of one's own, which the hub may have by that name, and a dataset of the hub at no revision."""
    for base, named in (
        ({"id": "roberta-large", "path": "/models/roberta-large"}, "/models/roberta-large"),
        ({"id": "random:mine", "path": "/models/mine"}, "random:/models/mine"),
        ({"id": "org/base", "path": "/cache/base", "revision": "abc"}, "org/base@abc"),
    ):
        data = records.DatasetRecord(name="tomatoes", source="someone/tomatoes")
        environment = records.EnvironmentRecord(backbone=records.BackboneRecord(**base), dataset=data)
        asked = data_request(records.StudyFile(environment=environment), None, None, None)
        assert (asked.backbone, asked.dataset) == (named, "someone/tomatoes")
    copied = data_request(records.StudyFile(environment=environment), None, None, "/copies")
    assert copied.backbone == "org/base@abc"
    mine = records.EnvironmentRecord(
        backbone=records.BackboneRecord(id="mine", path=str(tmp_path)), dataset=data
    )
    found = [data_request(records.StudyFile(environment=mine), None, None, str(tmp_path)).backbone]
    (tmp_path / "mine").mkdir()  # a copy, where --data-dir or ADALAYERS_DATA says
    found.append(data_request(records.StudyFile(environment=mine), None, None, str(tmp_path)).backbone)
    assert found == [str(tmp_path), "mine"]


def test_what_cannot_be_repeated_is_bad_input(repeated, tmp_path):
    other = tiny_backbone(tmp_path / "tiny", seed=1)
    # A folder of the user's own may be called like a dataset that has a name here.
    gone = records.DatasetRecord(name="cola", source="local:cola", path=str(tmp_path / "cola"))
    for changes, message in (
        ({"edit": lambda text: text + text.splitlines(keepends=True)[1]}, "more than once"),
        ({"edit": lambda text: text.replace(",", ";")}, "separated by ';' where a study writes commas"),
        ({"config/k": "16"}, "or restore trials.csv"),
        ({"trial": "t0"}, "unknown trial 't0'"),
        ({"at": other}, "was trained on"),
        ({"status": "diverged"}, " is diverged"),
        ({"dataset": gone}, f"got the path {gone.path!r}, which is no folder"),
    ):
        code, said = repeated(**changes)
        assert code == 2
        assert message in said
