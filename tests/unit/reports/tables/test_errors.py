"""Tables of predictions against counts by hand, scikit-learn and seqeval."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix

from adalayers.tasks.schemes import scheme_of
from reports.tables.errors import (
    BOUNDARIES,
    MISSED,
    SPURIOUS,
    by_word,
    confusion,
    span_confusion,
)

IOB = scheme_of(("O", *(f"{place}-{name}" for place in "BI" for name in ("PER", "LOC", "ORG"))))


def rows(pairs: list[tuple[str, str]], trial: str = "t1") -> pd.DataFrame:
    labels, said = zip(*pairs, strict=True) if pairs else ((), ())
    columns = {"trial_id": trial, "index": range(len(pairs)), "label": list(labels), "prediction": list(said)}
    return pd.DataFrame(columns | {"score": np.linspace(0.6, 0.9, len(pairs))})


def tagged(pairs: list[tuple[str, str]], trial: str = "t1") -> pd.DataFrame:
    return rows([(tuple(label.split()), tuple(said.split())) for label, said in pairs], trial)


def cell(table: pd.DataFrame, label: str, prediction: str) -> float:
    return table.loc[label, prediction]


def test_confusion_is_scikit_learns_mean_over_trials():
    rng = np.random.default_rng(0)
    names = ["x", "y", "z"]
    parts = [
        rows([(names[a], names[b]) for a, b in rng.integers(3, size=(50, 2))], trial)
        for trial in ("t1", "t2")
    ]
    table = confusion(pd.concat(parts), names)
    wanted = sum(confusion_matrix(part["label"], part["prediction"], labels=names) for part in parts) / 2
    assert table.to_numpy() == pytest.approx(wanted)


def test_confusion_keeps_classes_that_study_json_does_not_name():
    table = confusion(rows([("a", "b")]), [])
    assert list(table.index) == list(table.columns) == ["a", "b"]
    assert confusion(rows([]), ["a"]).empty


def test_span_confusion_by_hand():
    table = span_confusion(
        tagged(
            [
                ("B-PER I-PER O", "B-PER I-PER O"),  # right
                ("B-PER I-PER O", "B-ORG I-ORG O"),  # the type alone is wrong
                ("B-PER I-PER O", "B-PER O O"),  # other boundaries, and no spurious one
                ("B-PER O O", "O O B-LOC"),  # missed, and one where there is none
                ("B-LOC O B-LOC", "I-LOC I-LOC I-LOC"),  # one over two
            ]
        ),
        IOB,
    )
    assert cell(table, "PER", "PER") == 1
    assert cell(table, "PER", "ORG") == 1
    assert cell(table, "PER", BOUNDARIES) == 1
    assert cell(table, "PER", MISSED) == 1
    assert cell(table, "LOC", BOUNDARIES) == 2
    assert cell(table, SPURIOUS, "LOC") == 1
    assert table.sum().sum() == 7
    assert np.isnan(cell(table, SPURIOUS, MISSED))


def test_span_confusion_is_a_mean_over_trials_and_empty_without_entities():
    one = tagged([("B-PER", "B-PER")])
    both = pd.concat([one, tagged([("B-PER", "O")], "t2")])
    assert cell(span_confusion(both, IOB), "PER", "PER") == 0.5
    assert cell(span_confusion(both, IOB), "PER", MISSED) == 0.5
    assert span_confusion(tagged([("O O", "O O")]), IOB).empty
    assert span_confusion(rows([]), IOB).empty


def test_sentences_of_another_length_than_their_labels_are_left_out():
    assert span_confusion(tagged([("B-PER O", "B-PER")]), IOB).empty


def test_words_are_told_apart_in_the_confusion():
    labels, predictions = [("A", "noun phrase"), ("A",)], [("A", "A"), ("A",)]
    table = by_word(pd.DataFrame({"trial_id": ["t", "t"], "label": labels, "prediction": predictions}))
    assert table["label"].tolist() == ["A", "noun phrase", "A"]
    assert table["prediction"].tolist() == ["A", "A", "A"]
