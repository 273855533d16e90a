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
from reports.section import Section, Table
from reports.tables import costs
from tests.helpers.made_published import published, with_published
from tests.helpers.made_up import CONTROL, CORE, MadeUp
from tests.helpers.pages import evidence_of

CHANGE = {
    "without 1": (Variant(without=(1,)), -0.5),
    "without 5 to 6": (Variant(without=(5, 6)), -0.001),
    "without 1, weights as they are": (Variant(without=(1,), renormalise=False), -0.6),
    "cutoff 0.1": (Variant(cutoff=0.1), -0.25),
}
"""What a variant is called, and by what share of the whole model's score its own is higher."""


def column(table: Table, head: str) -> list[str]:
    place = list(table.heads).index(head)
    return [str(row[place]) for row in table.rows]


def by_arm(table: Table, head: str) -> dict[str, str]:
    return dict(zip(column(table, "arm"), column(table, head), strict=True))


def small(**how) -> MadeUp:
    return MadeUp(**{"seeds": 2, "search": 0, "evaluations": 2, **how})


def shown(name: str, made: MadeUp, folder) -> Section | None:
    return section_of(evidence_of(made, folder), name)


def test_arms_that_predict_alike_are_named(tmp_path):
    made = small()
    for row in (*made.of(CORE[1]), *made.of(CORE[2])):
        row["predictions"] = f"same {row['seed']}"
    alike = by_arm(shown("arms", made, tmp_path).tables[0], "predicts exactly as")
    assert (alike[f"`{CORE[2]}`"], alike[f"`{CONTROL}`"]) == (f"`{CORE[1]}`", "—")


def test_a_section_that_stands_on_both_pages_is_drawn_once(tmp_path):
    evidence = evidence_of(small(), tmp_path)
    assert section_of(evidence, "quality") is section_of(evidence, "quality")


def test_an_analysis_is_told_with_its_error_and_rebuilding_is_none(tmp_path):
    made = small(seeds=6).ran((6,), (), planned=(20, 20))
    assert shown("quality", made, tmp_path).tables[1].rows == [[1, 6, "3.00%"]]


def test_the_mix_of_the_best_trial_at_its_best_epoch(tmp_path):
    made = MadeUp(seeds=2, effects={CORE[6]: 0.3})
    section = shown("weights", made, tmp_path)
    best = max(made.of(CORE[6]), key=lambda row: row["val/matthews"])
    assert best["trial_id"] in section.tables[0].caption
    of_best = [row for row in made.history if row["trial_id"] == best["trial_id"] and "val/matthews" in row]
    (point,) = (row for row in of_best if row["epoch"] == best["best_epoch"])
    bars = section.figures["mix_history"].axes[1].patches
    assert [bar.get_width() for bar in bars] == [point[f"mix/weight_{layer:02d}"] for layer in range(1, 7)]


def test_what_a_trained_model_loses_without_some_layers(tmp_path):
    made = small(seeds=3)
    made.study["request"]["variants"] = {span.name: dataclasses.asdict(span) for span, _ in CHANGE.values()}
    for row in made.of("uniform"):
        row["val/matthews"] = 0.005  # no more than a trivial model and the smallest effect
    place = made.write(tmp_path)
    rows = [
        {"trial_id": row["trial_id"], "split": "val", "variant": span.name, "metric": made.metric}
        | {"value": row["val/matthews"] * (1 + change)}
        for row in made.trials
        for span, change in CHANGE.values()
    ]
    place.write_parquet(files.EVALUATIONS, pd.DataFrame(rows))
    section = section_of(Evidence(load(place)), "layer_spans")
    (table,) = section.tables
    assert "`uniform`" not in column(table, "arm")
    of_control = [row[1:] for row in table.rows if str(row[0]) == f"`{CONTROL}`"]
    found = {str(words): float(str(cell).split(" ")[0]) for words, cell in of_control}
    assert found == {words: pytest.approx(100 * change) for words, (_, change) in CHANGE.items()}


def test_an_arm_stands_next_to_its_published_score_and_what_differs_is_named_once(tmp_path):
    made = small(seeds=6, examples=30)
    there = {"dataset": "imdb", "seeds": 6, "config": {"alpha": 64.0}}
    both = [published(made, base_model=name, **there) for name in ("bart", "bert")]
    with_published(made, *both, published(made, arm="gone"))
    scores, differs = shown("published", made, tmp_path).tables
    accuracy = np.mean([trial["test/accuracy"] for trial in made.of(CONTROL)])
    assert [str(row[1]).split(" ")[0] for row in scores.rows] == [f"{accuracy:.3f}"] * 2
    facts = {name: (here, there) for name, here, there in differs.rows}
    assert facts["dataset"] == ("cola", "imdb")
    assert facts["base model"][1] == "bart / bert"
    assert facts["alpha"] == ("1", "64.0")
    assert "seeds" not in facts


def test_searches_for_different_components_are_not_pooled(tmp_path):
    made = MadeUp(search=20)
    assert shown("importances", made, tmp_path) is not None
    for place, row in enumerate(row for row in made.trials if row["stage"] == "search"):
        row["search"] = "ab"[place % 2]
    assert shown("importances", made, tmp_path) is None


def test_methods_that_change_the_base_model_are_marked_and_the_front_is_numbered(tmp_path):
    made = small()
    made.study["request"]["arms"][1]["fusion"] = "concat"
    for row in made.trials:
        tuned = row["arm"] == CORE[2]
        row |= {"cost/use": 50.0, "cost/training": 1e9 + 1e9 * tuned, "cost/weights": 1e6, "cost/layers": 6}
        row["config/base_model"] = "fine-tuned" if tuned else "frozen"
    section = shown("costs", made, tmp_path)
    kinds = by_arm(section.tables[0], "hidden states")
    assert (kinds[f"`{CORE[0]}`"], kinds[f"`{CORE[2]}`"]) == ("own width", "base model changed")
    (axes,) = section.figures["costs"].axes  # what one more task costs is the same for all
    assert axes.get_xlabel().startswith("operations of training")


def test_a_front_takes_costs_within_a_hundredth_for_equal():
    columns = {"cost": [1.0, 1.009, 1.5, 2.0, 2.1], "score": [0.5, 0.6, 0.55, 0.6, 0.7]}
    table = pd.DataFrame({"arm": [*"abcde"], **columns})
    assert costs.front(table, "cost") == ["b", "e"]
    assert costs.front(table.assign(cost=[1.0, 1.02, 1.5, 2.0, None]), "cost") == ["a", "b"]
