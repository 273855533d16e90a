"""Parts on what trained models lose with something taken away, and on components, against numbers that were put in."""

import dataclasses

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from adalayers.results import files
from adalayers.study import FACTORS, Factor, Variant
from reports.evidence.evidence import Evidence
from reports.parts import cutoff, layer_spans
from reports.reading.load import load
from tests.helpers.made_up import CONTROL, CORE, MadeUp

SPANS = [Variant(without=(1,)), Variant(without=(5, 6)), Variant(without=(1,), renormalise=False)]
CUT = Variant(cutoff=0.1)
CHANGE = {SPANS[0].name: -0.5, SPANS[1].name: -0.001, SPANS[2].name: -0.6, CUT.name: -0.25}
"""By what share of the whole model's score a variant is higher."""


def with_variants(made: MadeUp, folder) -> Evidence:
    """Write a study whose trained models were scored as `CHANGE` says, on validation."""
    made.study["request"]["variants"] = {
        variant.name: dataclasses.asdict(variant) for variant in (*SPANS, CUT)
    }
    place = made.write(folder)
    rows = [
        {"trial_id": row["trial_id"], "split": "val", "variant": name, "metric": made.metric}
        | {"value": row[f"val/{made.metric}"] * (1 + change)}
        for row in made.trials
        for name, change in CHANGE.items()
    ]
    place.write_parquet(files.EVALUATIONS, pd.DataFrame(rows))
    return Evidence(load(place))


def test_losses_are_shares_of_the_whole_models_score_and_of_models_that_have_learned(tmp_path):
    made = MadeUp(seeds=3, search=0, evaluations=2)
    for row in made.of("uniform"):
        row["val/matthews"] = 0.005  # no more than a trivial model and the smallest effect
    found = layer_spans.info(with_variants(made, tmp_path))
    assert found.left_out == ("uniform",)
    assert found.score.name == "validation Matthews correlation"
    changes = found.changes[found.changes["arm"] == CONTROL].set_index("variant")["mean"]
    assert changes.to_dict() == pytest.approx({variant.name: CHANGE[variant.name] for variant in SPANS})
    (told,) = layer_spans.answer(found)
    assert f"`{CONTROL}` misses layer 1 most among single layers (-50.0%, n = 3)" in told
    assert "can do without layers 5 to 6 (2 layers) at a loss of at most 1%" in told
    assert "`uniform`" in layer_spans.section(found)[0]
    FigureCanvasAgg(layer_spans.draw(found)).draw()


def test_models_that_have_learned_nothing_have_nothing_to_lose(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    for row in made.trials:
        row["val/matthews"] = 0.0
    found = layer_spans.info(with_variants(made, tmp_path))
    assert layer_spans.section(found) == [
        "Every trained model scores hardly more than a trivial one: there is nothing to lose."
    ]
    assert (layer_spans.draw(found), layer_spans.answer(found)) == (None, [])


def test_cutoffs_in_training_and_on_trained_models(tmp_path):
    made = MadeUp(seeds=3, search=0, evaluations=2)
    factors = (
        FACTORS["cutoff"],
        FACTORS["alpha"],
        Factor("cutoff_when", "at work", scale="choice", absent="always"),
    )
    made.study["request"]["factors"] = [dataclasses.asdict(factor) for factor in factors]
    for arm in made.arms:
        level = 0.05 if arm["name"] in CORE[4:8] else 0.0
        when = "after-training" if arm["name"] == CORE[4] else "always"
        arm["config"] |= {
            "cutoff": level,
            **({"cutoff_when": when} if level else {}),
        }  # nobody asks when 0 cuts
        for row in made.of(arm["name"]):
            row |= {f"config/{name}": value for name, value in arm["config"].items()}
    evidence = with_variants(made, tmp_path)
    assert set(evidence.core["arm"]) == set(CORE)
    found = cutoff.info(evidence)
    assert found.cells["after"].sum() == 1
    assert found.later["mean"].tolist() == pytest.approx([CHANGE[CUT.name]] * len(found.later))
    tables = "\n".join(cutoff.section(found))
    assert "| α = 1 | 0.1 | -25.0 (n = 3" in tables
    assert "at the highest cutoff, 0.05, there are left" in cutoff.answer(found)[0]
    FigureCanvasAgg(cutoff.draw(found)).draw()
