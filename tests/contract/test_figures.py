"""Every figure survives every kind of study, and says so where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reports.evidence import draw, gather
from reports.load import load
from reports.write import images
from tests.made_up import CONTROL, MadeUp

FIGURES = (
    *("arms", "core_heatmap", "search_trials", "score_by_alpha"),
    *("convergence", "mix_by_entropy_weight", "mix_weights", "mix_history"),
)


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
    made.study["on"]["hidden_states"] = ["$0", "1$", "{", "}", "\\", "_"]


def no_groups(made: MadeUp) -> None:
    del made.study["asked"]["arms"]


KINDS = {
    "no trials": (no_trials, set(FIGURES)),
    "one trial": (one_trial, {"search_trials"}),
    "one search trial": (one_search_trial, set(FIGURES) - {"search_trials", "mix_weights", "mix_history"}),
    "only failed": (only("failed"), set(FIGURES)),
    "only stopped": (only("stopped"), set(FIGURES) - {"search_trials"}),
    "only unfinished": (only("unfinished"), set(FIGURES)),
    "nan metrics": (nan_metrics, set(FIGURES)),
    "some nan": (some_nan, set()),
    "no history": (no_history, {"convergence", "mix_weights", "mix_history"}),
    "identical scores": (identical, set()),
    "all censored": (all_censored, set()),
    "no learned mix": (
        no_learned_mix,
        set(FIGURES) - {"arms"},
    ),
    "odd names": (odd_names, set()),
    "no groups": (no_groups, {"core_heatmap", "score_by_alpha", "convergence", "mix_by_entropy_weight"}),
    "whole": (lambda made: None, set()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_survives(tmp_path, kind):
    change, empty = KINDS[kind]
    made = MadeUp(seeds=2, search=4, stopped=1, evaluations=3)
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
    loaded = load(MadeUp(seeds=2, evaluations=3).write(tmp_path))
    for name, figure in draw(loaded, gather(loaded)).items():
        assert all(axes.get_ylabel() for axes in figure.axes), name
        assert all(axes.get_xlabel() for axes in figure.axes if axes.get_label() != "<colorbar>"), name
