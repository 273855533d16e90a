"""Labels across splits: what is a class, what is no label, and what is said of it."""

import numpy as np
import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value
from sklearn.metrics import f1_score as sklearn_f1

from adalayers.command.estimate import data_line, task_line
from adalayers.errors import BadInput
from adalayers.tasks.task import load_task

COLUMNS = {"text_column": "text", "label_column": "label"}


def write(folder, **splits):
    """Write a split per argument, a row per label."""
    for split, labels in splits.items():
        texts = [f"{split} says {i}" for i in range(len(labels))]
        pd.DataFrame({"text": texts, "label": labels}).to_parquet(folder / f"{split}.parquet")
    return str(folder)


ABC = ["a", "b", "c"]
LEFT_OUT = {
    "-1 in test": ([1, 2] * 6, [-1, 1, -1, 2], "'label' is -1", ("1", "2")),
    "-1 as text": (["x", "y"] * 6, ["-1", "x", "-1 ", "y"], "'label' is -1", ("x", "y")),
    "missing": (["x", "y"] * 6, [None, "x", None, "y"], "'label' is empty", ("x", "y")),
    "empty": (["x", "y"] * 6, ["", "x", " ", "y"], "'label' is empty", ("x", "y")),
    "missing number": ([1.5, 2] * 6, [np.nan, 1.5, None, 2], "'label' is empty", ()),
}


