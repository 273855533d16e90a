"""Trials of other studies: which are taken, with what, and which are trained again."""

import dataclasses

import pandas as pd
import pytest

from adalayers.results import study_file as records
from adalayers.results.files import BEST, EVALUATIONS, HISTORY, PREDICTIONS, STUDY, TRIALS, prediction_hash
from adalayers.results.other_studies import OtherStudies, Wanted
from adalayers.results.record import PROGRESS, StudyRecord
from adalayers.results.trial_row import TAKEN_COMMIT, TAKEN_FROM, TrialRow
from adalayers.storage.folder import Folder
from adalayers.study import Variant

HERE = records.EnvironmentRecord(
    device="cpu (x86_64)",
    packages={"torch": "2.13.0"},
    code="c0de",
    git=records.GitRecord(commit="abc", dirty=False),
)
RUN = records.Run(
    confirmed=2, commit="abc", dirty=False, software=HERE.software, seeds={"mix": [1], "last": [1]}
)
FIRST, SECOND, THIRD = (f"t{number:012d}" for number in (1, 2, 3))
VARIANTS = {variant.name: variant for variant in (Variant(cutoff=0.1), Variant(cutoff=0.2))}
LABELS = ("no", "yes")
GOLD = pd.DataFrame({"index": range(10), "label": ["no", "yes"] * 5})


def predictions(right: int) -> pd.DataFrame:
    """Return rows of both splits, of which the first are right."""
    said = [label if i < right else LABELS[i % 2 == 0] for i, label in enumerate(GOLD["label"])]
    return pd.concat([GOLD.assign(split=split, prediction=said, score=0.9) for split in ("val", "test")])


def train(record, trial_id, right, arm, seed=1):
    """Let a trial begin and end as a worker would leave it, with so many of ten examples right."""
    work, rows = record.work(trial_id), predictions(right)
    record.begin(TrialRow(trial_id=trial_id, stage="confirm", arm=arm, seed=seed, settings={"k": 8}))
    work.write_parquet(PREDICTIONS, rows)
    scores = {"split": "val", "variant": list(VARIANTS), "metric": "accuracy", "value": [0.1, 0.2]}
    work.write_parquet(EVALUATIONS, pd.DataFrame(scores))
    work.write_json(f"{BEST}/config.json", {"trial_id": trial_id})
    work.write_bytes(f"{BEST}/model.safetensors", b"")
    row = {"val/accuracy": right / 10, "test/accuracy": right / 10, "epochs": 2, "seconds": 3.5}
    row["predictions"] = prediction_hash(rows[rows["split"] == "test"])
    history = [{"epoch": 1.0, "val/accuracy": right / 10}, {"epoch": 2.0, "mix/weight_01": 0.25}]
    work.write_json(PROGRESS, {"status": "completed", "error": "", "row": row, "history": history})
    return record.end(trial_id)


def study(folder, rights=(5, 7), **changed):
    """Write a study that trained two trials, the second the better."""
    record = StudyRecord(folder, "accuracy")
    train(record, FIRST, rights[0], "mix")
    train(record, SECOND, rights[1], "last")
    record.write()
    write_document(folder, **changed)


def write_document(folder, *, environment=HERE, runs=(RUN,)):
    request, runs = records.RequestRecord(variants=VARIANTS), records.RunsRecord(history=runs)
    document = records.StudyFile(
        id="a", study=folder.parent().name, environment=environment, request=request, runs=runs
    )
    folder.write_json(STUDY, document.as_json())


@pytest.fixture
def root(tmp_path):
    study(Folder(tmp_path).child("first").child("minilm-cola"))
    return Folder(tmp_path)


def others(root, study="second", name="minilm-cola", case="minilm-cola", **changed):
    gold, ids = {"val": GOLD, "test": GOLD}, {FIRST, SECOND, THIRD}
    settings = {"ids": ids, "software": HERE.software, "metric": "accuracy", "variants": ()}
    settings |= {"kind": "sequence", "labels": LABELS, "gold": lambda: gold}
    return OtherStudies(root.child(study).child(name), case=case, wanted=Wanted(**settings | changed))


def test_a_trial_of_another_study_is_taken_with_all_that_it_left(root):
    record = StudyRecord(root.child("second").child("minilm-cola"), "accuracy")
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


