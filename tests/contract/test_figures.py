"""Every part and every figure survives every kind of study; a figure is drawn where a page links to it."""

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from adalayers.results.measures import Measured, write_measures
from adalayers.study import Factor
from reports.evidence.across import Case
from reports.evidence.evidence import Evidence
from reports.page.cover import Cover
from reports.page.details import Details
from reports.page.study_page import StudyPage
from reports.reading.load import load
from tests.helpers.long_form import long_but
from tests.helpers.made_few_shot import with_few_shot
from tests.helpers.made_layers import with_single_layers, with_sizes
from tests.helpers.made_published import with_published
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.pages import both_pages, evidence_of


def draw(figure: Figure) -> None:
    """Lay out and draw all of a figure, short of its pixels."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()


def drawn(evidence: Evidence) -> dict[str, Figure]:
    """Return the figures of both pages."""
    return {**StudyPage(evidence).figures, **Details(evidence).figures}


def linked(text: str) -> set[str]:
    return set(re.findall(r"\(figures/(\w+)\.png\)", text))


def no_trials(made: MadeUp) -> None:
    made.trials, made.history = [], []


def one_trial(made: MadeUp) -> None:
    made.trials = made.of(CONTROL)[:1]


def only(status: str) -> Callable[[MadeUp], None]:
    def change(made: MadeUp) -> None:
        for row in made.trials:
            row["status"] = status

    return change


def nan_metrics(made: MadeUp) -> None:
    for row in made.trials + made.history:
        row |= {key: np.nan for key in row if key.startswith(("val/", "test/", "mix/"))}


def all_censored(made: MadeUp) -> None:
    """No trial that reaches what counts as learned, and no history."""
    made.history = []
    made.study["environment"]["dataset"]["baseline"]["val"] = 2.0


def no_learned_mix(made: MadeUp) -> None:
    made.trials = [row for row in made.trials if row["arm"] in ("uniform", "last")]


def odd_names(made: MadeUp) -> None:
    for row in made.of("uniform"):
        row["arm"] = "a_$b$ |{x}^"
    for row in made.predictions[::2]:
        row["label"] = "$l$ |{x}^"
    made.study["environment"]["hidden_states"] = ["$0", "1$", "{", "}", "\\", "_"]
    made.study["request"]["factors"][0]["label"] = "$a_{b|"


def three_factors(made: MadeUp) -> None:
    """Add a factor of two values that are no numbers."""
    made.study["request"]["factors"].append(asdict(Factor("positions", "order", scale="choice")))
    for arm in made.arms:
        arm["config"]["positions"] = arm["config"].get("alpha", 0) > 5
    for row in made.trials:
        row["config/positions"] = row.get("config/alpha", 0) > 5


def toy_fusion(made: MadeUp) -> None:
    """A fusion that reports have never heard of, with diagnostics of its own, next to the layer mix."""
    for arm in made.arms:
        arm["fusion"] = "toy" if arm["name"] == "uniform" else "layer-mix"
    toys = {row["trial_id"] for row in made.of("uniform")}
    for row in made.trials:
        toy = row["trial_id"] in toys
        row |= {"fusion": "toy" if toy else "layer-mix", "train_examples": 400, "draw": 0}
        if toy:
            row |= {"config/mix": None, "mix/entropy": np.nan, "mix/live_layers": np.nan, "config/depth": 3}
    for row in made.history:
        if row["trial_id"] in toys:
            row |= {key: np.nan for key in row if key.startswith("mix/")} | {"toy/temperature": 1.5}


def toys_alone(made: MadeUp) -> None:
    toy_fusion(made)
    for arm in made.arms:
        arm["fusion"] = "toy"
    for row in made.trials:
        row |= {"fusion": "toy", "config/mix": None}


CHANGES: dict[str, Callable[[MadeUp], object]] = {
    "whole": lambda made: None,
    "no trials": no_trials,
    "one trial": one_trial,
    **{f"only {status}": only(status) for status in ("failed", "stopped", "unfinished", "diverged")},
    "nan metrics": nan_metrics,
    "all censored": all_censored,
    "no learned mix": no_learned_mix,
    "odd names and three factors": lambda made: (three_factors(made), odd_names(made)),
    "toy fusion": toy_fusion,
    "toys alone": toys_alone,
    "one seed": lambda made: [made.trials.remove(row) for row in [*made.trials] if row["seed"] == 2],
    "a score beyond squares": lambda made: made.of("uniform")[0].update({"test/matthews": 1e308}),
}
STUDIES: dict[str, Callable[[], MadeUp]] = {
    "factorial": lambda: MadeUp(seeds=2, search=26, stopped=2, evaluations=5, examples=6),
    "tokens": lambda: with_published(
        with_single_layers(MadeUp(seeds=2, search=4, stopped=1, evaluations=3, tokens=True, examples=6))
    ),
    "data size": lambda: with_sizes(MadeUp(seeds=2, search=0, evaluations=3)),
    "few examples": lambda: with_few_shot(MadeUp(seeds=2, search=0, evaluations=3)),
}
UNLIKE = {
    *(f"{study} {change}" for study in STUDIES for change in ("whole", "nan metrics")),
    *("factorial no trials", "factorial one trial", "factorial all censored", "factorial no learned mix"),
    *("factorial odd names and three factors", "factorial toys alone", "factorial a score beyond squares"),
}
"""Those that no other one is like."""


@pytest.mark.parametrize("name", long_but(UNLIKE, map(" ".join, itertools.product(STUDIES, CHANGES))))
def test_every_part_and_figure_survives(tmp_path, name):
    study = next(study for study in STUDIES if name.startswith(study))
    change = name.removeprefix(f"{study} ")
    made = STUDIES[study]()
    CHANGES[change](made)
    folder = made.write(tmp_path)
    by_layer = {f"{layer:02d}": 1 / layer for layer in range(1, made.layers + 1)}
    write_measures(folder, {}, {"variability": Measured(value=6.0, by_layer=by_layer, distance=False)})
    evidence = Evidence(load(folder))
    figures = drawn(evidence)
    assert linked(both_pages(evidence)) == set(figures)
    cover = Cover("x", [Case("here", evidence)], ())
    assert cover.text().startswith("# ")
    figures |= cover.figures
    for figure in figures.values():
        draw(figure)


def test_a_fusion_unknown_to_reports_is_named_and_has_no_entropy(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    toy_fusion(made)
    evidence = evidence_of(made, tmp_path)
    assert "| toy |" in both_pages(evidence)
    compared = [claim for claim in evidence.contrasts if claim.metric == "mix/entropy"]
    assert compared
    assert not any("uniform" in claim.weights for claim in compared)


def test_the_pages_of_other_factors_name_neither_alpha_nor_lambda(tmp_path):
    made = MadeUp(seeds=2, search=26, evaluations=2)
    study, trials = (
        json.dumps(part)
        .replace("alpha_lambda", "toy")
        .replace("alpha", "speed")
        .replace("entropy_weight", "depth")
        for part in (made.study, made.trials)
    )
    made.study = json.loads(study.replace("\\u03b1", "s").replace("\\u03bb", "d"))
    made.study["request"]["method"] = {}
    made.trials = json.loads(trials)
    evidence = evidence_of(made, tmp_path)
    text = both_pages(evidence)
    assert "s, scale of the mix logits" in text
    assert "s = 8 instead of 1" in text
    for word in ("α", "λ", "alpha", "lambda", "entropy_weight"):
        assert word not in text, word


@pytest.mark.parametrize("layers", [1, 25, 49])
def test_few_and_many_layers(tmp_path, layers):
    made = MadeUp(seeds=2, layers=layers, search=0, evaluations=3)
    for name, figure in drawn(evidence_of(made, tmp_path)).items():
        if name.startswith("mix"):
            draw(figure)


def test_drawn_axes_are_labelled(tmp_path):
    made = MadeUp(seeds=2, evaluations=5, search=26, tokens=True, examples=6)
    figures = drawn(evidence_of(made, tmp_path))
    assert len(figures) > 5
    for name, figure in figures.items():
        axes_ = [axes for axes in figure.axes if axes.axison]
        for axes in axes_:
            beside = axes.get_shared_y_axes().get_siblings(axes)  # panels of one scale are labelled once
            assert any(other.get_ylabel() for other in beside), name
            assert axes.get_xlabel() or axes.get_label() == "<colorbar>", name
