"""Residuals by quarter of the labels, worked out by hand; the balance of labels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from reports.evidence.evidence import Evidence
from reports.parts import errors, residuals, setup
from reports.reading.load import load
from reports.tables import errors as predicted
from tests.helpers.made_up import CONTROL, MadeUp


def rows(trial: str, said: list[float], true: list[float]) -> pd.DataFrame:
    columns = {"trial_id": trial, "index": range(len(true))}
    return pd.DataFrame(
        {**columns, "label": [f"{x:g}" for x in true], "prediction": [f"{x:g}" for x in said]}
    )


def test_errors_by_quarter_of_the_labels():
    true = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    both = pd.concat([rows("t1", [x + 1 for x in true], true), rows("t2", [x - 3 for x in true], true)])
    table = predicted.residuals(both, {"t1": "a", "t2": "a"})
    assert table["range"].tolist() == ["0 to 1", "2 to 3", "4 to 5", "6 to 7", "all"]
    assert table["examples"].tolist() == [2, 2, 2, 2, 8]
    assert table["n"].tolist() == [2] * 5
    assert table["bias_mean"].tolist() == pytest.approx([-1.0] * 5)
    assert table["mae_mean"].tolist() == table["rmse_mean"].tolist() == pytest.approx([2.0] * 5)


def test_equal_labels_share_a_quarter():
    table = predicted.residuals(rows("t", [1.0, 1.0, 1.0, 9.0], [1.0, 1.0, 1.0, 9.0]), {"t": "a"})
    assert "all" in table["range"].tolist()
    assert table[table["range"] != "all"]["examples"].sum() == 4
    assert (table["mae_mean"] == 0).all()


def regressed(tmp_path) -> Evidence:
    made = MadeUp(seeds=5, search=0, evaluations=2, examples=40)
    rng = np.random.default_rng(0)
    true = np.round(rng.uniform(0, 5, 40), 2)
    made.study["environment"]["dataset"] |= {"kind": "regression", "labels": []}
    made.study["environment"]["dataset"]["distribution"] = {"train": {"mean": 2.5, "lowest": 0.0}}
    for row in made.predictions:
        row["label"] = f"{true[row['index'] % 40]:.9g}"
        row["prediction"] = f"{true[row['index'] % 40] + rng.normal():.9g}"
    return Evidence(load(made.write(tmp_path)))


def test_numbers_have_residuals_and_no_confusion(tmp_path):
    evidence = regressed(tmp_path)
    assert errors.PART.info(evidence) is None
    info = residuals.PART.info(evidence)
    assert set(info.by_range["arm"]) == {arm for arm in (CONTROL, evidence.best_arm) if arm}
    figure = residuals.PART.draw["residuals"](info)
    assert len(figure.axes) == 2
    labels = setup.info(evidence)
    assert (labels.numeric, labels.labels) == (True, {"train": {"mean": 2.5, "lowest": 0.0}})


def test_how_often_each_class_occurs(tmp_path):
    evidence = Evidence(load(MadeUp(seeds=1, search=0, evaluations=2).write(tmp_path)))
    distribution = {"train": {"a": 90, "b": 10}, "test": {"a": 5, "b": 0}}
    text = "\n".join(setup.section(replace(setup.info(evidence), labels=distribution, numeric=False)))
    assert "| a | 90 (90.0%) | 5 (100.0%) |" in text
    assert "| b | 10 (10.0%) | 0 (0.0%) |" in text


def test_words_are_told_apart_in_the_confusion():
    labels, predictions = [("A", "noun phrase"), ("A",)], [("A", "A"), ("A",)]
    table = predicted.by_word(
        pd.DataFrame({"trial_id": ["t", "t"], "label": labels, "prediction": predictions})
    )
    assert table["label"].tolist() == ["A", "noun phrase", "A"]
    assert table["prediction"].tolist() == ["A", "A", "A"]
