"""The cases of a study: one backbone with one dataset each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from adalayers.data.prepare import Prepared
from adalayers.data.trial_data import TrialData
from adalayers.results.files import PREFIXES
from adalayers.results.other_studies import OtherStudies, Wanted
from adalayers.results.study_file import EnvironmentRecord, RequestRecord, StudyFile
from adalayers.storage.folder import Folder
from adalayers.study import StudyPlan, trial_id
from adalayers.tuning.rates import at_rates


@dataclass(frozen=True, kw_only=True)
class Case:
    """A study on one backbone and dataset, before anything of it is computed.

    Attributes:
        request: What was asked for, its smallest effect known.
        before: The study as its folder holds it; of a new one, its id alone.
        gpu: Whether trials take a GPU where there is one.
    """

    prepared: Prepared
    plan: StudyPlan
    folder: Folder
    request: RequestRecord
    before: StudyFile
    gpu: bool

    def trained_elsewhere(self, environment: EnvironmentRecord) -> OtherStudies:
        """Return the trials that its arms want and other studies have trained, with the same code and machine."""
        prepared, request = self.prepared, self.request
        data = prepared.data("live")
        wanted = Wanted(
            ids={
                trial_id(config, prepared.shape, seed, data.provenance)
                for arm in self.plan.arms
                for config in at_rates(arm.config, request.rates, prepared.shape)
                for seed in request.confirmation_seeds
            },
            environment=environment,
            metric=data.metric,
            variants={variant.name for variant in self.plan.variants},
            gold=lambda: {
                prefix: _examples(data, name) for name, prefix in PREFIXES.items() if name in data.splits
            },
        )
        return OtherStudies(self.folder, case=f"{prepared.source.name}-{prepared.task.name}", wanted=wanted)


def _examples(data: TrialData, name: str) -> pd.DataFrame:
    """Return the index and label of a split's examples, as `predictions.parquet` has them."""
    split = data.splits[name]
    gold = data.gold(split)
    columns = data.kind.prediction_columns(gold, gold.labels, np.ones(len(gold.labels)))
    return pd.DataFrame({"index": split.index, "label": columns["label"]}).sort_values("index", kind="stable")
