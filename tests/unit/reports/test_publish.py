"""A published folder holds the page with its figures, the claims, and what both are rebuilt from."""

import json

import pandas as pd

from reports.publish import publish


def test_what_the_page_does_not_show_goes(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "best").mkdir()
    stays = ("claims.json", "study.json", "trials.csv", "history.parquet", "figures/scores.png")
    for name in (*stays, "details.md", "contrasts.json", "figures/scores.svg", "figures/other.png"):
        (tmp_path / name).touch()
    (tmp_path / "report.md").write_text("# A study\n\n![Scores](figures/scores.png)\n")
    folder = {"path": "/home/someone/data/cola"}
    study = {"environment": {"dataset": folder, "backbone": {**folder, "id": "minilm"}}}
    (tmp_path / "study.json").write_text(json.dumps(study))
    publish(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*stays, "report.md"}
    study["environment"] = {"dataset": {"path": "cola"}, "backbone": {"path": "cola", "id": "minilm"}}
    assert json.loads((tmp_path / "study.json").read_text()) == study, (
        "folders of this machine are named there"
    )


def test_predictions_are_those_of_the_test_split_with_short_scores(tmp_path):
    (tmp_path / "report.md").write_text("# A study\n")
    path = tmp_path / "predictions.parquet"
    pd.DataFrame({"split": ["val", "test"], "index": [0, 3], "score": [0.5, 0.98765]}).to_parquet(path)
    publish(tmp_path)
    assert pd.read_parquet(path).to_dict("records") == [{"split": "test", "index": 3, "score": 0.99}]
