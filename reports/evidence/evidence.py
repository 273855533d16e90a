"""What the parts of a report share: tables, claims and settings, each computed once, when first needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Any

import pandas as pd

from adalayers.results.interim_analyses import CROSSED, PLANNED, InterimAnalysis
from adalayers.results.measures import read_shared
from adalayers.results.study_file import EnvironmentRecord, Factor, RequestRecord
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.metrics import RankMetric, bounds, metric
from reports import names
from reports.evidence import claims as claiming
from reports.evidence import omnibus, resampling
from reports.reading.factors import column, in_order, levels
from reports.reading.frames import numbers, records, searched, texts
from reports.reading.load import Loaded
from reports.reading.space import Domain, domains
from reports.tables import arms as tables
from reports.tables import convergence, costs, importances, mix, rates
from reports.tables.convergence import BestSoFar
from reports.words import SPLITS, AxisLabel, label

EVALUATION_COLUMNS = ["trial_id", "split", "variant", "metric", "value"]


once = lru_cache(maxsize=4)
"""Decorator: compute what is made of evidence once, for both pages ask for it."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The tables behind one report, named as the functions that make them, and its claims."""

    loaded: Loaded

    @property
    def request(self) -> RequestRecord:
        return self.loaded.study.request

    @property
    def environment(self) -> EnvironmentRecord:
        return self.loaded.study.environment

    @property
    def baseline(self) -> float | None:
        """The trivial model's score on validation."""
        return self.environment.dataset.baseline.get("val")

    @property
    def trials(self) -> pd.DataFrame:
        return self.loaded.trials

    # Scores and claims

    @cached_property
    def split(self) -> str:
        return tables.score_split(self.trials, self.request)

    @property
    def split_name(self) -> str:
        return SPLITS[self.split]

    @property
    def scored(self) -> AxisLabel:
        """What axes call the score that arms are compared by: "test accuracy (share correct, 0 to 1)"."""
        return label(f"{self.split}/{self.request.metric}")

    @cached_property
    def arms(self) -> pd.DataFrame:
        return tables.arms(self.trials, self.request)

    @cached_property
    def core(self) -> pd.DataFrame:
        """The cells of the factorial core: the arms in it that have all factors, sorted by them."""
        factors = self.request.factors
        rows = self.arms[self.arms["role"] == "core"].dropna(subset=[column(one.name) for one in factors])
        return in_order(rows, factors).reset_index(drop=True) if factors else rows.iloc[:0]

    @cached_property
    def grid_factors(self) -> tuple[Factor, ...]:
        """The factors in which cells of the core differ, where there are several: a page shows them as a grid."""
        varied = [one for one in self.request.factors if len(levels(self.core[column(one.name)])) > 1]
        return tuple(varied) if len(varied) > 1 else ()

    @cached_property
    def scores(self) -> dict[str, dict[int, float]]:
        """Arm -> its scores by seed, on the split that arms are compared on."""
        return tables.values(self.trials, f"{self.split}/{self.request.metric}")

    @cached_property
    def learned_nothing(self) -> list[str]:
        """Arms that on at least half of their seeds give one answer to all examples, or score exactly 0.

        What ranks examples may rank them well and still give one answer.
        """
        rows, predictions = tables.confirmed(self.trials), self.loaded.predictions
        ranks = isinstance(metric(self.request.metric), RankMetric)
        alike = [] if ranks else tables.one_answer(predictions, list(rows["trial_id"]), self.split)
        nothing = rows["trial_id"].isin(alike)
        if (limits := bounds(self.request.metric)) is not None and limits[1] > 0:
            nothing |= numbers(rows, f"{self.split}/{self.request.metric}") == 0
        share = nothing.groupby(rows["arm"]).mean()
        return [arm for arm in self.scores if share[arm] >= 0.5]

    @cached_property
    def family(self) -> claiming.Family:
        """What comparisons of the score rest on."""
        lost = tables.without_score(self.trials, f"{self.split}/{self.request.metric}")
        return claiming.Family(lambda _: self.scores, self.request.smallest_effect, lost, self.answers)

    @cached_property
    def over_seeds(self) -> list[claiming.Claim]:
        """The claims, without the interval over examples too, which decides nothing."""
        metric, split = self.request.metric, self.split
        named = [claiming.Claim(**vars(one), metric=metric, split=split) for one in self.request.comparisons]
        return self.family.claims(named, self.analyses, self.error)

    @cached_property
    def error(self) -> float:
        """The error of all planned analyses."""
        return CROSSED if omnibus.crossed(self.request)[0] else PLANNED

    @cached_property
    def omnibus(self) -> list[omnibus.Omnibus]:
        """Which factors matter as wholes, where a study crosses them completely."""
        return omnibus.omnibus(self.request, self.scores, self.split, self.analyses)

    @cached_property
    def resampled(self) -> tuple[dict[claiming.Key, resampling.Variance], list[str]]:
        """Key of a claim -> its variances over draws of test examples; and why claims lack them."""
        compared = {claim.key: (claim.weights, claim.values) for claim in self.over_seeds}
        return resampling.example_variances(self.loaded, self.split, compared, self.shared)

    @cached_property
    def shared(self) -> list[int]:
        """The indices of the examples that also stand in train; none where they are not known."""
        indices = read_shared(self.loaded.folder, self.split_name)
        known = self.environment.dataset.shared.get(self.split_name)
        return indices if len(indices) == known else []

    def alike(self, arms: Iterable[str]) -> dict[str, str]:
        """Return arm -> the first of these arms that predicts the very same on every seed, of those that follow one."""
        first: dict[tuple[tuple[int, str], ...], str] = {}
        copies = {}
        for arm in arms:
            hashes = sorted((seed, text) for (name, seed), text in self.answers.items() if name == arm)
            if hashes and first.setdefault(tuple(hashes), arm) != arm:
                copies[arm] = first[tuple(hashes)]
        return copies

    @cached_property
    def answers(self) -> claiming.PredictionHashes:
        """What stands for the predictions of each arm and seed."""
        return claiming.prediction_hashes(self.trials)

    @cached_property
    def example_variances(self) -> dict[claiming.Key, float]:
        """Key of a claim -> the variance of its difference over draws of examples, where that can be had."""
        searched = {arm.name for arm in self.request.arms if arm.role in ("best", "tuned")}
        of_best = {claim.key for claim in self.over_seeds if claim.arms & searched}
        # On validation a search chose its best on these very examples.
        left_out = of_best if self.split == "val" else set()
        return {key: found.mean for key, found in self.resampled[0].items() if key not in left_out}

    @cached_property
    def claims(self) -> list[claiming.Claim]:
        return claiming.with_examples(self.over_seeds, self.example_variances)

    @property
    def planned(self) -> list[claiming.Claim]:
        """The comparisons that were planned, and are judged."""
        return [claim for claim in self.claims if claim.primary]

    @cached_property
    def by_arm(self) -> dict[str, claiming.Claim]:
        """Arm -> its comparison with another arm, the first that is planned, as pages list them: the best arm first."""
        found: dict[str, claiming.Claim] = {}
        for claim in sorted(self.claims, key=lambda claim: not claim.primary):
            if arms := names.sides(claim, self.request):
                found.setdefault(arms[0], claim)
        order = self.arms.sort_values("mean", ascending=False, kind="stable")["arm"]
        return {arm: found[arm] for arm in order if arm in found}

    @property
    def others(self) -> list[claiming.Claim]:
        """The planned comparisons that `by_arm` has not: of levels, and more than one of an arm."""
        told = {claim.key for claim in self.by_arm.values()}
        return [claim for claim in self.planned if claim.key not in told]

    def sides_of(self, claim: claiming.Claim) -> tuple[float, float] | None:
        """Return the mean scores of the two sides of a comparison, over the seeds that all its arms have."""
        if not claim.values:
            return None
        means = {arm: fmean(self.scores[arm][seed] for seed in claim.values) for arm in claim.weights}
        return (
            sum(max(weight, 0.0) * means[arm] for arm, weight in claim.weights.items()),
            sum(max(-weight, 0.0) * means[arm] for arm, weight in claim.weights.items()),
        )

    @cached_property
    def best_so_far(self) -> BestSoFar:
        """The best validation score so far of every confirmed trial."""
        return convergence.best_so_far(self.trials, self.loaded.history, self.request.metric, self.baseline)

    @cached_property
    def contrasts(self) -> list[claiming.Claim]:
        return claiming.contrasts(self.trials, self.best_so_far, self.request, self.analyses, self.error)

    @cached_property
    def analyses(self) -> list[InterimAnalysis]:
        """All analyses of the confirmed trials, the last one last."""
        return [analysis for run in self.loaded.study.runs.history for analysis in run.analyses]

    # The search

    @property
    def searches(self) -> int:
        """How many searches there were: what pools their trials says nothing where each is of another component."""
        return searched(self.trials)["search"].nunique()

    @cached_property
    def rates(self) -> pd.DataFrame:
        return rates.rates(self.trials, self.request)

    @cached_property
    def space(self) -> list[Domain]:
        """The domains that were searched, of what a trial of the search uses."""
        rows = searched(self.trials)
        return [each for each in domains(self.loaded.study) if any(texts(rows, f"config/{each.name}"))]

    @cached_property
    def points(self) -> pd.DataFrame:
        return importances.search_points(self.trials, self.request, self.space)

    # Mix weights by layer

    @cached_property
    def mix_by_arm(self) -> pd.DataFrame:
        """The arms of a layer mix, with the entropy of p~ in nats (entropy_*) and live layers (live_*)."""
        table = self.arms[self.arms["fusion"].isin(["", tables.LAYER_MIX])].reset_index(drop=True)
        for name, prefix in (("mix/entropy", "entropy_"), ("mix/live_layers", "live_")):
            found = tables.values(self.trials, name)
            rows = [
                tables.summary(found.get(arm, {}).values(), prefix, (0.0, math.inf)) for arm in table["arm"]
            ]
            table = table.join(pd.DataFrame(rows, columns=tables.summary_names(prefix)))
        return table

    @property
    def grid(self) -> pd.DataFrame:
        """The cells of the core with their levels, mean scores, and the entropy of their mix where they have one, all
        of the same hidden states.
        """
        cells = {*self.core["arm"]}
        alike = len({arm.reads for arm in self.request.arms if arm.name in cells}) == 1
        entropy = self.mix_by_arm.set_index("arm")["entropy_mean"]
        return self.core.assign(entropy=self.core["arm"].map(entropy) if alike else math.nan)

    @cached_property
    def learned(self) -> list[str]:
        """The arms that learn their mix."""
        return tables.learning_arms(self.trials, self.request)

    @cached_property
    def learned_arm(self) -> str | None:
        """The best of `learned` on validation, the first of equals; None without any score."""
        scored = self.arms[self.arms["arm"].isin(self.learned)].dropna(subset=["val_mean"])
        return None if scored.empty else str(scored["arm"].iloc[scored["val_mean"].argmax()])

    @cached_property
    def profile(self) -> pd.DataFrame:
        backbone = self.environment.backbone
        depth = {"encoder": backbone.layers, **{stream.name: stream.layers for stream in backbone.streams}}
        return mix.profile(self.trials, self.loaded.history, depth, self.learned_arm)

    # Trained models, cut or at use

    @cached_property
    def variants(self) -> pd.DataFrame:
        """A row per arm and way to score its trained models: by what share of their own score, on its split, it is off.

        Columns: arm, variant, split, and mean, low, high (95% t interval, not corrected) over n seeds. Models that have
        learned nothing, which score no more than a trivial one and the smallest effect, are left out.
        """
        rows, metric = self.loaded.evaluations.reindex(columns=EVALUATION_COLUMNS), self.request.metric
        rows = rows[rows["metric"] == metric].merge(tables.confirmed(self.trials), on="trial_id")
        whole = pd.Series(float("nan"), index=rows.index)
        for split in rows["split"].unique():
            whole = whole.where(rows["split"] != split, numbers(rows, f"{split}/{metric}"))
        learned = whole > max(self.baseline or 0.0, 0.0) + (self.request.smallest_effect or 0.0)
        rows = rows.assign(change=rows["value"] / whole - 1)[learned].dropna(subset=["change"])
        return tables.summaries(rows, ["arm", "variant", "split"], "change")

    @cached_property
    def costs(self) -> pd.DataFrame:
        """What each arm costs."""
        return costs.by_arm(self.trials, self.request, self.split)

    # Predictions

    @property
    def tokens(self) -> bool:
        """Whether labels are tags of entities."""
        kind = KINDS.get(self.environment.dataset.kind)
        return kind is not None and kind.marks_entities

    def row_of(self, arm: str | None) -> Mapping[str, Any] | None:
        """Return the row of `tables.arms` of an arm."""
        rows = records(self.arms[self.arms["arm"] == arm])
        return rows[0] if rows else None
