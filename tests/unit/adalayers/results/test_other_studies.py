"""Trials of other studies: which are taken, with what, and which are trained again."""

from dataclasses import replace

import pandas as pd
import pytest

from adalayers.results import study_file as records
from adalayers.results.files import BEST, EVALUATIONS, HISTORY, PREDICTIONS, STUDY, TRIALS, prediction_hash
from adalayers.results.other_studies import OtherStudies, Wanted
from adalayers.results.record import PROGRESS, StudyRecord
from adalayers.results.trial_row import TAKEN_COMMIT, TAKEN_FROM, TrialRow
from adalayers.storage.folder import Folder
from adalayers.study import Variant

GIT = records.GitRecord(commit="abc", dirty=False)
DATA = records.DatasetRecord(kind="sequence", labels=("no", "yes"))
HERE = records.EnvironmentRecord(dataset=DATA, device="cpu", packages={"torch": "2.13"}, code="c0de", git=GIT)
SEEDS = {"mix": [1], "last": [1]}
RUN = records.Run(confirmed=2, commit="abc", dirty=False, software=HERE.software, seeds=SEEDS)
FIRST, SECOND, THIRD = (f"t{number:012d}" for number in (1, 2, 3))
VARIANTS = {variant.name: variant for variant in (Variant(cutoff=0.1), Variant(cutoff=0.2))}
GOLD = pd.DataFrame({"index": range(10), "label": ["no", "yes"] * 5})


def train(record, trial_id, right, arm):
    """Let a trial begin and end as a worker would leave it, with so many of ten examples right."""
    work, other = record.work(trial_id), GOLD["label"].map({"no": "yes", "yes": "no"})
    rows = GOLD.assign(prediction=GOLD["label"].where(GOLD["index"] < right, other), score=0.9)
    record.begin(TrialRow(trial_id=trial_id, stage="confirm", arm=arm, seed=1, settings={"k": 8}))
    work.write_parquet(PREDICTIONS, pd.concat([rows.assign(split=split) for split in ("val", "test")]))
    scores = {"split": "val", "variant": list(VARIANTS), "metric": "accuracy", "value": [0.1, 0.2]}
    work.write_parquet(EVALUATIONS, pd.DataFrame(scores))
    work.write_json(f"{BEST}/config.json", {"trial_id": trial_id})
    work.write_bytes(f"{BEST}/model.safetensors", b"")
    row = {"val/accuracy": right / 10, "test/accuracy": right / 10, "epochs": 2, "seconds": 3.5}
    row["predictions"] = prediction_hash(rows)
    history = [{"epoch": 1.0, "val/accuracy": right / 10}, {"epoch": 2.0, "mix/weight_01": 0.25}]
    work.write_sealed(PROGRESS, {"status": "completed", "error": "", "row": row, "history": history})
    record.end(trial_id)


def study(folder, rights=(5, 7)):
    """Write a study that trained two trials, the second the better."""
    record = StudyRecord(folder, "accuracy")
    train(record, FIRST, rights[0], "mix")
    train(record, SECOND, rights[1], "last")
    record.write()
    write_document(folder)


def write_document(folder, *, environment=HERE, runs=(RUN,)):
    known = {"id": "a", "study": folder.parent().name, "environment": environment}
    known |= {"request": records.RequestRecord(variants=VARIANTS, metric="accuracy")}
    folder.write_json(STUDY, records.StudyFile(**known, runs=records.RunsRecord(history=runs)).as_json())


@pytest.fixture
def root(tmp_path):
    study(Folder(tmp_path).child("first/minilm-cola"))
    return Folder(tmp_path)


@pytest.fixture
def first(root):
    return root.child("first/minilm-cola")


def others(root, study="second", name="minilm-cola", case="minilm-cola", **changed):
    gold, ids = {"val": GOLD, "test": GOLD}, {FIRST, SECOND, THIRD}
    settings = {"ids": ids, "environment": HERE, "metric": "accuracy", "variants": ()}
    settings |= {"gold": lambda: gold}
    return OtherStudies(root.child(f"{study}/{name}"), case=case, wanted=Wanted(**settings | changed))


def test_a_trial_of_another_study_is_taken_with_all_that_it_left(root):
    record = StudyRecord(root.child("second/minilm-cola"), "accuracy")
    elsewhere = others(root, variants={"cutoff=0.2"})
    assert elsewhere.take(SECOND, record.work(SECOND))
    record.begin(TrialRow(trial_id=SECOND, stage="confirm", arm="layer=6", seed=1, settings={"k": 8}))
    row = record.end(SECOND)
    expected = {"arm": "layer=6", "status": "completed", "val/accuracy": 0.7, "seconds": 3.5}
    assert row.cells().items() >= {**expected, TAKEN_FROM: "first/minilm-cola", TAKEN_COMMIT: "abc"}.items()
    assert record.history(SECOND)["epoch"].tolist() == [1.0, 2.0]
    read = {name: record.folder.read_parquet(name) for name in (PREDICTIONS, EVALUATIONS)}
    assert set(read[PREDICTIONS]["trial_id"]) == {SECOND}
    assert read[EVALUATIONS]["variant"].tolist() == ["cutoff=0.2"]
    assert record.folder.read_json(f"{BEST}/config.json") == {"trial_id": SECOND}
    assert not elsewhere.take(SECOND, record.work(SECOND)), "it is there by now"
    assert not elsewhere.take(THIRD, record.work(THIRD)), "nobody trained it"
    # A third study learns where it first came from.
    record.write()
    write_document(record.folder, runs=(replace(RUN, commit="def"),))
    root.delete("first")
    work = root.child("work")
    assert others(root, study="third").take(SECOND, work)
    row = work.read_json(PROGRESS)["row"]
    assert (row[TAKEN_FROM], row[TAKEN_COMMIT]) == ("first/minilm-cola", "abc")


