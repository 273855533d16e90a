"""A study that a ranking selects, on texts that come in groups: its files, its claims and its page."""

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import adalayers
from tests.helpers.studying import RAYS_OWN, SMALL, run_here
from tests.helpers.tiny import WORDS, tiny_backbone

pytestmark = RAYS_OWN
RANKINGS = ["auroc", "average_precision", "recall@fpr=0.01"]


@pytest.fixture(scope="module")
def ran(ray_here, tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("rankings"), np.random.default_rng(0)
    words = [word for word in WORDS if word.isalpha()]
    folder = root / "letters"
    folder.mkdir()
    for split, n in {"train": 200, "test": 80}.items():
        chosen = [rng.choice(len(words), 5) for _ in range(n)]
        rows = [
            {
                "text": " ".join(words[j] for j in of),
                "mood": ["bad", "good"][int((of < len(words) / 2).mean() > 0.5)],
                "author": f"{split} {i // 8}",
            }
            for i, of in enumerate(chosen)
        ]
        (folder / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    argv = [
        *("--backbone", str(tiny_backbone(root / "tiny")), "--dataset", str(folder)),
        *("--text-column", "text", "--label-column", "mood", "--group-column", "author"),
        *("--metric", "auroc", "--output", str(root / "results"), "--cache-dir", str(root / "cache")),
        *SMALL,
        *("--trials", "0", "--seeds", "6"),
    ]
    ended = run_here(argv)
    assert ended.code == 0, ended.err
    return root / "results", argv


def test_predictions_give_the_scores_of_trials_and_each_examples_group(ran):
    results = adalayers.results(ran[0])
    rows = results.predictions.query("split == 'test'")
    trials = results.trials.query("stage == 'confirm'").set_index("trial_id")
    for trial_id, own in rows.groupby("trial_id"):
        gold = own["label"] == "good"
        second = own["score"].where(own["prediction"] == "good", 1 - own["score"])
        wanted = {"auroc": roc_auc_score, "average_precision": average_precision_score}
        for name, score in wanted.items():
            assert trials.at[trial_id, f"test/{name}"] == pytest.approx(score(gold, second))
        assert own.groupby("group")["index"].agg(lambda x: (x // 8).nunique()).eq(1).all()
        assert own["group"].nunique() == 10


def test_claims_are_of_the_ranking_and_its_interval_over_groups(ran):
    results = adalayers.results(ran[0])
    primary = results.claims.query("primary")
    assert {*primary["metric"]} == {"auroc"}
    assert primary["examples_low"].notna().all()
    assert (primary["examples_low"] < primary["low"]).all()
    assert {f"val/{name}" for name in RANKINGS} <= {*results.curves.columns}
    page = next(ran[0].glob("alpha_lambda/*/report.md")).read_text()
    assert "AUROC" in page
    assert "drawn by whole groups of author" in page
    details = next(ran[0].glob("alpha_lambda/*/details.md")).read_text()
    assert "train 23, validation 2, test 10" in details


def test_without_the_column_it_is_another_study(ran):
    argv = ran[1]
    at = argv.index("--group-column")
    ended = run_here([*argv[:at], *argv[at + 2 :]])
    assert ended.code == 2
    assert "group" in ended.err
