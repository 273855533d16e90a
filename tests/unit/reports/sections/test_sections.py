"""What sections show of made-up studies, against the numbers that were put in."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from adalayers.results import files
from adalayers.study import Variant
from reports.evidence.evidence import Evidence
from reports.page.details import section_of
from reports.reading.load import load
from reports.section import Table
from reports.sections import errors
from tests.helpers.made_layers import with_single_layers
from tests.helpers.made_published import published, with_published
from tests.helpers.made_up import CONTROL, CORE, MadeUp
from tests.helpers.pages import evidence_of

SPANS = [Variant(without=(1,)), Variant(without=(5, 6)), Variant(without=(1,), renormalise=False)]
SPANS += [Variant(cutoff=0.1)]
CHANGE = dict(zip((span.name for span in SPANS), (-0.5, -0.001, -0.6, -0.25), strict=True))
"""By what share of the whole model's score a variant is higher."""


def column(table: Table, head: str) -> list[str]:
    place = list(table.heads).index(head)
    return [str(row[place]) for row in table.rows]


def small(**how) -> MadeUp:
    return MadeUp(**{"seeds": 2, "search": 0, "evaluations": 2, **how})


def test_arms_that_predict_alike_are_named(tmp_path):
    made = small()
    for arm in (CORE[1], CORE[2]):
        for row in made.of(arm):
            row["predictions"] = f"same {row['seed']}"
    (table,) = section_of(evidence_of(made, tmp_path), "arms").tables
    alike = dict(zip(column(table, "arm"), column(table, "predicts exactly as"), strict=True))
    assert alike[f"`{CORE[2]}`"] == f"`{CORE[1]}`"
    assert alike[f"`{CONTROL}`"] == "—"


def test_an_analysis_is_told_with_its_error_and_rebuilding_is_none(tmp_path):
    evidence = evidence_of(small(seeds=6).ran((6,), (), planned=(20, 20)), tmp_path)
    assert section_of(evidence, "quality").tables[1].rows == [[1, 6, "3.00%"]]


def test_the_mix_of_the_best_trial_at_its_best_epoch(tmp_path):
    made = MadeUp(seeds=2, effects={CORE[6]: 0.3})
    shown = section_of(evidence_of(made, tmp_path), "weights")
    best = max(made.of(CORE[6]), key=lambda row: row["val/matthews"])
    assert best["trial_id"] in shown.tables[0].caption
    (point,) = (
        row
        for row in made.history
        if (row["trial_id"], row["epoch"]) == (best["trial_id"], best["best_epoch"]) and "val/matthews" in row
    )
    bars = shown.figures["mix_history"].axes[1].patches
    assert [bar.get_width() for bar in bars] == [point[f"mix/weight_{layer:02d}"] for layer in range(1, 7)]


def test_each_trained_model_has_a_line_of_its_own_mix(tmp_path):
    shown = section_of(evidence_of(small(), tmp_path), "mix")
    lines = [line for axes in shown.figures["mix_layers"].axes for line in axes.lines]
    assert len(lines) == 2 * len(CORE)
    assert all(sum(line.get_ydata()) == pytest.approx(1) for line in lines)


def test_what_a_trained_model_loses_without_some_layers(tmp_path):
    made = small(seeds=3)
    made.study["request"]["variants"] = {span.name: dataclasses.asdict(span) for span in SPANS}
    for row in made.of("uniform"):
        row["val/matthews"] = 0.005  # no more than a trivial model and the smallest effect
    place = made.write(tmp_path)
    rows = [
        {"trial_id": row["trial_id"], "split": "val", "variant": name, "metric": made.metric}
        | {"value": row[f"val/{made.metric}"] * (1 + change)}
        for row in made.trials
        for name, change in CHANGE.items()
    ]
    place.write_parquet(files.EVALUATIONS, pd.DataFrame(rows))
    shown = section_of(Evidence(load(place)), "layer_spans")
    (table,) = shown.tables
    assert f"`{CONTROL}`" in column(table, "arm")
    assert "`uniform`" not in column(table, "arm")
    of_control = [[str(cell) for cell in row[1:]] for row in table.rows if str(row[0]) == f"`{CONTROL}`"]
    assert {words: cell.split(" ")[0] for words, cell in of_control} == {
        "without 1": "-50.0",
        "without 5 to 6": "-0.1",
        "without 1, weights as they are": "-60.0",
        "cutoff 0.1": "-25.0",
    }
    assert shown.figures["layer_spans"].axes[0].get_title(loc="left") == "α = 1, λ = 0"