def test_the_commit_is_that_of_the_run_that_trained_it(root, first):
    before = replace(RUN, seeds={"mix": [1]})
    later = replace(RUN, commit="def", dirty=True, seeds={"last": [1]})
    write_document(first, runs=(before, later))
    work = root.child("work")
    assert others(root).take(SECOND, work)
    assert work.read_json(PROGRESS)["row"][TAKEN_COMMIT] == "def with uncommitted changes"


def test_the_best_model_must_be_there(root, first):
    """`best/` of the other study is of its second trial: the first is taken where it is not the best of all."""
    work = root.child("work")
    for best in (None, 0.4, 0.5):
        assert not others(root).take(FIRST, work, best), "best/ would be of another trial"
    assert others(root).take(FIRST, work, 0.6)
    elsewhere = others(root)
    assert set(elsewhere.ids) == {FIRST, SECOND}
    # A study that is still running may find a better one between the look and the taking.
    first.write_json(f"{BEST}/config.json", {"trial_id": THIRD})
    assert not elsewhere.take(SECOND, work)


@pytest.mark.parametrize(
    "changed",
    [
        {"study": "first", "name": "minilm-cola-again"},
        {"case": "minilm-imdb"},
        {"variants": {"cutoff=0.3"}},
        {"environment": replace(HERE, dataset=records.DatasetRecord(kind="another package's"))},
        {"gold": lambda: {"val": GOLD, "test": GOLD.replace("no", "maybe")}},
        {"gold": lambda: {"val": GOLD, "test": GOLD.assign(index=range(1, 11))}},
        {"metric": "pearson"},
        {"metric": "f1_macro"},
        {"environment": replace(HERE, dataset=replace(DATA, fingerprint="in groups"))},
        {"environment": replace(HERE, code="")},
        {"environment": replace(HERE, code="other")},
        {"environment": replace(HERE, packages={"torch": "2.14.0"})},
        {"environment": replace(HERE, device="a GPU")},
        {"environment": replace(HERE, python="3.13")},
    ],
    ids=lambda changed: "-".join(changed),
)
def test_what_is_not_taken(root, changed):
    assert others(root).ids
    assert not others(root, **changed).ids


def test_software_that_is_not_the_same_in_all_runs_is_named(root, first, capsys):
    for changed in (
        {"environment": replace(HERE, code="")},
        {"runs": (replace(RUN, software="before"), RUN)},
        {"runs": ()},
    ):
        write_document(first, **changed)
        assert not others(root).ids
        assert "first/minilm-cola: its code, packages or machine are not the same" in capsys.readouterr().err


def set_to(**cells):
    return lambda rows: rows.assign(**{name.replace("_", "/"): value for name, value in cells.items()})


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        (TRIALS, set_to(val_accuracy="0.99"), "val/accuracy is 0.99, its predictions give 0.700000"),
        (TRIALS, set_to(test_accuracy="inf"), "test/accuracy is inf, its predictions give 0.700000"),
        (TRIALS, set_to(predictions="pforged"), "are not those that its row was written for"),
        (TRIALS, set_to(predictions=""), "it has no predictions"),
        (PREDICTIONS, lambda rows: rows[:-1], "predictions on test are of other examples"),
        (PREDICTIONS, lambda rows: rows.assign(prediction=rows["label"]), "give 1.000000"),
        (PREDICTIONS, lambda rows: rows.replace("no", "nope"), "of other examples or labels"),
        (HISTORY, lambda rows: rows[:0], "it has no rows in history.parquet"),
    ],
)
def test_a_row_in_doubt_is_passed_over_and_named(root, first, name, change, why, capsys):
    """A forged score is not believed."""
    path = first.path() / name
    table = name == TRIALS
    frame = pd.read_csv(path, dtype=str, keep_default_na=False) if table else first.read_parquet(name)
    own = frame["trial_id"] == SECOND
    changed = pd.concat([frame[~own], change(frame[own])])
    changed.to_csv(path, index=False) if table else first.write_parquet(name, changed)
    assert SECOND not in others(root).ids
    said = capsys.readouterr().err
    assert f"trial {FIRST}" not in said, "that row is as it was"
    assert f"not taken over from first/minilm-cola: trial {SECOND}: " in said
    assert why in said


DAMAGE = {
    PREDICTIONS: b"no parquet",
    HISTORY: b"",
    TRIALS: b"trial_id,stage,arm,search,status,error,fusion,predictions,seed,val/f1\nt1,,,,,,,,1,0;7\n",
    STUDY: b"{",
    f"{BEST}/config.json": b"[]",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_in_another_study_is_not_this_ones(root, first, name, capsys):
    first.write_bytes(name, DAMAGE[name])
    assert not others(root).ids
    assert "not taken over from first/minilm-cola: " in capsys.readouterr().err


def test_of_two_studies_that_disagree_neither_is_believed(root, capsys):
    study(root.child("third/minilm-cola"), rights=(4, 7))
    assert set(others(root).ids) == {SECOND}
    assert f"first/minilm-cola has other scores of trial {FIRST}" in capsys.readouterr().err
    study(root.child("fourth/minilm-cola"))
    assert set(others(root).ids) == {SECOND}


def test_a_study_of_this_kind_is_passed_over_whatever_its_folder_is_called(root):
    """It is there to be run by itself."""
    root.move("first", root.child("backup"))
    assert not others(root, study="first").ids
    assert others(root, study="second").ids
