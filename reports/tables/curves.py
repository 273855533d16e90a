"""Learning curves by arm: the best validation score so far, over steps and seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from adalayers.results.study_file import RequestRecord
from adalayers.tasks.metrics import bounds
from reports.tables.arms import summary
from reports.tables.convergence import BestSoFar

STEPS = 60
"""Most steps of a curve."""

CURVE_COLUMNS = ["arm", "step", "mean", "low", "high", "n"]


def learning_curves(best: BestSoFar, request: RequestRecord) -> pd.DataFrame:
    """A row per arm and step: mean best validation score so far over its n seeds, with its t interval.

    The best so far is what a trial would hand over if it ended there, so one that stopped for want of
    patience keeps its own, and the same seeds count at every step; a step counts from where all of an
    arm's seeds have been evaluated. At most `STEPS`, evenly taken, are kept of a long history.
    """
    limits, rows = bounds(request.metric), []
    for arm in (arm.name for arm in request.arms if arm.name in best.curves):
        curves = best.curves[arm].values()
        steps = np.unique(np.concatenate([own for own, _ in curves]))
        steps = steps[steps >= max(own[0] for own, _ in curves)]
        thinned = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), STEPS)).round().astype(int))
        for step in steps[thinned]:
            values = [scores[np.searchsorted(own, step, side="right") - 1] for own, scores in curves]
            rows.append({"arm": arm, "step": step, **summary(values, limits=limits)})
    return pd.DataFrame(rows, columns=CURVE_COLUMNS)
