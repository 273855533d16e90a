"""Every figure survives every kind of study, and says so where there is nothing to draw."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from adalayers.results.measures import Measured, write_measures
from reports.evidence.evidence import Evidence
from reports.evidence.importances import FEWEST
from reports.page.cover import Entry, cover, draw_cover
from reports.page.report import PARTS, SHORT, details_page, parts, short_page
from reports.reading.load import load
from reports.write import images
from tests.helpers.long_form import long_but
from tests.helpers.made_few_shot import with_few_shot
from tests.helpers.made_layers import with_single_layers, with_sizes
from tests.helpers.made_published import with_published
from tests.helpers.made_up import CONTROL, MadeUp, choice, ranged

SHORT_FIGURES = {"quality", "mix_entropy", "mix_layers"}
"""Those drawn for report.md."""
FIGURES = SHORT_FIGURES | {
    *("arms", "core_heatmap", "search_trials", "score_by_factor"),
    *("convergence", "mix_by_factor", "mix_weights", "mix_history"),
    *("learning_curves", "importances", "search_parallel", "confusion"),
}
SEARCH = {"search_trials", "search_parallel"}
CORE_FIGURES = {
    "core_heatmap",
    "score_by_factor",
    "convergence",
    "mix_by_factor",
    "mix_entropy",
    "mix_layers",
}
LEFT_OUT = {"importances", "mix_entropy", "mix_layers"}
"""Those that are left out, and their links with them, where there is nothing to draw."""


def draw(figure: Figure) -> None:
    """Lay out and draw all of a figure, short of its pixels."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()


def drawn(evidence: Evidence) -> dict[str, Figure]:
    """Return the figures of both pages."""
    return {**short_page(evidence).figures(), **details_page(evidence).figures()}


def texts(evidence: Evidence) -> str:
    """Return both pages, one after the other."""
    pages = [short_page(evidence).text(), details_page(evidence).text()]
    assert all(page.startswith("# ") for page in pages)
    return "\n".join(pages)


def linked(text: str) -> set[str]:
    return set(re.findall(r"\(figures/(\w+)\.svg\)", text))


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


def no_groups(made: MadeUp) -> None:
    del made.study["request"]["arms"]


def no_predictions(made: MadeUp) -> None:
    made.predictions = []


def no_space(made: MadeUp) -> None:
    made.study["request"]["space"] = {"alpha": {"name": "?"}, "lr": {}}


def odd_epochs(made: MadeUp) -> None:
    for row in made.trials:
        row["best_epoch"] = 99
    for row in made.history[::2]:
        row["epoch"] = np.nan


ALL = FIGURES - LEFT_OUT
KINDS = {
    "no trials": (no_trials, LEFT_OUT, ALL),
    "one trial": (one_trial, {"importances"}, {*SEARCH, "quality"}),
    "one search trial": (one_search_trial, LEFT_OUT, ALL - SEARCH - {"mix_weights", "mix_history"}),
    "only failed": (only("failed"), LEFT_OUT, ALL),
    "only stopped": (only("stopped"), LEFT_OUT, ALL - {"search_trials"}),
    "only unfinished": (only("unfinished"), LEFT_OUT, ALL),
    "only diverged": (only("diverged"), LEFT_OUT, ALL),
    "nan metrics": (nan_metrics, LEFT_OUT, ALL),
    "some nan": (some_nan, set(), set()),
    "no history": (
        no_history,
        {"mix_layers"},
        {"convergence", "mix_weights", "mix_history", "learning_curves"},
    ),
    "identical scores": (identical, {"importances"}, set()),
    "all censored": (all_censored, set(), set()),
    "no learned mix": (no_learned_mix, LEFT_OUT, ALL - {"arms", "learning_curves", "confusion"}),
    "odd names": (odd_names, set(), set()),
    "no groups": (no_groups, CORE_FIGURES, set()),
    "no predictions": (no_predictions, set(), {"confusion"}),
    "no space": (no_space, {"importances", "search_parallel"}, set()),
    "odd epochs": (odd_epochs, {"mix_layers"}, set()),
    "whole": (lambda made: None, set(), set()),
}
"""How a study is changed; the figures that are left out then; those that say that there is nothing to draw."""


CHANGED = {
    "no history": {"convergence", "mix_weights", "mix_history", "learning_curves"},
    "all censored": {"convergence"},
}
"""Figures that are not those of the whole study, where most are."""

HARD = (
    *("no trials", "one trial", "only failed", "only stopped", "nan metrics", "some nan"),
    *("no history", "no predictions", "whole"),
)
"""Those that figures of some studies alone are tried on."""
HARDEST = ("no trials", "one trial", "nan metrics", "whole")
"""Of these, those that none of the others is like."""

NEXT_OF_KIN = {
    *("only failed", "only unfinished", "only diverged", "some nan", "identical scores"),
    *("no predictions", "no space", "odd epochs"),
}
"""Kinds whose figures are like those of others."""

RARE = (
    *("class_scores", "confusion", "single_layers", "layer_profiles", "score_by_size", "learning_curves"),
    *("few_shot_scores", "few_shot_curves", "fine_tuning"),
    "variability",
)


