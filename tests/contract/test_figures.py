"""Every part and every figure survives every kind of study; a figure is drawn where a page links to it."""

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
from reports.evidence.across import Case, across
from reports.evidence.evidence import Evidence
from reports.page.cover import cover
from reports.page.details import details
from reports.page.study_page import study_page
from reports.reading.load import load
from tests.helpers.made_layers import with_single_layers, with_sizes
from tests.helpers.made_published import with_published
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import both_pages, evidence_of


def draw(name: str, figure: Figure) -> None:
    """Lay out and draw all of a figure, short of its pixels; its axes are labelled, panels of one scale once."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    for axes in figure.axes:
        if axes.axison:
            of_one_scale = axes.get_shared_y_axes().get_siblings(axes)
            assert any(each.get_ylabel() for each in of_one_scale), name
            assert axes.get_xlabel() or axes.get_label() == "<colorbar>", name


def nan_metrics(made: MadeUp) -> None:
    for row in made.trials + made.history:
        row |= {key: np.nan for key in row if key.startswith(("val/", "test/", "mix/"))}


def all_censored(made: MadeUp) -> None:
    """No trial that reaches what counts as learned, and no history."""
    made.history = []
    made.study["environment"]["dataset"]["baseline"]["val"] = 2.0


def odd_names(made: MadeUp) -> None:
    for row in made.of("uniform"):
        row["arm"] = "a_$b{$ |{x}^"
    for row in made.predictions[::2]:
        row["label"] = "$l{$ |{x}^"
    made.study["environment"]["hidden_states"] = ["$0", "1$", "{", "}", "\\", "_"]
    made.study["request"]["factors"][0]["label"] = "$a_{b|"


def three_factors(made: MadeUp) -> None:
    """Add a factor of two values that are no numbers."""
    made.study["request"]["factors"].append(asdict(Factor("positions", "order", scale="choice")))
    for arm in made.arms:
        arm["config"]["positions"] = arm["config"].get("alpha", 0) > 5
    for row in made.trials:
        row["config/positions"] = row.get("config/alpha", 0) > 5


def toys(*arms: str) -> Callable[[MadeUp], None]:
    """Let these arms, or all, be of a fusion that reports have never heard of, with diagnostics of its own."""

    def change(made: MadeUp) -> None:
        ids = {row["trial_id"] for row in made.trials if not arms or row["arm"] in arms}
        for arm in made.arms:
            arm["fusion"] = "toy" if not arms or arm["name"] in arms else "layer-mix"
        for row in made.trials + made.history:
            if row["trial_id"] in ids:
                row |= {key: np.nan for key in row if key.startswith("mix/")} | {"toy/temperature": 1.5}
        for row in made.trials:
            row |= {"train_examples": 400, "draw": 0, "fusion": "layer-mix"}
            if row.pop("toy/temperature", None):
                row |= {"fusion": "toy", "config/mix": None, "config/depth": 3}

    return change


CHANGES: dict[str, Callable[[MadeUp], object]] = {
    "no trials": lambda made: made.trials.clear(),
    "only failed": lambda made: [row.update(status="failed") for row in made.trials],
    "nan metrics": nan_metrics,
    "all censored": all_censored,
    "odd names and three factors": lambda made: (three_factors(made), odd_names(made)),
    "toy fusion": toys("uniform"),
    "toys alone": toys(),
}
STUDIES: dict[str, Callable[[], MadeUp]] = {
    "factorial": lambda: MadeUp(seeds=2, search=14, stopped=2, evaluations=5, examples=6),
    "tokens": lambda: with_published(
        with_single_layers(MadeUp(seeds=2, search=4, stopped=1, evaluations=3, tokens=True, examples=6))
    ),
    "data size": lambda: with_sizes(MadeUp(seeds=2, search=0, evaluations=3)),
    "one layer": lambda: MadeUp(seeds=2, layers=1, search=0, evaluations=3),
    "many layers": lambda: MadeUp(seeds=2, layers=49, search=0, evaluations=3),
}


@pytest.mark.parametrize("name", [*STUDIES, *CHANGES])
def test_every_part_and_figure_survives(tmp_path, name):
    made = STUDIES.get(name, STUDIES["factorial"])()
    if name in CHANGES:
        CHANGES[name](made)
    folder = made.write(tmp_path)
    by_layer = {f"{layer:02d}": 1 / layer for layer in range(1, made.layers + 1)}
    write_measures(folder, {}, {"variability": Measured(value=6.0, by_layer=by_layer, distance=False)})
    evidence = Evidence(load(folder))
    figures = {**study_page(evidence).figures, **details(evidence).figures}
    text = both_pages(evidence)
    assert {*re.findall(r"\(figures/(\w+)\.png\)", text)} == set(figures)
    cases = [Case("here", evidence)]
    above = cover("x", cases, across(cases), ())
    assert above.text.startswith("# ")
    for shown, figure in {**figures, **above.figures}.items():
        draw(shown, figure)
    assert name in CHANGES or len(figures) > 2
    if name == "toy fusion":
        assert "| toy |" in text
        compared = [claim for claim in evidence.contrasts if claim.metric == "mix/entropy"]
        assert compared
        assert not any("uniform" in claim.weights for claim in compared)


def test_the_pages_of_other_factors_name_neither_alpha_nor_lambda(tmp_path):
    made = MadeUp(seeds=2, search=26, evaluations=2)
    made.study["request"]["method"] = {}
    text = json.dumps([made.study, made.trials]).replace("\\u03b1", "s").replace("\\u03bb", "d")
    for word, other in (("alpha_lambda", "toy"), ("alpha", "speed"), ("entropy_weight", "depth")):
        text = text.replace(word, other)
    made.study, made.trials = json.loads(text)
    text = both_pages(evidence_of(made, tmp_path))
    assert "s, scale of the mix logits" in text
    assert "s = 8 instead of 1" in text
    for word in ("α", "λ", "alpha", "lambda", "entropy_weight"):
        assert word not in text, word
