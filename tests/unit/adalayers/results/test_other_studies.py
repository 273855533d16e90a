"""Trials of other studies: which are taken, with what, and which are trained again."""

import pandas as pd
import pytest

from adalayers.results.files import BEST, STUDY
from adalayers.results.other_studies import TAKEN_FROM, OtherStudies
from adalayers.results.record import PROGRESS, StudyRecord
from adalayers.results.study_file import EnvironmentRecord, RequestRecord, StudyFile
from adalayers.storage.folder import Folder
from adalayers.study import Variant

HERE = EnvironmentRecord(device="cpu (x86_64)", packages={"torch": "2.13.0"})
FIRST, SECOND, THIRD = (f"t{number:012d}" for number in (1, 2, 3))
VARIANTS = {variant.name: variant for variant in (Variant(cutoff=0.1), Variant(cutoff=0.2))}


def train(record, trial_id, score, arm, seed=1):
    """Let a trial begin and end as a worker would leave it."""
    work = record.work(trial_id)
    if not work.exists(PROGRESS):
        columns = {
            "stage": "confirm",
            "arm": arm,
            "search": "",
            "seed": seed,
            "config/k": 8,
            "fusion": "layer-mix",
        }
        record.begin(trial_id, columns)
        work.write_parquet(
            "predictions.parquet", pd.DataFrame({"split": ["val"], "index": [0], "predicted": [1]})
        )
        scores = pd.DataFrame(
            {"split": "val", "variant": list(VARIANTS), "metric": "accuracy", "value": [0.1, 0.2]}
        )
        work.write_parquet("evaluations.parquet", scores)
        work.write_json(f"{BEST}/config.json", {"trial_id": trial_id})
        work.write_bytes(f"{BEST}/model.safetensors", b"")
        row = {
            "val/accuracy": score,
            "test/accuracy": score / 2,
            "epochs": 2,
            "parameters": 7,
            "seconds": 3.5,
        }
        history = [{"epoch": 1.0, "val/accuracy": score}, {"epoch": 2.0, "mix/weight_01": 0.25}]
        work.write_json(PROGRESS, {"status": "completed", "error": "", "row": row, "history": history})
    return record.end(trial_id)


@pytest.fixture
def root(tmp_path):
    """The results of a study that trained two trials, the second the better."""
    folder = Folder(tmp_path).child("first").child("minilm-cola")
    record = StudyRecord(folder, "accuracy")
    train(record, FIRST, 0.5, "mix")
    train(record, SECOND, 0.7, "last")
    record.write()
    write_document(folder)
    return Folder(tmp_path)


def write_document(folder, environment=HERE):
    document = StudyFile(id="a", environment=environment, request=RequestRecord(variants=VARIANTS))
    folder.write_json(STUDY, document.as_json())


def others(root, study="second", name="minilm-cola", **changed):
    wanted = {FIRST, SECOND, THIRD}
    settings = {"case": "minilm-cola", "machine": HERE.machine, "metric": "accuracy", "wanted": wanted}
    return OtherStudies(root.child(study).child(name), **settings | changed)


def test_a_trial_of_another_study_is_taken_with_all_that_it_left(root):
    record = StudyRecord(root.child("second").child("minilm-cola"), "accuracy")
    elsewhere = others(root)
    assert elsewhere.take(SECOND, record.work(SECOND), variants={"cutoff=0.2"})
    record.begin(SECOND, {"stage": "confirm", "arm": "layer=6", "search": "", "seed": 1, "config/k": 8})
    row = record.end(SECOND)
    expected = {
        "arm": "layer=6",
        "status": "completed",
        "val/accuracy": 0.7,
        "test/accuracy": 0.35,
        "seconds": 3.5,
    }
    assert row.items() >= {**expected, TAKEN_FROM: "first/minilm-cola"}.items()
    assert record.history(SECOND)["epoch"].tolist() == [1.0, 2.0]
    read = {name: record.folder.read_parquet(name) for name in ("predictions.parquet", "evaluations.parquet")}
    assert read["predictions.parquet"]["trial_id"].tolist() == [SECOND]
    assert read["evaluations.parquet"]["variant"].tolist() == ["cutoff=0.2"]
    assert record.folder.read_json(f"{BEST}/config.json") == {"trial_id": SECOND}
    assert not elsewhere.take(SECOND, record.work(SECOND), variants=()), "it is there by now"
    assert not elsewhere.take(THIRD, record.work(THIRD), variants=()), "nobody trained it"


def test_where_it_first_came_from_is_kept(root):
    record = StudyRecord(root.child("second").child("minilm-cola"), "accuracy")
    others(root).take(SECOND, record.work(SECOND), variants=())
    record.begin(SECOND, {"stage": "confirm", "arm": "layer=6", "search": "", "seed": 1})
    record.end(SECOND)
    record.write()
    write_document(record.folder)
    root.delete("first")
    third = StudyRecord(root.child("third").child("minilm-cola"), "accuracy")
    assert others(root, study="third").take(SECOND, third.work(SECOND), variants=())
    assert third.work(SECOND).read_json(PROGRESS)["row"][TAKEN_FROM] == "first/minilm-cola"


def test_the_best_model_must_be_there(root):
    """`best/` of the other study is of its second trial: the first is taken where it is not the best of all."""
    assert set(others(root).ids) == {FIRST, SECOND}
    assert set(others(root, wanted={FIRST}).ids) == set(), "best/ would be of no trial"


@pytest.mark.parametrize(
    "changed",
    [
        {"machine": "a GPU, torch 2.13.0"},
        {"study": "first", "name": "minilm-cola-again"},
        {"case": "minilm-imdb"},
    ],
    ids=["another machine", "the same study under another label", "other data"],
)
def test_what_is_not_taken(root, changed):
    assert not others(root, **changed).ids


def test_a_variant_that_was_not_scored_is_trained(root):
    assert not others(root).take(FIRST, root.child("work"), variants={"cutoff=0.3"})


def test_damage_in_another_study_is_not_this_ones(root):
    folder = root.child("first").child("minilm-cola")
    folder.write_bytes("predictions.parquet", b"no parquet")
    assert not others(root).take(SECOND, root.child("work"), variants=())
    folder.write_bytes("trials.csv", b"no table")
    assert not others(root).ids


def test_a_model_that_is_another_trials_by_now_is_not_taken(root):
    """A study that is still running may find a better one between the look and the taking."""
    elsewhere, record = others(root), StudyRecord(root.child("second").child("minilm-cola"), "accuracy")
    root.child("first").child("minilm-cola").write_json(f"{BEST}/config.json", {"trial_id": THIRD})
    assert not elsewhere.take(SECOND, record.work(SECOND), variants=())


def test_a_folder_that_may_not_be_read_is_passed_over(root, monkeypatch):
    names = Folder.names

    def private(folder, name=""):
        if name == "lost+found":
            raise PermissionError(13, "Permission denied", name)
        return names(folder, name)

    root.child("lost+found").write_json("x.json", {})
    monkeypatch.setattr(Folder, "names", private)
    assert set(others(root).ids) == {FIRST, SECOND}
