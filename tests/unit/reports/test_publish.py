"""A published folder holds the page with its figures, the claims, and what both are rebuilt from."""

import json

import pandas as pd
import pytest

from reports.publish import publish


def test_what_the_page_does_not_show_goes(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "best").mkdir()
    stays = ("claims.json", "study.json", "trials.csv", "history.parquet", "figures/scores.png")
    for name in (*stays, "details.md", "contrasts.json", "figures/scores.svg", "figures/other.png"):
        (tmp_path / name).touch()
    pd.DataFrame({"val/f1": [0.5]}).to_parquet(tmp_path / "history.parquet")
    (tmp_path / "report.md").write_text("# A study\n\n![Scores](figures/scores.png)\n")
    folder = {"path": "/home/someone/data/cola"}
    study = {"environment": {"dataset": folder, "backbone": {**folder, "id": "minilm"}}, "runs": {}}
    (tmp_path / "study.json").write_text(json.dumps(study))
    publish(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*stays, "report.md"}
    study["environment"] = {"dataset": {"path": "cola"}, "backbone": {"path": "cola", "id": "minilm"}}
    study["runs"] = {"published": True}
    assert json.loads((tmp_path / "study.json").read_text()) == study, (
        "folders of this machine are named there"
    )


@pytest.mark.parametrize("answers", ["ab", [["O", "X"], ["O"]]], ids=["a class", "a class per word"])
def test_tables_keep_what_pages_read(tmp_path, answers):
    """Of predictions the test split, and scores where wrong; of history evaluations, and weights of a mix."""
    (tmp_path / "report.md").write_text("# A study\n")
    predictions, history = tmp_path / "predictions.parquet", tmp_path / "history.parquet"
    said = {
        name: [answers[place] for place in own]
        for name, own in (("label", [0, 1, 1]), ("prediction", [1, 1, 0]))
    }
    rows = {"trial_id": "t", "split": ["val", "test", "test"], **said}
    pd.DataFrame({**rows, "score": [0.5, 0.7, 0.98765]}).to_parquet(predictions)
    points = {
        "step": [5, 10, 10, 5],
        "val/f1": [None, 0.5, None, None],
        "mix/weight_01": [None, None, None, 0.2],
    }
    pd.DataFrame({**points, "gamma": [1.0, 1.0, 1.0, None]}).to_parquet(history)
    publish(tmp_path)
    kept = pd.read_parquet(predictions)
    assert kept["split"].tolist() == ["test", "test"]
    assert kept["score"].isna().tolist() == [True, False]
    assert kept["score"].iloc[1] == 0.99
    assert pd.read_parquet(history).index.size == 2
