"""A published folder holds the page with its figures, the claims, and what both are rebuilt from."""

import json

import pandas as pd

from reports.publish import publish


def test_what_the_page_does_not_read_goes(tmp_path):
    """Of predictions the test split, and scores where wrong; of history evaluations, and weights of a mix."""
    predictions, history = tmp_path / "predictions.parquet", tmp_path / "history.parquet"
    (tmp_path / "best").mkdir()
    for name in ("best/model.safetensors", "claims.json", "trials.csv", "details.md", "contrasts.json"):
        (tmp_path / name).touch()
    (tmp_path / "report.md").write_text("# A study\n")
    records = {"dataset": {"path": "/home/someone/cola"}, "backbone": {"path": "/home/cola", "id": "minilm"}}
    (tmp_path / "study.json").write_text(json.dumps({"environment": records, "runs": {}}))
    rows = {"trial_id": "t", "split": ["val", "test", "test"], "score": [0.5, 0.7, 0.98765]}
    answers = {"label": [["O"], ["O", "X"], ["X"]], "prediction": [["O"], ["O", "X"], ["O"]]}
    pd.DataFrame({**rows, **answers}).to_parquet(predictions)
    points = {"step": [5, 10, 10, 5], "val/f1": [None, 0.5, None, None], "gamma": [1.0, 1.0, 1.0, None]}
    pd.DataFrame({**points, "mix/weight_01": [None, None, None, 0.2]}).to_parquet(history)
    publish(tmp_path)
    left = "claims.json history.parquet predictions.parquet report.md study.json trials.csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == left.split()
    study = json.loads((tmp_path / "study.json").read_text())
    assert [record["path"] for record in study["environment"].values()] == ["cola", "cola"]
    assert study["runs"] == {"published": True}
    kept = pd.read_parquet(predictions)
    assert kept["split"].tolist() == ["test", "test"]
    assert kept["score"].fillna(0).tolist() == [0, 0.99]
    assert len(pd.read_parquet(history)) == 2
