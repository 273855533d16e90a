"""Figures are left out where they say nothing."""

import pandas as pd
import pytest

from reports.evidence.evidence import Evidence
from reports.parts import cost_at_use
from reports.reading.load import load
from tests.helpers.made_up import MadeUp


@pytest.mark.parametrize(
    ("weights", "front"),
    [
        ({"a": (22_150, 0.60), "b": (22_152, 0.61), "c": (22_153, 0.62)}, None),  # 0.01% apart
        ({"a": (21_700, 0.60), "b": (22_200, 0.69)}, None),  # 2% apart
        ({"a": (10_000, 0.60), "b": (10_010, 0.61), "c": (22_000, 0.62), "d": (22_000, 0.5)}, ("b", "c")),
        ({"a": (10_000, 0.70), "b": (22_000, 0.62)}, None),  # the cheapest is the best
    ],
)
def test_cost_is_shown_where_it_decides_something(tmp_path, weights, front):
    made = MadeUp(seeds=1, search=0, evaluations=1)
    made.study["environment"]["backbone"]["layer_parameters"] = 1_000
    evidence = Evidence(load(made.write(tmp_path)))
    rows = [
        {
            "arm": arm,
            "intact": True,
            "live": 2.0,
            "layers": 4.0,
            "weights": of - 4_000,
            "score": score,
            "n": 1,
        }
        for arm, (of, score) in weights.items()
    ]
    changed = {"arm": "z", "intact": False, "live": 2.0, "layers": 4.0, "weights": 1, "score": 0.9, "n": 1}
    vars(evidence)["costs"] = pd.DataFrame([*rows, changed])
    shown = cost_at_use.info(evidence)
    assert (shown and shown.front) == front
    assert shown is None or shown.costs["operations"].max() == 0.044