def to_draw(kind: str, figures: dict[str, Figure], *more: str) -> set[str]:
    """Return all figures of the whole study, of others those that only some studies have, and `more`."""
    return set(figures) if kind == "whole" else {*RARE, *more} & set(figures)


@pytest.mark.parametrize("kind", long_but(KINDS.keys() - NEXT_OF_KIN, KINDS))
def test_every_figure_survives(tmp_path, kind):
    change, left_out, empty = KINDS[kind]
    made = MadeUp(seeds=2, search=26, stopped=2, evaluations=3, examples=6)
    change(made)
    evidence = Evidence(load(made.write(tmp_path)))
    figures = drawn(evidence)
    few = {"search_parallel"} if (evidence.points["status"] == "completed").sum() < FEWEST else set()
    assert set(figures) == FIGURES - left_out - few
    assert linked(texts(evidence)) == set(figures)
    said = set()
    for name, figure in figures.items():
        if name in CHANGED.get(kind, FIGURES):
            draw(figure)
        said |= (
            {name} if any("Nothing to draw" in text.get_text() for text in figure.axes[0].texts) else set()
        )
    assert said == empty - few


@pytest.mark.parametrize("kind", long_but(HARDEST, HARD))
def test_figures_and_pages_that_only_some_studies_have_survive_too(tmp_path, kind):
    made = with_single_layers(MadeUp(seeds=2, search=4, stopped=1, evaluations=3, tokens=True, examples=6))
    with_published(made)
    KINDS[kind][0](made)
    evidence = Evidence(load(made.write(tmp_path)))
    figures = drawn(evidence)
    assert linked(texts(evidence)) == set(figures)
    entry = Entry("here", evidence)
    assert cover("x", [entry]).startswith("# ")
    figures |= draw_cover([entry])
    assert "class_scores" in figures
    if kind == "whole":
        assert {"single_layers", "layer_profiles"} <= set(figures)
    for name in to_draw(kind, figures):
        draw(figures[name])


@pytest.mark.parametrize("kind", long_but(HARDEST, HARD))
def test_a_study_of_data_size_survives_too(tmp_path, kind):
    made = with_sizes(MadeUp(seeds=2, search=0, evaluations=3))
    KINDS[kind][0](made)
    evidence = Evidence(load(made.write(tmp_path)))
    figures, text = drawn(evidence), texts(evidence)
    assert linked(text) == set(figures)
    if kind == "whole":
        assert "score_by_size" in figures
        assert "## Score against data size" in text
    for name in to_draw(kind, figures, "quality"):
        draw(figures[name])


@pytest.mark.parametrize("kind", long_but(HARDEST, HARD))
def test_a_study_of_few_examples_survives_too(tmp_path, kind):
    made = with_few_shot(MadeUp(seeds=2, search=0, evaluations=3))
    KINDS[kind][0](made)
    evidence = Evidence(load(made.write(tmp_path)))
    figures, text = drawn(evidence), texts(evidence)
    assert linked(text) == set(figures)
    assert {"few_shot_scores", "few_shot_curves", "fine_tuning"} <= set(figures)
    assert "## Few examples" in text
    for name in to_draw(kind, figures, "quality"):
        draw(figures[name])


def one_factor(made: MadeUp) -> None:
    made.study["request"]["factors"] = made.study["request"]["factors"][:1]
    for arm in made.arms:
        arm["group"] = "core" if arm["arm"].endswith("entropy_weight=0") else ""


def three_factors(made: MadeUp) -> None:
    """The core at two more values of a third factor, of which one is not numeric."""
    made.study["request"]["factors"].append({"name": "positions", "label": "order", "scale": "choice"})
    for arm in made.arms:
        arm["config"]["positions"] = arm["config"].get("alpha", 0) > 5
    for row in made.trials:
        row["config/positions"] = row.get("config/alpha", 0) > 5


def named_levels(made: MadeUp) -> None:
    """A factor whose levels are names, along the axis; the other linear."""
    names = {1: "none", 8: "a few", 64: "many", 512: "all_$"}
    for arm in made.arms:
        if arm["group"] == "core":
            arm["config"]["alpha"] = names[arm["config"]["alpha"]]
    for row in made.trials:
        row["config/alpha"] = names.get(row.get("config/alpha"), "many")
    made.study["request"]["factors"][0] |= {"name": "alpha", "label": "amount", "meaning": "", "scale": "log"}
    made.study["request"]["factors"][1] |= {"label": "w", "scale": "linear"}
    made.study["request"]["space"]["alpha"] = choice(*names.values())
    made.study["request"]["space"]["entropy_weight"] = ranged(0, 0.1)


def no_factors(made: MadeUp) -> None:
    made.study["request"] |= {"factors": [], "scientific": [], "nuisance": []}


def toy_fusion(made: MadeUp) -> None:
    """A fusion that reports have never heard of, with diagnostics of its own, next to the layer mix."""
    for arm in made.arms:
        arm["fusion"] = "toy" if arm["arm"] == "uniform" else "layer-mix"
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


