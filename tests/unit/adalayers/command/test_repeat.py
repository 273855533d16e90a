"""A trial of a study trained again, alone."""

import pytest

from adalayers.__main__ import main
from adalayers.config import as_values
from adalayers.data.prepare import DataRequest, prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.results import study_file as records
from adalayers.results.files import STUDY, TRIALS, write_trials
from adalayers.storage.folder import Folder
from adalayers.study import trial_id
from adalayers.training.trainer import train
from tests.helpers.tiny import tiny_backbone

DATASET = "acceptability-demo"
NO_SCORES = {"test/matthews": "", "val/accuracy": "n/a", "test/f1_macro": "nan"}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return str(tiny_backbone(tmp_path_factory.mktemp("models") / "tiny", layers=2, width=16, heads=2))


@pytest.fixture
def dtype():
    return "float32"


@pytest.fixture
def study(backbone, dtype, tmp_path, monkeypatch):
    """The folder of a study of one confirmed trial, and how to write it with other scores."""
    monkeypatch.setenv("ADALAYERS_CACHE", str(tmp_path / "cache"))
    flags = {"train_examples": 64, "eval_examples": 24, "max_length": 32, "seed": 0}
    prepared = prepare(DataRequest(backbone, DATASET, backbone_dtype=dtype, **flags))
    config = LayerMixConfig(k=8, heads=2, epochs=2, lr=0.1 + 0.2, train_examples=32)
    data = prepared.data("live")
    identity = trial_id(config, data.shape, 1, data.provenance)
    row = train(config, data, seed=1, test=True).row
    settings = {f"config/{name}": value for name, value in as_values(config).items()}
    for name in ("fusion", "train_examples", "draw"):
        del settings[f"config/{name}"]
    record = {"trial_id": identity, "stage": "confirm", "arm": "a", "search": ""}
    record |= {"status": "completed", "error": ""}
    folder = Folder(tmp_path / "study")

    def write(**changes):
        drawn = {"seed": 1, "fusion": config.fusion, "train_examples": 32}
        write_trials(folder, [{**record, **settings, **drawn, **row, **changes}])
        environment = records.EnvironmentRecord(
            backbone=records.BackboneRecord(id=prepared.source.id, dtype=dtype),
            dataset=records.DatasetRecord(name=DATASET),
        )
        request = records.RequestRecord(metric=data.metric, data=DataRequest(**flags))
        folder.write_json(STUDY, records.StudyFile(request=request, environment=environment).as_json())
        return folder.uri, identity, row

    return write


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_trial_gives_its_scores_again(study, backbone, capsys):
    folder, identity, row = study()
    edit(folder, lambda text: "\ufeff" + text)  # a byte order mark changes nothing
    assert main(["repeat", folder, identity, "--backbone", backbone]) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "the same"
    assert f"again {row['test/matthews']:.6f}" in said


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("test/matthews", 0.987654, "0.987654  again"),
        ("predictions", "p0123456789abcdef", ""),  # of the same scores
        *((column, value, f"{column:<24} nan  again") for column, value in NO_SCORES.items()),
    ],
)
def test_others_are_not_the_same(study, backbone, capsys, column, value, told):
    folder, identity, _ = study(**{column: value})
    assert main(["repeat", folder, identity, "--backbone", backbone]) == 1
    said = capsys.readouterr().out
    assert "not the same" in said
    assert told in said


def edit(folder: str, change) -> None:
    """Change `trials.csv` as text."""
    path = Folder(folder).path() / TRIALS
    path.write_text(change(path.read_text()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + text.splitlines(keepends=True)[1], "more than once"),
        (lambda text: text.replace(",", ";"), "columns are separated by ';' where a study writes commas"),
        (None, "restore trials.csv from a copy if the row was edited"),
    ],
    ids=["a doubled row", "semicolons", "another k"],
)
def test_nothing_to_compare_is_bad_input(study, backbone, capsys, change, message):
    folder, identity, _ = study(**({} if change else {"config/k": "16"}))
    if change:
        edit(folder, change)
    assert main(["repeat", folder, identity, "--backbone", backbone]) == 2
    assert message in capsys.readouterr().err


def test_own_data_that_are_gone_are_asked_for_by_name(study, backbone, tmp_path, capsys):
    """A folder of the user's own may be called like a dataset that has a name here."""
    folder, identity, _ = study()
    document = Folder(folder).read_json(STUDY)
    gone = str(tmp_path / "cola")
    document["environment"]["dataset"] |= {"name": "cola", "source": "local:cola", "path": gone}
    Folder(folder).write_json(STUDY, document)
    assert main(["repeat", folder, identity, "--backbone", backbone]) == 2
    assert f"the folder {gone}, it is not here; name it with --dataset" in capsys.readouterr().err


def test_what_cannot_be_repeated_is_bad_input(study, backbone, tmp_path, capsys):
    folder, identity, _ = study()
    other = str(tiny_backbone(tmp_path / "tiny", layers=2, width=16, heads=2, seed=1))
    for argv, message in (
        ([folder, "t0", "--backbone", backbone], "unknown trial 't0'"),
        ([folder, identity, "--backbone", other], f"wanted what {identity} was trained on"),
    ):
        assert main(["repeat", *argv]) == 2
        assert message in capsys.readouterr().err
    study(status="diverged")
    assert main(["repeat", folder, identity, "--backbone", backbone]) == 2
    assert f"{identity} is diverged" in capsys.readouterr().err
