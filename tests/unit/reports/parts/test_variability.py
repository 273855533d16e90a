"""Variability next to learned weights: exact numbers of a made-up study, and what a page says of them."""

import dataclasses

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from adalayers.comparisons import PlannedArm
from adalayers.results.measures import Measured, write_measures
from reports.evidence.evidence import Evidence
from reports.parts import distances, measures, variability
from reports.reading.load import load
from reports.tables.rank_agreement import spearman
from tests.helpers.made_layers import with_single_layers
from tests.helpers.made_up import CONTROL, MadeUp

NUS = {"01": 5.0, "02": 4.0, "03": 0.5, "04": 1.0, "05": 2.0, "06": 3.0}


def written(made: MadeUp, folder, by_layer=NUS) -> Evidence:
    place = made.write(folder / "study")
    found = Measured(title="layer", unit="number", value=3.0, n=7, by_layer=by_layer, distance=False)
    write_measures(place, {}, {"variability": found})
    return Evidence(load(place))


def made(seeds=3, alpha=1, **how) -> MadeUp:
    """A study in which the arm of one alpha is the best learned one by far."""
    return MadeUp(
        seeds=seeds, search=0, evaluations=3, effects={f"alpha={alpha} entropy_weight=0": 0.5}, **how
    )


def at_best(made: MadeUp, arm: str) -> dict[int, list[float]]:
    found = {}
    for row in made.of(arm):
        (point,) = (
            point
            for point in made.history
            if point["trial_id"] == row["trial_id"] and point["epoch"] == row["best_epoch"]
        )
        found[row["seed"]] = [point[f"mix/weight_0{n}"] for n in range(1, 7)]
    return found


def test_layers_with_their_weights_and_scores(tmp_path):
    study = with_single_layers(made())
    found = variability.info(written(study, tmp_path))
    arm = CONTROL
    assert found.arm == arm
    assert [layer.name for layer in found.layers] == [f"layer {n}" for n in range(1, 7)]
    assert [layer.nu for layer in found.layers] == list(NUS.values())
    weights = at_best(study, arm)
    for place, layer in enumerate(found.layers):
        assert layer.weight.mean == pytest.approx(np.mean([weight[place] for weight in weights.values()]))
        scores = [row["test/matthews"] for row in study.of(f"layer={place + 1}")]
        assert layer.score.mean == pytest.approx(np.mean(scores))
        assert (layer.weight.n, layer.score.n) == (3, 3)
    minus = [-nu for nu in NUS.values()]
    assert found.agreement == {
        seed: pytest.approx(spearman(minus, weight)) for seed, weight in weights.items()
    }
    assert found.alone == pytest.approx(spearman(minus, [layer.score.mean for layer in found.layers]))
    mean = np.mean(list(weights.values()), axis=0)
    assert found.deviation == pytest.approx(np.abs(6 * mean - 1).max())


def test_with_single_layers_it_is_the_mix_that_they_are_compared_with(tmp_path):
    study = made(alpha=64)
    assert variability.info(written(study, tmp_path / "a")).arm == "alpha=64 entropy_weight=0"
    assert variability.info(written(with_single_layers(study), tmp_path / "b")).arm == CONTROL


def test_single_layers_are_those_of_the_mixs_own_fusion_over_a_frozen_base_model(tmp_path):
    study = with_single_layers(made())
    study.arms[:] = [arm for arm in study.arms if arm["name"] != "layer=6"]
    for place, (fusion, base_model) in enumerate((("scalar-mix", "frozen"), ("layer-mix", "fine-tuned"))):
        for row in list(study.of("layer=1")):
            other = row | {
                "trial_id": f"{row['trial_id']}-{place}",
                "arm": f"another {place}",
                "fusion": fusion,
            }
            other |= {"config/mix": "last", "config/layer": "", "config/base_model": base_model}
            study.trials.append(other)
        study.arms.append(dataclasses.asdict(PlannedArm(f"another {place}", fusion=fusion)))
    study.trials[:] = [row for row in study.trials if row["arm"] != "layer=6"]
    found = variability.info(written(study, tmp_path))
    last = [row["test/matthews"] for row in study.of("last")]
    assert found.layers[-1].score.mean == pytest.approx(np.mean(last))


def test_the_trials_own_variability_goes_before_that_of_a_sample(tmp_path):
    own = {name: 10 - nu for name, nu in NUS.items()}
    study = made()
    for row in study.of(CONTROL):
        row |= {f"variability/nu_{name}": nu for name, nu in own.items()}
    found = variability.info(written(study, tmp_path / "alike"))
    assert [layer.nu for layer in found.layers] == list(own.values())
    assert "here on all training examples" in variability.section(found)[0]
    study.of(CONTROL)[0]["variability/nu_01"] = 3.0  # of other data: neither is that of the study
    found = variability.info(written(study, tmp_path / "apart"))
    assert [layer.nu for layer in found.layers] == list(NUS.values())
    assert "(see *Measured without training*)" in variability.section(found)[0]


def test_a_wide_range_is_drawn_to_a_logarithmic_scale(tmp_path):
    found = variability.info(written(made(), tmp_path, {**NUS, "01": 100.0}))
    assert variability.draw(found).axes[0].get_yscale() == "log"


def test_layers_that_are_not_mixed_have_no_weight(tmp_path):
    found = variability.info(written(made(layers=3), tmp_path))
    assert [layer.weight.n for layer in found.layers] == [3, 3, 3, 0, 0, 0]
    assert len(found.mixed) == 3
    assert "| layer 4 | 1.000 | — (n = 0) |" in "\n".join(variability.section(found))
    FigureCanvasAgg(variability.draw(found)).draw()


def test_it_is_left_out_where_it_does_not_apply(tmp_path):
    assert variability.info(Evidence(load(made().write(tmp_path / "a")))) is None
    assert variability.info(written(made(), tmp_path / "b", {})) is None
    none = made()
    none.trials = none.of("uniform")
    assert variability.info(written(none, tmp_path / "c")) is None
    assert variability.info(written(made(), tmp_path / "d", {"decoder_01": 1.0, "decoder_02": 2.0})) is None


def test_it_is_among_the_measures_and_no_distance(tmp_path):
    evidence = written(made(), tmp_path)
    (measure,) = measures.info(evidence).measures
    assert (measure.value, measure.by_layer) == (3.0, NUS)
    assert distances.info([("here", "link", evidence)]) is None