def test_single_layers_stand_against_the_mix(tmp_path):
    made = with_single_layers(MadeUp(seeds=3, search=0, layers=4))
    for row in made.of("layer=2"):
        row["test/matthews"] = 0.2
    shown = section_of(evidence_of(made, tmp_path), "single_layers")
    assert column(shown.tables[0], "layer") == [f"layer {layer}" for layer in range(1, 5)]
    assert str(shown.tables[0].rows[1][2]).startswith("0.200")
    assert column(shown.tables[1], "arm") == [f"`{CONTROL}`"]


def test_an_arm_stands_next_to_its_published_score_and_what_differs_is_named_once(tmp_path):
    made = small(seeds=6, examples=30)
    (control,) = (arm for arm in made.arms if arm["name"] == CONTROL)
    control["config"] |= {"batch_size": 100, "epochs": 20}
    config = {"alpha": 64.0, "batch_size": 50, "epochs": 256}
    size = {"layers": 12, "width": 1024, "dataset": "imdb", "seeds": 1, "config": config}
    both = [published(made, base_model=name, **size) for name in ("bart", "bert")]
    with_published(made, *both, published(made, arm="gone"))
    scores, differs = section_of(evidence_of(made, tmp_path), "published").tables
    accuracy = np.mean([trial["test/accuracy"] for trial in made.of(CONTROL)])
    assert [str(row[1]).split(" ")[0] for row in scores.rows] == [f"{accuracy:.3f}"] * 2
    facts = {name: (here, there) for name, here, there in differs.rows}
    assert facts["dataset"] == ("cola", "imdb")
    assert facts["base model"][1] == "bart / bert"
    assert facts["alpha"] == ("1", "64.0")
    assert facts["seeds"] == ("6", "1")


def test_a_row_of_few_examples_is_paler_than_one_of_many():
    grid = pd.DataFrame([[2.0, 1.0], [0.0, 200.0]], index=["few", "many"], columns=["few", "many"])
    axes = errors.draw(errors.Frames(grid, 2, "examples")).axes[0]
    assert np.asarray(axes.images[0].get_array()) == pytest.approx(np.array([[2 / 20, 1 / 20], [0.0, 1.0]]))


@pytest.mark.parametrize(("names", "shown"), [("a", True), ("ab", False)])
def test_searches_for_different_components_are_not_pooled(tmp_path, names, shown):
    made = MadeUp(search=20)
    for place, row in enumerate(row for row in made.trials if row["stage"] == "search"):
        row["search"] = names[place % len(names)]
    assert (section_of(evidence_of(made, tmp_path), "importances") is not None) == shown


def test_how_often_each_class_occurs(tmp_path):
    made = small()
    distribution = {"train": {"a": 90, "b": 10}, "test": {"a": 5, "b": 0}}
    made.study["environment"]["dataset"]["distribution"] = distribution
    classes = section_of(evidence_of(made, tmp_path), "setup").tables[-1]
    assert classes.rows == [["a", "90", "5"], ["b", "10", "0"]]


def test_methods_that_change_the_base_model_are_marked_and_the_front_is_numbered(tmp_path):
    made = small()
    made.study["request"]["arms"][1]["fusion"] = "concat"
    costs = dict(zip(CORE, (1.0, 5.0, 900.0), strict=False))
    for row in made.trials:
        row |= {"cost/use": costs.get(row["arm"], 50.0), "cost/training": 1e9, "cost/weights": 1e6}
        row |= {"cost/kept": 64, "cost/layers": 6}
        row |= {"config/base_model": "fine-tuned" if row["arm"] == CORE[2] else "frozen"}
    shown = section_of(evidence_of(made, tmp_path), "costs")
    kinds = dict(zip(column(shown.tables[0], "arm"), column(shown.tables[0], "base model"), strict=True))
    assert (kinds[f"`{CORE[0]}`"], kinds[f"`{CORE[2]}`"]) == ("frozen, matched", "base model changed")
    assert len(shown.figures["costs"].axes) == 2
