"""Tables of predictions against counts by hand."""

import numpy as np
import pandas as pd

from adalayers.tasks.schemes import scheme_of
from reports.tables.errors import BOUNDARIES, MISSED, SPURIOUS, by_word, confusion, span_confusion

IOB = scheme_of(("O", *(f"{place}-{name}" for place in "BI" for name in ("PER", "LOC", "ORG"))))


def rows(*pairs: tuple, trial: str = "t1") -> pd.DataFrame:
    labels, said = zip(*pairs, strict=True) if pairs else ((), ())
    return pd.DataFrame({"trial_id": trial, "label": list(labels), "prediction": list(said)})


def tagged(*pairs: tuple[str, str], trial: str = "t1") -> pd.DataFrame:
    return rows(*((tuple(label.split()), tuple(said.split())) for label, said in pairs), trial=trial)


def test_confusion_is_the_mean_count_over_trials():
    one = rows(("x", "x"), ("x", "y"), ("x", "y"))
    two = rows(("x", "y"), ("y", "y"), ("a", "b"), trial="t2")  # of which study.json names neither
    table = confusion(pd.concat([one, two]), ["y", "x"])
    assert list(table.index) == list(table.columns) == ["y", "x", "a", "b"]
    assert table.to_numpy().tolist() == [[0.5, 0, 0, 0], [1.5, 0.5, 0, 0], [0, 0, 0, 0.5], [0, 0, 0, 0]]
    assert confusion(rows(), ["a"]).empty


def test_span_confusion_by_hand():
    one = tagged(
        ("B-PER I-PER O", "B-PER I-PER O"),  # right
        ("B-PER I-PER O", "B-ORG I-ORG O"),  # the type alone is wrong
        ("B-PER I-PER O", "B-PER O O"),  # other boundaries, and no spurious one
        ("B-PER O O", "O O B-LOC"),  # missed, and one where there is none
        ("B-LOC O B-LOC", "I-LOC I-LOC I-LOC"),  # one over two
    )
    table = span_confusion(one, IOB)
    counts = {place: n for place, n in table.stack().items() if n > 0}
    assert counts == {
        ("PER", "PER"): 1,
        ("PER", "ORG"): 1,
        ("PER", BOUNDARIES): 1,
        ("PER", MISSED): 1,
        ("LOC", BOUNDARIES): 2,
        (SPURIOUS, "LOC"): 1,
    }
    assert np.isnan(table.loc[SPURIOUS, MISSED])
    both = pd.concat([tagged(("B-PER", "B-PER")), tagged(("B-PER", "O"), trial="t2")])
    assert span_confusion(both, IOB).loc["PER", ["PER", MISSED]].tolist() == [0.5, 0.5]  # a mean over trials
    assert span_confusion(tagged(("O O", "O O")), IOB).empty
    assert span_confusion(tagged(("B-PER O", "B-PER")), IOB).empty  # as many words as labels are wanted


def test_words_are_told_apart_in_the_confusion():
    table = by_word(rows((("A", "noun phrase"), ("A", "A")), (("A",), ("A",)), (("A", "B"), ("A",))))
    assert table["label"].tolist() == ["A", "noun phrase", "A"]
    assert table["prediction"].tolist() == ["A", "A", "A"]
