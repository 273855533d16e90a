"""Every figure survives every kind of study, and says so where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reports.evidence.evidence import draw, gather
from reports.evidence.layers import SINGLE_COLUMNS
from reports.page.cover import Entry, cover, draw_cover
from reports.page.report import report
from reports.parts import curve_figures, error_figures, layer_figures
from reports.reading.load import load
from reports.write import images
from tests.helpers.made_layers import with_single_layers, with_sizes
from tests.helpers.made_up import CONTROL, MadeUp

FIGURES = (
    *("arms", "core_heatmap", "search_trials", "score_by_alpha"),
    *("convergence", "mix_by_entropy_weight", "mix_weights", "mix_history"),
    *("learning_curves", "importances", "search_surface", "search_parallel", "confusion"),
)
SEARCH = {"search_trials", "search_surface", "search_parallel"}


def no_trials(made: MadeUp) -> None:
    made.trials, made.history = [], []


def one_trial(made: MadeUp) -> None:
    made.trials = made.of(CONTROL)[:1]


def one_search_trial(made: MadeUp) -> None:
    made.trials = [row for row in made.trials if row["status"] == "completed"][:1]


def only(status: str) -> Callable[[MadeUp], None]:
    def change(made: MadeUp) -> None:
        for row in made.trials:
            row["status"] = status

    return change


def nan_metrics(made: MadeUp) -> None:
    for row in made.trials + made.history:
        row |= {key: np.nan for key in row if key.startswith(("val/", "test/", "mix/"))}


def some_nan(made: MadeUp) -> None:
    for row in made.trials[::2] + made.history[::3]:
        row |= {key: np.nan for key in row if key.startswith(("val/", "test/", "mix/"))}


def no_history(made: MadeUp) -> None:
    made.history = []


def identical(made: MadeUp) -> None:
    for row in made.trials:
        row |= {key: 0.0 for key in row if key.startswith(("val/", "test/", "mix/"))}
    for row in made.history:
        row |= {"val/matthews": 0.0}


def all_censored(made: MadeUp) -> None:
    made.study["on"]["dataset"]["baseline"]["val"] = 2.0


def no_learned_mix(made: MadeUp) -> None:
    made.trials = [row for row in made.trials if row["arm"] in ("uniform", "last")]


def odd_names(made: MadeUp) -> None:
    for row in made.of("uniform"):
        row["arm"] = "a_$b$ |{x}^"
    for row in made.predictions[::2]:
        row["label"] = "$l$ |{x}^"
    made.study["on"]["hidden_states"] = ["$0", "1$", "{", "}", "\\", "_"]


def no_groups(made: MadeUp) -> None:
    del made.study["asked"]["arms"]


def no_predictions(made: MadeUp) -> None:
    made.predictions = []


def no_space(made: MadeUp) -> None:
    made.study["asked"]["space"] = {"alpha": "?", "lr": None}


def odd_epochs(made: MadeUp) -> None:
    for row in made.trials:
        row["best_epoch"] = 99
    for row in made.history[::2]:
        row["epoch"] = np.nan


ALL = set(FIGURES)
KINDS = {
    "no trials": (no_trials, ALL),
    "one trial": (one_trial, {*SEARCH, "importances"}),
    "one search trial": (one_search_trial, ALL - SEARCH - {"mix_weights", "mix_history"}),
    "only failed": (only("failed"), ALL),
    "only stopped": (only("stopped"), ALL - {"search_trials"}),
    "only unfinished": (only("unfinished"), ALL),
    "only diverged": (only("diverged"), ALL),
    "nan metrics": (nan_metrics, ALL),
    "some nan": (some_nan, set()),
    "no history": (no_history, {"convergence", "mix_weights", "mix_history", "learning_curves"}),
    "identical scores": (identical, {"importances"}),
    "all censored": (all_censored, set()),
    "no learned mix": (no_learned_mix, ALL - {"arms", "learning_curves", "confusion"}),
    "odd names": (odd_names, set()),
    "no groups": (no_groups, {"core_heatmap", "score_by_alpha", "convergence", "mix_by_entropy_weight"}),
    "no predictions": (no_predictions, {"confusion"}),
    "no space": (no_space, {"importances", "search_surface", "search_parallel"}),
    "odd epochs": (odd_epochs, set()),
    "whole": (lambda made: None, set()),
}


HARD = (
    *("no trials", "one trial", "only failed", "only stopped", "nan metrics", "some nan"),
    *("no history", "no predictions", "whole"),
)
"""Those that figures of some studies alone are tried on."""

RARE = ("class_scores", "confusion", "single_layers", "layer_profiles", "score_by_size", "learning_curves")


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_survives(tmp_path, kind):
    change, empty = KINDS[kind]
    made = MadeUp(seeds=2, search=26, stopped=2, evaluations=3, examples=6)
    change(made)
    loaded = load(made.write(tmp_path))
    figures = draw(loaded, gather(loaded))
    assert tuple(figures) == FIGURES
    said = set()
    for name, figure in figures.items():
        FigureCanvasAgg(figure).draw()
        said |= (
            {name} if any("Nothing to draw" in text.get_text() for text in figure.axes[0].texts) else set()
        )
    assert said == empty


@pytest.mark.parametrize("kind", HARD)
def test_figures_and_pages_that_only_some_studies_have_survive_too(tmp_path, kind):
    made = with_single_layers(MadeUp(seeds=2, search=4, stopped=1, evaluations=3, tokens=True, examples=6))
    KINDS[kind][0](made)
    place = made.write(tmp_path)
    loaded = load(place)
    evidence = gather(loaded)
    assert report(loaded, evidence).startswith("# ")
    entry = Entry("here", loaded, evidence)
    assert cover("x", [entry]).startswith("# ")
    drawn = {**draw(loaded, evidence), **draw_cover([entry])}
    assert "class_scores" in drawn
    if kind == "whole":
        assert {"single_layers", "layer_profiles"} <= set(drawn)
    for name in set(RARE) & set(drawn):
        FigureCanvasAgg(drawn[name]).draw()


@pytest.mark.parametrize("kind", HARD)
def test_a_study_of_data_size_survives_too(tmp_path, kind):
    made = with_sizes(MadeUp(seeds=2, search=0, evaluations=3))
    KINDS[kind][0](made)
    loaded = load(made.write(tmp_path))
    evidence = gather(loaded)
    drawn = draw(loaded, evidence)
    if kind == "whole":
        assert "score_by_size" in drawn
        assert "## Score against data size" in report(loaded, evidence)
    for name in set(RARE) & set(drawn):
        FigureCanvasAgg(drawn[name]).draw()


def test_figures_without_anything_say_so():
    nothing = pd.DataFrame(columns=["line", "examples", "mean", "low", "high", "n"])
    for figure in (
        layer_figures.layer_profiles([]),
        layer_figures.single_layers(pd.DataFrame(columns=SINGLE_COLUMNS), None, "score"),
        curve_figures.score_by_size(nothing, "score"),
        error_figures.class_scores(pd.DataFrame(columns=["arm"]), "arm"),
    ):
        images(figure)
        assert any("Nothing to draw" in text.get_text() for text in figure.axes[0].texts)


@pytest.mark.parametrize("layers", [1, 25, 49])
def test_few_and_many_layers(tmp_path, layers):
    made = MadeUp(seeds=2, layers=layers, search=0, evaluations=3)
    loaded = load(made.write(tmp_path))
    figures = draw(loaded, gather(loaded))
    for name in ("mix_weights", "mix_history", "mix_by_entropy_weight"):
        FigureCanvasAgg(figures[name]).draw()


def test_a_figure_is_a_png_and_an_svg(tmp_path):
    loaded = load(MadeUp(seeds=2, search=0, evaluations=3).write(tmp_path))
    made = images(draw(loaded, gather(loaded))["arms"])
    assert made["png"].startswith(b"\x89PNG")
    assert b"<svg" in made["svg"]
    assert b"<dc:date>" not in made["svg"]


def test_drawn_axes_are_labelled(tmp_path):
    loaded = load(MadeUp(seeds=2, evaluations=3, search=14, tokens=True, examples=6).write(tmp_path))
    for name, figure in draw(loaded, gather(loaded)).items():
        drawn = [axes for axes in figure.axes if axes.axison]
        assert all(axes.get_ylabel() for axes in drawn), name
        assert all(axes.get_xlabel() for axes in drawn if axes.get_label() != "<colorbar>"), name
