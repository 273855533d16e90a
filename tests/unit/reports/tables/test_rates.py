"""The learning rates that arms tried: which was kept, and where it lies."""

import math

import pandas as pd

from adalayers.comparisons import PlannedArm
from adalayers.results.study_file import RequestRecord
from reports.reading.frames import searched
from reports.tables.rates import rates

ROWS = [
    # trial, stage, search, arm, status, lr, score
    ("t1", "search", "rates", "a", "completed", 1e-3, 0.5),
    ("t2", "search", "rates", "a", "completed", 3e-3, 0.7),
    ("t0", "search", "rates", "a", "completed", 1e-2, 0.6),
    ("t5", "search", "rates", "b", "completed", 1e-3, 0.4),
    ("t4", "search", "rates", "b", "completed", 3e-3, 0.4),
    ("t6", "search", "rates", "b", "diverged", 1e-2, math.nan),
    ("t7", "search", "rates", "c", "completed", 1e-3, 0.9),
    ("t8", "search", "rates", "c", "completed", 3e-3, 0.2),
    ("t9", "search", "", "", "completed", 5e-3, 0.95),
    ("ta", "confirm", "", "c", "completed", 3e-3, 0.3),
]
COLUMNS = ["trial_id", "stage", "search", "arm", "status", "config/lr", "val/f1"]
TRIALS = pd.DataFrame(ROWS, columns=COLUMNS).assign(seed=[0] * 9 + [1])
REQUEST = RequestRecord(metric="f1", arms=tuple(map(PlannedArm, "abc")))


def test_the_best_is_kept_ties_go_to_the_smallest_id_and_what_was_confirmed_stays():
    table = rates(TRIALS, REQUEST)
    kept = table[table["kept"]]
    assert list(zip(kept["arm"], kept["lr"], kept["edge"], strict=True)) == [
        ("a", 3e-3, ""),
        ("b", 3e-3, ""),  # t4 before t5
        ("c", 3e-3, "high"),
    ]
    assert (table.loc[~table["kept"], "edge"] == "").all()
    assert len(table) == 8
    assert list(searched(TRIALS)["trial_id"]) == ["t9"]  # rates are no search
    assert rates(TRIALS[TRIALS["search"] == ""], REQUEST).empty
