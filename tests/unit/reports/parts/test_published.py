"""Published scores next to an arm's own, and what differs, against what was put in."""

import dataclasses

import numpy as np
import pytest

from reports.parts import published as part
from tests.helpers.made_published import published, with_published
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.pages import evidence_of


def made_up(**how) -> MadeUp:
    return MadeUp(**{"seeds": 6, "search": 0, "evaluations": 2, "examples": 30, **how})


def steps(made: MadeUp, batch: int, epochs: int) -> None:
    """Let the control say how long it trains."""
    (arm,) = (arm for arm in made.arms if arm["name"] == CONTROL)
    arm["config"] |= {"batch_size": batch, "epochs": epochs}


def test_an_arm_stands_next_to_its_published_score_in_that_scores_metric(tmp_path):
    made = with_published(made_up())
    found = part.info(evidence_of(made, tmp_path))
    (row,) = found.rows
    accuracies = [trial["test/accuracy"] for trial in made.of(CONTROL)]
    assert row.score.mean == pytest.approx(np.mean(accuracies))
    assert (row.score.n, row.split, row.parameters) == (6, "test", 165_512)
    assert found.differs == ()


def test_an_alias_stands_for_its_arm_and_unknown_arms_are_left_out(tmp_path):
    made = made_up()
    with_published(made, published(made, arm="published"), published(made, arm="gone"))
    (row,) = part.info(evidence_of(made, tmp_path)).rows
    assert row.arm == "published"
    assert row.score.n == 6


def test_without_a_test_score_validation_is_shown_and_called_so(tmp_path):
    made = with_published(made_up(test=False, examples=0), published(made_up(), metric="matthews"))
    found = part.info(evidence_of(made, tmp_path))
    assert found.rows[0].split == "val"
    assert found.trivial is None


def test_what_differs_is_named_each_value_once(tmp_path):
    made = made_up()
    steps(made, 100, 20)
    changed = published(
        made,
        base_model="roberta-large",
        layers=24,
        width=1024,
        dataset="imdb",
        examples={"train": 1000, "test": 30},
        seeds=1,
        precision="mixed, float16",
        states="embeddings and layers 1 to 23",
        selects="f1_macro",
        config={"alpha": 64.0, "batch_size": 50, "epochs": 256},
    )
    other = dataclasses.replace(changed, base_model="bart", layers=12, states="embeddings and layers 1 to 12")
    with_published(made, changed, other)
    assert {what: (here, there) for what, here, there in part.info(evidence_of(made, tmp_path)).differs} == {
        "base model": (
            "`minilm` (6 layers of width 384)",
            "`roberta-large` (24 layers of width 1,024) / `bart` (12 layers of width 1,024)",
        ),
        "dataset": ("`cola`", "`imdb`"),
        "training examples": ("7,695", "1,000"),
        "steps an epoch": ("77", "20"),
        "epochs, at most": ("20", "256"),
        "steps in all, at most": ("1,540", "5,120"),
        "hidden states mixed": (
            "layers 1 to 6",
            "embeddings and layers 1 to 23 / embeddings and layers 1 to 12",
        ),
        "`alpha`": ("`1`", "`64.0`"),
        "`batch_size`": ("`100`", "`50`"),
        "score that selects": ("Matthews correlation", "macro F1"),
        "precision": ("float32", "mixed, float16"),
        "seeds": ("6", "1"),
    }


def test_texts_that_were_cut_differ_in_length(tmp_path):
    made = with_published(made_up(), published(made_up(), max_length=512))
    made.study["request"]["flags"]["max_length"] = 256
    assert part.info(evidence_of(made, tmp_path / "whole")).differs == ()
    made.study["environment"]["dataset"]["truncated"] = {"train": {"examples": 3}}
    assert part.info(evidence_of(made, tmp_path / "cut")).differs == (
        ("tokens of a text, at most", "256", "512"),
    )


@pytest.mark.parametrize(("epochs", "warned"), [(63, True), (64, False)])
def test_a_page_warns_where_training_has_few_of_the_published_steps(tmp_path, epochs, warned):
    made = made_up()
    steps(made, 600, epochs)
    with_published(made, published(made, config={"batch_size": 600, "epochs": 256}))
    text = "\n".join(part.section(part.info(evidence_of(made, tmp_path))))
    assert ("**Hardly trained**: at most 819 steps here, 3,328 in the published runs" in text) == warned
    assert ("Hardly trained" in text) == warned


def test_one_answer_to_all_is_the_floor_of_an_accuracy(tmp_path):
    made = with_published(made_up())
    labels = [i % 3 // 2 for i in range(30)]  # as the made-up examples are labelled
    expected = max(labels.count(0), labels.count(1)) / 30
    found = part.info(evidence_of(made, tmp_path / "examples"))
    assert found.trivial == pytest.approx(expected)
    made.predictions = []
    assert part.info(evidence_of(made, tmp_path / "none")).trivial is None