@pytest.mark.parametrize("role", ["validation", "test"])
@pytest.mark.parametrize(("train", "labels", "sign", "names"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_rows_without_a_label_are_left_out_and_said(tmp_path, role, train, labels, sign, names):
    other = {"validation": "test", "test": "validation"}[role]
    task = load_task(write(tmp_path, **{"train": train, role: labels, other: train[:2]}), **COLUMNS)
    split = task.splits[role]
    assert (task.label_names, split.index.tolist()) == (names, [1, 3])
    assert split.inputs == [f"{role} says 1", f"{role} says 3"]
    assert split.labels.tolist() == ([0, 1] if names else [1.5, 2.0])
    note = f"2 of 4 rows of {role} are left out as unlabelled: {sign}, as in no row of train"
    assert task.reading.notes[0] == note
    assert note in data_line(task)


def test_a_class_of_the_hub_is_none_where_train_has_none(tmp_path):
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    splits = {"train": [0, 1] * 10, "validation": [0, 1], "test": [-1, 1, 0]}
    columns = {
        name: {"text": [f"{name} {i}" for i in range(len(labels))], "label": labels}
        for name, labels in splits.items()
    }
    saved = {name: Dataset.from_dict(rows, features) for name, rows in columns.items()}
    DatasetDict(saved).save_to_disk(str(tmp_path))
    task = load_task(str(tmp_path))
    assert task.splits["test"].labels.tolist() == [1, 0]
    assert len(task.reading.notes) == 1


def test_a_sign_that_train_has_is_a_class(tmp_path):
    folder = write(tmp_path, train=[-1, 0, 1] * 6, validation=[-1, 0, 1], test=[-1, -1])
    task = load_task(folder, **COLUMNS)
    assert task.label_names == ("-1", "0", "1")
    assert task.splits["test"].labels.tolist() == [0, 0]
    assert task.reading.notes == (
        "macro F1, a mean over all 3 classes, counts 0 for 2 that test has none of: '0', '1'",
    )


@pytest.mark.parametrize("missing", [None, ""])
def test_train_without_a_label_is_refused_by_its_first_row(tmp_path, missing):
    folder = write(tmp_path, train=["x", "y", missing, missing], validation=["x", "y"])
    with pytest.raises(BadInput, match=r"wanted a label in every row .* got 2 without, the first in .*; l"):
        load_task(folder, **COLUMNS)


def test_numbers_that_are_learned_as_such_may_be_minus_one(tmp_path):
    numbers = [0.5, -1.0, 2.0]
    task = load_task(write(tmp_path, train=[0.5, 1.0] * 6, validation=numbers, test=[-1.0] * 3), **COLUMNS)
    assert task.splits["validation"].labels.tolist() == numbers
    assert "test" not in task.splits
    assert task.reading.notes == ()


def test_classes_that_train_lacks_or_that_look_alike_are_said_with_counts(tmp_path):
    folder = write(
        tmp_path,
        train=["Positive", "negative", "neutral"] * 4,
        validation=["negative", "neutral", "Positive", "Positive"],
        test=["positive ", "negative", "positive ", "mixed"],
    )
    task = load_task(folder, **COLUMNS)
    assert task.reading.notes == (
        "classes that differ by blanks or case alone are kept apart: 'Positive' (train 4, validation 2), "
        "'positive ' (test 2)",
        "3 of 4 labels of test are of classes that train has none of: 'mixed' (1), 'positive ' (2)",
        "macro F1, a mean over all 5 classes, counts 0 for 2 that validation has none of: 'mixed', 'positive '",
        "macro F1, a mean over all 5 classes, counts 0 for 2 that test has none of: 'Positive', 'neutral'",
    )
    assert "5 labels: Positive, mixed, negative, neutral, 'positive ';" in task_line(task)
    gold = task.gold("test")
    wanted = sklearn_f1(gold.labels, gold.labels, average="macro", labels=range(5), zero_division=0)
    assert task.kind.scores(gold, gold.labels)["f1_macro"] == pytest.approx(wanted) == pytest.approx(3 / 5)


def test_numbers_that_look_like_classes_are_said(tmp_path):
    task = load_task(write(tmp_path, train=[0.0, 1.0] * 6, validation=[0.0, 1.0]), **COLUMNS)
    assert task.kind.name == "regression"
    (note,) = task.reading.notes
    assert note == "labels are learned as numbers, though but 0, 1: without a point they are classes"


# Words

WORDS = {"text_column": "words", "label_column": "tags"}


def sentences(folder, **splits):
    """Write a split per argument, of sentences whose tags are between bars."""
    for split, rows in splits.items():
        tags = [[*row] if isinstance(row, list) else row.split("|") for row in rows]
        words = [[f"{split}{i}{j}" for j in range(len(row))] for i, row in enumerate(tags)]
        pd.DataFrame({"words": words, "tags": tags}).to_parquet(folder / f"{split}.parquet")
    return str(folder)


def test_tags_of_all_splits_make_the_scheme_and_those_of_test_alone_are_said(tmp_path):
    train, test = ["B-X|I-X|O", "O|B-X"] * 3, ["B-X|E-X|S-Y", "O|O"]
    folder = sentences(tmp_path, train=train, validation=["B-X|O"], test=test)
    task = load_task(folder, **WORDS)
    assert task.title == "token classification by IOBES tags, 'O' for no entity, scored strictly"
    assert task.reading.notes == (
        "2 of 5 labels of test are of classes that train has none of: 'E-X' (1), 'S-Y' (1)",
        "9 of 9 tagged words of train are in no entity that begins and ends as IOBES has it",
        "1 of 1 tagged words of validation are in no entity that begins and ends as IOBES has it",
    )


def test_tags_of_two_schemes_are_refused_by_column(tmp_path):
    folder = sentences(tmp_path, train=["B-X|L-X|O", "O|S-X"], validation=["B-X|I-X"])
    with pytest.raises(BadInput, match=r"scheme in column 'tags' of .* the letters B, I, L, S; rename"):
        load_task(folder, **WORDS)


def test_numbers_and_classes_of_words_are_no_scheme(tmp_path):
    for tags in (["1|2|3"], ["NOUN|-LRB-|X-Y"]):
        task = load_task(sentences(tmp_path, train=tags * 4, validation=tags), **WORDS)
        assert (task.kind.name, task.reading.notes) == ("word", ())


def test_sentences_of_which_words_have_no_tag_are_left_out(tmp_path):
    folder = sentences(tmp_path, train=["A|B", "B|A|A"] * 3, validation=["A|-1", "B"], test=["A", "B|"])
    task = load_task(folder, **WORDS)
    assert [task.splits[role].index.tolist() for role in ("validation", "test")] == [[1], [0]]
    assert task.reading.notes[:2] == (
        "1 of 2 rows of validation are left out as unlabelled: some of their words",
        "1 of 2 rows of test are left out as unlabelled: some of their words",
    )