def test_where_it_first_came_from_is_kept(root):
    record = StudyRecord(root.child("second").child("minilm-cola"), "accuracy")
    others(root).take(SECOND, record.work(SECOND))
    record.begin(TrialRow(trial_id=SECOND, stage="confirm", arm="layer=6", seed=1))
    record.end(SECOND)
    record.write()
    write_document(record.folder, runs=(dataclasses.replace(RUN, commit="def"),))
    root.delete("first")
    third = StudyRecord(root.child("third").child("minilm-cola"), "accuracy")
    assert others(root, study="third").take(SECOND, third.work(SECOND))
    row = third.work(SECOND).read_json(PROGRESS)["row"]
    assert (row[TAKEN_FROM], row[TAKEN_COMMIT]) == ("first/minilm-cola", "abc")


def test_the_commit_is_that_of_the_run_that_trained_it(root):
    before = dataclasses.replace(RUN, seeds={"mix": [1]})
    later = dataclasses.replace(RUN, commit="def", dirty=True, seeds={"last": [1]})
    write_document(root.child("first").child("minilm-cola"), runs=(before, later))
    work = root.child("work")
    assert others(root).take(SECOND, work)
    assert work.read_json(PROGRESS)["row"][TAKEN_COMMIT] == "def with uncommitted changes"


def test_the_best_model_must_be_there(root):
    """`best/` of the other study is of its second trial: the first is taken where it is not the best of all."""
    assert set(others(root).ids) == {FIRST, SECOND}
    assert set(others(root, ids={FIRST}).ids) == set(), "best/ would be of no trial"


@pytest.mark.parametrize(
    "changed",
    [
        {"study": "first", "name": "minilm-cola-again"},
        {"case": "minilm-imdb"},
        {"variants": {"cutoff=0.3"}},
        {"kind": "another package's"},
        {"gold": lambda: {"val": GOLD, "test": GOLD.replace("no", "maybe")}},
        {"gold": lambda: {"val": GOLD, "test": GOLD[:9]}},
        {"gold": lambda: {"val": GOLD, "test": GOLD.assign(index=range(1, 11))}},
        {"metric": "pearson"},
        {"software": ""},
        *(
            {"software": dataclasses.replace(HERE, **other).software}
            for other in (
                {"code": "other"},
                {"packages": {"torch": "2.14.0"}},
                {"packages": {"torch": "2.13.0", "numpy": "2.1"}},
                {"device": "a GPU"},
                {"python": "3.13"},
            )
        ),
    ],
    ids=lambda changed: "-".join(changed),
)
def test_what_is_not_taken(root, changed):
    assert others(root).ids
    assert not others(root, **changed).ids


@pytest.mark.parametrize(
    "changed",
    [
        {"environment": dataclasses.replace(HERE, code="")},
        {"runs": (dataclasses.replace(RUN, software="before"), RUN)},
        {"runs": (dataclasses.replace(RUN, software=""),)},
        {"runs": ()},
    ],
    ids=["no hash of its code", "an earlier run with other code", "a run that does not say", "no runs"],
)
def test_software_that_is_not_the_same_in_all_runs_is_named(root, changed, capsys):
    write_document(root.child("first").child("minilm-cola"), **changed)
    assert not others(root).ids
    assert "first/minilm-cola: its code, packages or machine are not the same" in capsys.readouterr().err


def setting(column, value):
    """Return a change of the second trial's row of `trials.csv`."""

    def change(folder):
        frame = pd.read_csv(folder.path() / TRIALS, dtype=str, keep_default_na=False)
        frame[column] = frame[column].where(frame["trial_id"] != SECOND, value)
        frame.to_csv(folder.path() / TRIALS, index=False)

    return change


