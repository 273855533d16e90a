"""Figures are left out where they say nothing."""

import pandas as pd
import pytest

from reports.evidence.evidence import Evidence
from reports.parts import cost_at_use
from reports.reading.load import load
from tests.helpers.made_up import MadeUp


@pytest.mark.parametrize(
    ("operations", "front"),
    [
        ({"a": (22.150, 0.60), "b": (22.152, 0.61), "c": (22.153, 0.62)}, None),  # 0.01% apart
        ({"a": (21.7, 0.60), "b": (22.2, 0.69)}, None),  # 2% apart
        ({"a": (10.0, 0.60), "b": (10.01, 0.61), "c": (22.0, 0.62), "d": (22.0, 0.5)}, ("b", "c")),
        ({"a": (10.0, 0.70), "b": (22.0, 0.62)}, None),  # the cheapest is the best
    ],
)
def test_cost_is_shown_where_it_decides_something(tmp_path, operations, front):
    evidence = Evidence(load(MadeUp(seeds=1, search=0, evaluations=1).write(tmp_path)))
    rows = [
        {"arm": arm, "live": 1.0, "deepest": 1.0, "operations": cost, "score": score, "n": 1}
        for arm, (cost, score) in operations.items()
    ]
    vars(evidence)["use_costs"] = pd.DataFrame(rows)
    shown = cost_at_use.info(evidence)
    assert (shown and shown.front) == front
