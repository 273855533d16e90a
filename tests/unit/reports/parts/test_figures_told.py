"""What figures and their sentences tell apart: tied layers, panels and colours."""

from types import SimpleNamespace
from typing import Any

import pandas as pd

from adalayers.results.study_file import Factor
from reports.drawing.style import look
from reports.evidence.evidence import Evidence
from reports.parts import convergence, data_size, mix
from reports.reading.load import load
from tests.helpers.made_scores import plan
from tests.helpers.made_up import CORE, MadeUp


def test_layers_that_lead_as_often_are_both_named():
    layers = ("mix/weight_01", "mix/weight_02", "mix/weight_03")
    weights = pd.DataFrame([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]], columns=list(layers)).assign(level=8.0)
    info: Any = SimpleNamespace(layers=layers, weights=weights, first=Factor("alpha"))
    told = mix._leading(info)
    assert "layer 1 and layer 2 in 1 of 2" in told
    assert told.endswith("each.")


def test_a_uniform_mix_of_few_layers_leads_nowhere_and_has_no_line_for_all(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2, layers=6)
    narrow = {row["trial_id"] for arm in CORE[:6] for row in made.of(arm)}
    for row in made.history:
        states = 3 if row["trial_id"] in narrow else 6
        row |= {f"mix/weight_{n:02d}": 1 / states if n <= states else None for n in range(1, 7)}
    found = mix.info(Evidence(load(made.write(tmp_path))))
    assert mix._leading(found) == ""
    texts = [text.get_text() for axes in mix.draw_entropy(found).axes for text in axes.texts]
    assert "uniform mix" not in texts


def test_panels_of_other_arms_have_titles_of_their_own():
    names = [f"arm {number}" for number in range(2 * convergence.PER_PANEL + 1)]
    arms = pd.DataFrame({"arm": names, "role": "", "line": ""})
    titles = [title for title, _ in convergence._panels(arms, plan(names))]
    assert len(titles) == len(set(titles)) == 3


def test_eight_lines_have_eight_colours_and_later_ones_another_marker():
    assert len({look(place)[0] for place in range(8)}) == 8
    assert len({look(place)[:2] for place in range(16)}) == 16


def test_arms_of_a_figure_against_data_size_differ_in_colour():
    """The seven settings of `small_data`."""
    rows = [
        {"line": f"setting {line}", "examples": examples, "mean": 0.1 * line, "low": 0.0, "high": 1.0, "n": 6}
        for line in range(7)
        for examples in (100, 1000)
    ]
    info: Any = SimpleNamespace(sizes=pd.DataFrame(rows), score="test accuracy (share correct)")
    (axes,) = data_size.draw(info).axes
    lines = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert len({line.get_color() for line in lines}) == len(lines) == 7


def test_each_trained_model_has_a_line_of_its_own_mix(tmp_path):
    found = mix.info(Evidence(load(MadeUp(seeds=2, search=0, evaluations=2).write(tmp_path))))
    drawn = mix.draw_layers(found)
    lines = [tuple(line.get_ydata()) for axes in drawn.axes for line in axes.lines]
    assert sorted(lines) == sorted(found.weights[list(found.layers)].itertuples(index=False, name=None))