def rewriting(name, change):
    """Return a change of the second trial's rows of a file."""

    def rewrite(folder):
        frame = folder.read_parquet(name)
        own = frame["trial_id"] == SECOND
        folder.write_parquet(name, pd.concat([frame[~own], change(frame[own])]))

    return rewrite


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (setting("val/accuracy", "0.99"), "val/accuracy is 0.99, its predictions give 0.700000"),
        (setting("test/accuracy", "0.71"), "test/accuracy is 0.71, its predictions give 0.700000"),
        (setting("val/accuracy", "much"), "val/accuracy is 'much', which is no number"),
        (setting("val/accuracy", "0,7"), "val/accuracy is '0,7', which is no number"),
        (setting("test/accuracy", "nan"), "test/accuracy is 'nan', which is no number"),
        (setting("test/accuracy", "inf"), "test/accuracy is 'inf', which is no number"),
        (setting("seconds", "long"), "seconds is 'long', which is no number"),
        (setting("predictions", "pforged"), "are not those that its row was written for"),
        (setting("predictions", ""), "it has no predictions"),
        (rewriting(PREDICTIONS, lambda rows: rows[:0]), "predictions on val are of other examples"),
        (rewriting(PREDICTIONS, lambda rows: rows[rows["split"] == "test"]), "on val are of other"),
        (rewriting(PREDICTIONS, lambda rows: rows[:-1]), "predictions on test are of other examples"),
        (rewriting(PREDICTIONS, lambda rows: rows.assign(prediction=rows["label"])), "give 1.000000"),
        (rewriting(PREDICTIONS, lambda rows: rows.replace("no", "nope")), "of other examples or labels"),
        (rewriting(HISTORY, lambda rows: rows[:0]), "it has no rows in history.parquet"),
    ],
)
def test_a_row_in_doubt_is_passed_over_and_named(root, change, why, capsys):
    """A forged score is not believed, and one odd cell does not stop the study next to it."""
    change(root.child("first").child("minilm-cola"))
    assert SECOND not in others(root).ids
    said = capsys.readouterr().err
    assert f"trial {FIRST}" not in said, "that row is as it was"
    assert f"not taken over from first/minilm-cola: trial {SECOND}: " in said
    assert why in said


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (PREDICTIONS, b"no parquet"),
        (HISTORY, b""),
        (TRIALS, b"no table"),
        (TRIALS, b"trial_id;stage;arm\n"),
        (STUDY, b"{"),
        (STUDY, b"[]"),
        (STUDY, b'{"format": 1}'),
        (STUDY, b'{"format": 99, "request": 3}'),
        (f"{BEST}/config.json", b"[]"),
        (f"{BEST}/config.json", b"{"),
    ],
)
def test_damage_in_another_study_is_not_this_ones(root, name, content, capsys):
    root.child("first").child("minilm-cola").write_bytes(name, content)
    assert not others(root).ids
    assert "not taken over from first/minilm-cola: " in capsys.readouterr().err


def test_a_doubled_row_is_damage(root, capsys):
    path = root.child("first").child("minilm-cola").path() / TRIALS
    path.write_text(path.read_text() + path.read_text().splitlines(keepends=True)[1])
    assert not others(root).ids
    assert f"it has trial {FIRST} more than once" in capsys.readouterr().err


def test_of_two_studies_that_disagree_neither_is_believed(root, capsys):
    study(root.child("third").child("minilm-cola"), rights=(4, 7))
    assert set(others(root).ids) == {SECOND}
    assert f"first/minilm-cola has other scores of trial {FIRST}" in capsys.readouterr().err
    study(root.child("fourth").child("minilm-cola"))
    assert set(others(root).ids) == {SECOND}


def test_a_copy_of_a_study_of_this_kind_is_passed_over(root):
    """It is there to be run by itself, whatever its folder is called."""
    assert not others(root.child("none"), study="first").ids
    copied = root.child("first").child("minilm-cola")
    for name in (STUDY, TRIALS, PREDICTIONS, HISTORY, EVALUATIONS):
        root.child("backup").child("minilm-cola").write_bytes(name, copied.read_bytes(name))
    root.delete("first")
    assert not others(root, study="first").ids


def test_a_model_that_is_another_trials_by_now_is_not_taken(root):
    """A study that is still running may find a better one between the look and the taking."""
    elsewhere, record = others(root), StudyRecord(root.child("second").child("minilm-cola"), "accuracy")
    root.child("first").child("minilm-cola").write_json(f"{BEST}/config.json", {"trial_id": THIRD})
    assert not elsewhere.take(SECOND, record.work(SECOND))


def test_a_folder_that_may_not_be_read_is_passed_over(root, monkeypatch):
    names = Folder.names

    def private(folder, name=""):
        if name == "lost+found":
            raise PermissionError(13, "Permission denied", name)
        return names(folder, name)

    root.child("lost+found").write_json("x.json", {})
    monkeypatch.setattr(Folder, "names", private)
    assert set(others(root).ids) == {FIRST, SECOND}
