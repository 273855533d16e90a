"""What figures and their sentences tell apart: tied layers, panels and colours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd

from adalayers.results.study_file import Factor
from reports.drawing.style import look
from reports.parts import convergence, mix
from tests.helpers.made_scores import plan


def test_layers_that_lead_as_often_are_both_named():
    layers = ("mix/weight_01", "mix/weight_02", "mix/weight_03")
    weights = pd.DataFrame([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]], columns=list(layers)).assign(level=8.0)
    info: Any = SimpleNamespace(layers=layers, weights=weights, first=Factor("alpha"))
    told = mix._leading(info)
    assert "layer 1 and layer 2 in 1 of 2" in told
    assert told.endswith("each.")


def test_panels_of_other_arms_have_titles_of_their_own():
    names = [f"arm {number}" for number in range(2 * convergence.PER_PANEL + 1)]
    arms = pd.DataFrame({"arm": names, "role": "", "line": ""})
    titles = [title for title, _ in convergence._panels(arms, plan(names))]
    assert len(titles) == len(set(titles)) == 3


def test_eight_lines_have_eight_colours_and_later_ones_another_marker():
    assert len({look(place)[0] for place in range(8)}) == 8
    assert len({look(place)[:2] for place in range(16)}) == 16