SHAPES = {
    **{kind: change for kind, (change, *_) in KINDS.items()},
    "one factor": one_factor,
    "three factors": three_factors,
    "named levels": named_levels,
    "no factors": no_factors,
    "toy fusion": toy_fusion,
    "toys alone": toys_alone,
    "single layers": with_single_layers,
    "sizes": with_sizes,
    "few shots": with_few_shot,
    "one seed": lambda made: [made.trials.remove(row) for row in [*made.trials] if row["seed"] == 2],
    "no study": lambda made: made.study.clear(),
}
"""Every kind of study that a part must cope with."""
UNLIKE = {*HARDEST, "three factors", "toys alone", "no study"}
"""Of these, those that neither another one nor the study of another test is like."""


@pytest.mark.parametrize("shape", long_but(UNLIKE, SHAPES))
def test_every_part_survives_every_study(tmp_path, shape):
    # Sequences of these kinds are those of `test_every_figure_survives`.
    made = MadeUp(seeds=2, search=8, stopped=2, evaluations=2, examples=4, tokens=shape in KINDS)
    SHAPES[shape](made)
    folder = made.write(tmp_path)
    by_layer = {f"{layer:02d}": 1 / layer for layer in range(1, made.layers + 1)}
    write_measures(folder, {}, {"variability": Measured(value=6.0, by_layer=by_layer)})
    evidence = Evidence(load(folder))
    names = (*SHORT, *PARTS)
    for name, part in zip(names, parts(names), strict=True):
        info = part.info(evidence)
        if info is None:
            continue
        paragraphs = part.section(info)
        assert all(isinstance(paragraph, str) for paragraph in paragraphs), name
        text = "\n".join(paragraphs)
        for figure_name, make in part.draw.items():
            figure = make(info)
            assert (figure is not None) == (figure_name in linked(text)), name
            if figure is not None and (shape not in KINDS or figure_name in RARE):
                draw(figure)


def test_a_fusion_unknown_to_reports_stands_in_the_table_of_arms(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    assert "| fusion |" not in texts(Evidence(load(made.write(tmp_path))))
    toy_fusion(made)
    evidence = Evidence(load(made.write(tmp_path)))
    text = texts(evidence)
    assert "| arm | fusion |" in text
    assert "| `uniform` | toy |" in text
    compared = [claim for claim in evidence.contrasts if claim.metric == "mix/entropy"]
    assert compared
    assert not any("uniform" in claim.weights for claim in compared)


def test_the_pages_of_other_factors_name_neither_alpha_nor_lambda(tmp_path):
    made = MadeUp(seeds=2, search=26, evaluations=2)
    study = (
        json.dumps(made.study)
        .replace("alpha_lambda", "toy")
        .replace("alpha", "speed")
        .replace("entropy_weight", "depth")
    )
    made.study = json.loads(study.replace("\\u03b1", "s").replace("\\u03bb", "d"))
    made.study["request"]["method"] = {}
    made.trials = json.loads(
        json.dumps(made.trials).replace("alpha", "speed").replace("entropy_weight", "depth")
    )
    evidence = Evidence(load(made.write(tmp_path)))
    text = texts(evidence)
    assert "Entropy of the mix weights, and live layers where some are cut, against d, a line per s" in text
    assert "s, scale of the mix logits" in text
    assert "s = 8 instead of 1, at d = 0.001" in text
    for word in ("α", "λ", "alpha", "lambda", "entropy_weight"):
        assert word not in text, word
    assert set(drawn(evidence)) == FIGURES


@pytest.mark.parametrize("layers", [1, 25, 49])
def test_few_and_many_layers(tmp_path, layers):
    made = MadeUp(seeds=2, layers=layers, search=0, evaluations=3)
    figures = drawn(Evidence(load(made.write(tmp_path))))
    for name in ("mix_weights", "mix_history", "mix_by_factor", "mix_entropy", "mix_layers"):
        draw(figures[name])


def test_a_figure_is_a_png_and_an_svg(tmp_path):
    loaded = load(MadeUp(seeds=2, search=0, evaluations=3).write(tmp_path))
    made = images(details_page(Evidence(loaded)).figures()["arms"])
    assert made["png"].startswith(b"\x89PNG")
    assert b"<svg" in made["svg"]
    assert b"<dc:date>" not in made["svg"]


def test_drawn_axes_are_labelled(tmp_path):
    loaded = load(MadeUp(seeds=2, evaluations=3, search=26, tokens=True, examples=6).write(tmp_path))
    figures = drawn(Evidence(loaded))
    assert figures.keys() > FIGURES - {"confusion"}
    for name, figure in figures.items():
        axes_ = [axes for axes in figure.axes if axes.axison]
        if name == "search_parallel":  # an axis per hyperparameter, named by the ticks of the first
            axes_ = axes_[:1]
        for axes in axes_:
            beside = axes.get_shared_y_axes().get_siblings(axes)  # panels of one scale are labelled once
            assert any(other.get_ylabel() for other in beside), name
            assert axes.get_xlabel() or axes.get_label() == "<colorbar>", name
