"""Which trial comes next: the search's suggestions, then every confirmed arm over the paired seeds.

The agenda knows Optuna, the record and the plan; Ray's loop asks it through `tuning.searcher`. All of its state
is rebuilt from the record, so a study that was stopped, or is given more trials or seeds, goes on from its rows.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from ray.tune.search.optuna import OptunaSearch

from adalayers.comparisons import block_end
from adalayers.config import TrialConfig, with_overrides
from adalayers.data.trial_data import TrialData
from adalayers.results.record import StudyRecord
from adalayers.study import SEARCH_BEST, ConfirmedArm, Plan, merge, trial_id
from adalayers.tuning.account import Look

DUPLICATES = 50
"""Suggestions in a row that only repeat known trials, after which a search space counts as exhausted."""


@dataclass(frozen=True)
class Request:
    """A trial to run."""

    trial_id: str
    stage: str
    arm: str
    seed: int
    config: TrialConfig


class Agenda:
    """The trials of a study in order.

    shape, about: of `TrialData`, which with configuration and seed identify a trial
    trials:      size of the search; seeds: confirmations run with seeds seed + 1 .. seed + seeds
    undecided:   returns the arms that need more seeds, once an analysis is made: the study then goes on block by
                 block until there are none; None: every arm runs with all seeds
    looks:       the analyses of earlier runs
    """

    def __init__(
        self,
        plan: Plan,
        record: StudyRecord,
        data: TrialData,
        *,
        search: str,
        trials: int,
        seeds: int,
        seed: int,
        undecided: Callable[[], Collection[str]] | None = None,
        looks: Sequence[Look] = (),
    ):
        self.plan, self.record = plan, record
        self.shape = data.shape
        self._about = data.about
        self.search, self.trials, self.seeds, self.seed = search, trials, seeds, seed
        self.arms = list(plan.arms)
        self.dropped = list(plan.dropped)
        self.notes: list[str] = []
        self.distributions = OptunaSearch.convert_search_space(plan.space.domains)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna = optuna.create_study(direction="maximize")
        self._asked: dict[str, optuna.trial.Trial] = {}
        self._searched: set[str] = set()
        self._begun: set[str] = set()
        self._running: set[str] = set()
        self._undecided, self._looks = undecided, list[Look](looks)
        self._before = len(looks)
        self._wanted: frozenset[str] | None = None
        self._exhausted = self._best_known = False
        self._replay()
        self._resumed = [row for row in self._rows("search") if not record.finished(row["trial_id"])]
        self._points = self._initial_points()
        self._confirmations = self._confirm()
        if not self._resumed and len(self._searched) >= trials:
            self._settle_best()

    def total(self) -> int:
        """Return the number of trials that the study has when it is done, as known now."""
        best = 1 if self.trials and not self._best_known else 0
        searched = len(self._searched) if self._exhausted else max(self.trials, len(self._searched))
        return searched + sum(1 for _ in self._confirmations_left(finished=True)) + self.seeds * best

    def remaining(self) -> int:
        """Return how many of them have not ended."""
        done = {row["trial_id"] for row in self._rows("search") if self._ended(row["trial_id"])}
        best = self.seeds if self.trials and not self._best_known else 0
        searched = len(self._searched) if self._exhausted else max(self.trials, len(self._searched))
        left = sum(1 for request in self._confirmations_left() if not self._ended(request.trial_id))
        return max(0, searched - len(done)) + left + best

    def next(self) -> Request | str:
        """Return the next trial to run, "wait" while others must end first, or "done"."""
        request = self._next_search() or self._next_confirmation()
        if isinstance(request, Request):
            self._begun.add(request.trial_id)
            self._running.add(request.trial_id)
        return request

    def ended(self, identity: str, status: str) -> None:
        """Note how a trial ended, and tell Optuna: a stopped trial is pruned, not complete."""
        self._running.discard(identity)
        if identity in self._asked:
            trial = self._asked.pop(identity)
            score = self.record.score(identity)
            if status == "completed" and score is not None:
                self._optuna.tell(trial, score)
            elif status == "stopped":
                for row in self._evaluations(identity):
                    trial.report(row["score"], int(row["epoch"]))
                self._optuna.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                self._optuna.tell(trial, state=optuna.trial.TrialState.FAIL)

    # Search

    def _next_search(self) -> Request | None:
        while self._resumed:
            row = self._resumed.pop(0)
            self._searched.add(row["trial_id"])
            values = self._searched_values(row)
            config = self._config(values)
            if self._identity(config, self.seed) == row["trial_id"]:
                self._asked[row["trial_id"]] = self._ask(values)
                return Request(row["trial_id"], "search", "", self.seed, config)
        for _ in range(DUPLICATES):
            if self._exhausted or len(self._searched) >= self.trials:
                return None
            if self.search == "grid" and not self._points:
                break
            trial = self._ask(self._points.pop(0) if self._points else {})
            config = self._config(trial.params)
            identity = self._identity(config, self.seed)
            if identity in self._searched:
                self._repeat(trial, identity)
                continue
            self._searched.add(identity)
            self._asked[identity] = trial
            return Request(identity, "search", "", self.seed, config)
        self._exhausted = True
        self.notes.append(
            f"The search space holds no more than {len(self._searched)} different configurations; "
            f"{self.trials} were asked for."
        )
        return None

    def _ask(self, point: dict[str, Any]) -> optuna.trial.Trial:
        number = len(self._optuna.trials)
        # A sampler seeded by the number of the trial: a search that goes on does not draw its first points again.
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        sampler = optuna.samplers.TPESampler if self.search == "optuna" else optuna.samplers.RandomSampler
        self._optuna.sampler = sampler(seed=seed)
        if point:
            self._optuna.enqueue_trial(point)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # a resumed or published point may lie outside the space
            return self._optuna.ask(self.distributions)

    def _repeat(self, trial: optuna.trial.Trial, identity: str) -> None:
        """Tell Optuna what is known of a suggestion that repeats a trial."""
        score = self.record.score(identity) if self._ended(identity) else None
        if score is not None and self.record.rows[identity]["status"] == "completed":
            self._optuna.tell(trial, score)
        else:
            self._optuna.tell(trial, state=optuna.trial.TrialState.FAIL)

    def _initial_points(self) -> list[dict[str, Any]]:
        if self.search == "grid":
            names = [name for name in self.plan.space.grid if name in self.distributions]
            points = [
                dict(zip(names, values, strict=True))
                for values in itertools.product(*(self.plan.space.grid[name] for name in names))
            ]
            # A fixed order that is not the nested one: a part of the grid then covers every factor.
            order = np.random.default_rng(0).permutation(len(points))
            if len(points) > self.trials:
                self.notes.append(
                    f"The grid has {len(points)} points; a part of {self.trials} was taken, in a fixed order."
                )
            points = [points[i] for i in order]
        else:
            points = [point for point in self.plan.first if point]
        return [
            point for point in points if self._identity(self._config(point), self.seed) not in self._searched
        ]

    def _replay(self) -> None:
        """Rebuild the Optuna study from the finished search rows."""
        for row in self._rows("search"):
            identity = row["trial_id"]
            if not self.record.finished(identity):
                continue
            self._searched.add(identity)
            params = self._searched_values(row)
            if len(params) < len(self.distributions):
                continue
            score = self.record.score(identity)
            complete = row["status"] == "completed" and score is not None
            state = optuna.trial.TrialState.COMPLETE if complete else optuna.trial.TrialState.FAIL
            reports = {}
            if row["status"] == "stopped":
                state = optuna.trial.TrialState.PRUNED
                reports = {int(point["epoch"]): point["score"] for point in self._evaluations(identity)}
            self._optuna.add_trial(
                optuna.trial.create_trial(
                    state=state,
                    value=score if complete else None,
                    params=params,
                    distributions=self.distributions,
                    intermediate_values=reports,
                )
            )

    def finished_searches(self) -> Iterator[tuple[str, list[dict[str, float]]]]:
        """Yield (trial_id, evaluations) of finished search trials, for a scheduler to rebuild its rungs."""
        for row in self._rows("search"):
            if self.record.finished(row["trial_id"]):
                yield row["trial_id"], self._evaluations(row["trial_id"])

    def _evaluations(self, identity: str) -> list[dict[str, float]]:
        """Return [{"epoch", "score"}] of a trial, the score the best so far."""
        history, column = self.record.history(identity), f"val/{self.record.metric}"
        if column not in history:
            return []
        scored = history.dropna(subset=[column])
        best = scored[column].cummax()
        return [
            {"epoch": float(epoch), "score": float(score)}
            for epoch, score in zip(scored["epoch"], best, strict=True)
        ]

    # Confirmation

    def _next_confirmation(self) -> Request | str:
        while (request := next(self._confirmations, None)) is None:
            if not self._best_known:
                if self._asked:  # search trials under way
                    return "wait"
                self._settle_best()
            elif self._undecided is None or self._block() is None:
                return "done"
            elif self._running:  # an analysis is of whole blocks
                return "wait"
            else:
                self._looks.append(self._look(self._block() or self.seeds))
                self._wanted = None
            self._confirmations = self._confirm()
        return request

    def _confirm(self) -> Iterator[Request]:
        for request in self._confirmations_left(self._block()):
            if request.trial_id not in self._begun and not self.record.finished(request.trial_id):
                yield request

    def _confirmations_left(self, most: int | None = None, *, finished: bool = False) -> Iterator[Request]:
        """Yield the trials of the arms that need seeds, up to `most` seeds or all.

        finished: those of other arms too, where they have ended
        """
        # Seed by seed: a study that is cut short has whole blocks of paired arms.
        for seed in self._seeds()[: self.seeds if most is None else most]:
            for arm in self.arms.copy():
                identity = self._identity(arm.config, seed)
                if self._needs(arm) or (finished and self._ended(identity)):
                    yield Request(identity, "confirm", arm.name, seed, arm.config)

    # Until decided

    def looks(self, *, closing: bool = False) -> list[Look]:
        """Return the analyses that this run has made.

        Without `undecided` there is one at most, made as the run closes: of all whole blocks there are.
        """
        made = self._looks[self._before :]
        if not closing or (self.trials and not self._best_known):
            return made
        whole, end = 0, 0
        while end < self.seeds:
            end = block_end(end, self.seeds)
            seeds = self._seeds()[:end]
            arms = [arm for arm in self.arms if self._needs(arm)]
            if not all(self._ended(self._identity(arm.config, seed)) for arm in arms for seed in seeds):
                break
            whole = end
        last = max((look.after for look in self._looks), default=0)
        if self._undecided is not None:
            whole = (
                last  # its blocks were analysed as they ended; failed trials may have been run again since
            )
        look = self._look(whole)
        known = self._looks[-1].covered if self._looks else {}
        new = any(set(seeds) - set(known.get(arm, [])) for arm, seeds in look.covered.items())
        return [*made, look] if whole >= max(1, last) and new else made

    def _look(self, after: int) -> Look:
        """Return an analysis of what has completed of the first `after` seeds."""
        covered: dict[str, list[int]] = {arm.name: [] for arm in self.arms}
        for row in self._rows("confirm"):
            if row["status"] == "completed" and int(row["seed"]) <= self.seed + after:
                covered.setdefault(row["arm"], []).append(int(row["seed"]))
        return Look(after, {arm: sorted(seeds) for arm, seeds in covered.items()})

    def _block(self) -> int | None:
        """Return up to how many seeds arms run before the next analysis; None where none is to come."""
        last = max((look.after for look in self._looks), default=0)
        if self._undecided is None:
            return self.seeds
        return block_end(last, self.seeds) if last < self.seeds and self._wanted_arms() else None

    def _needs(self, arm: ConfirmedArm) -> bool:
        wanted = self._wanted_arms()
        return wanted is None or arm.name in wanted

    def _wanted_arms(self) -> frozenset[str] | None:
        """Return the arms that need more seeds; None: all."""
        if self._undecided is None:
            return None
        if self._wanted is None:
            if not self._looks or not self._best_known:
                return frozenset(arm.name for arm in self.arms)
            self._wanted = frozenset(self._undecided())
        return self._wanted

    def _settle_best(self) -> None:
        """Add the search's best to the arms, once the search has ended."""
        self._best_known, self._wanted = True, None
        if not self.trials:
            return
        arm = self._best_arm()
        if arm is None:
            self.dropped.append((SEARCH_BEST, "no trial of the search completed"))
        else:
            merge(self.arms, arm, self.shape)

    def _best_arm(self) -> ConfirmedArm | None:
        """Return the search's best as an arm; a best that changed as the search grew gets a name of its own."""
        best = self.record.best("search")
        if best is None:
            return None
        row = self.record.rows[best]
        config = self._config(self._searched_values(row))
        earlier = {
            row["arm"]: row["trial_id"] for row in self._rows("confirm") if row["arm"].startswith(SEARCH_BEST)
        }
        own = {self._identity(config, seed) for seed in self._seeds()}
        same = [
            row["arm"] for row in self._rows("confirm") if row["trial_id"] in own and row["arm"] in earlier
        ]
        name = same[0] if same else (f"{SEARCH_BEST}-{self.trials}" if earlier else SEARCH_BEST)
        return ConfirmedArm(name, "best", config)

    # Shared

    def has_run(self, arm: str) -> bool:
        """Whether there are confirmed trials of an arm."""
        return any(row["arm"] == arm for row in self._rows("confirm"))

    def _rows(self, stage: str) -> list[dict[str, Any]]:
        return [row for row in self.record.rows.values() if row["stage"] == stage]

    def _seeds(self) -> range:
        return range(self.seed + 1, self.seed + self.seeds + 1)

    def _ended(self, identity: str) -> bool:
        return identity in self.record.rows and self.record.rows[identity]["status"] not in ("unfinished",)

    def _config(self, values: dict[str, Any]) -> TrialConfig:
        return with_overrides(self.plan.base, values)

    def _searched_values(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the hyperparameters of the search space that a row holds."""
        return {name: row[f"config/{name}"] for name in self.distributions if f"config/{name}" in row}

    def _identity(self, config: TrialConfig, seed: int) -> str:
        return trial_id(config, self.shape, seed, self._about)

    def row(self, request: Request) -> dict[str, Any]:
        """Return the columns of `trials.csv` that are known before a trial runs."""
        config = request.config
        used = config.used(self.shape)
        subset = {"train_examples": config.train_examples} if config.train_examples else {}
        if subset:
            subset["draw"] = request.seed if config.draw is None else config.draw
        return {
            "stage": request.stage,
            "arm": request.arm,
            **{
                f"config/{name}": value
                for name, value in used.items()
                if name not in ("train_examples", "draw")
            },
            "seed": request.seed,
            "fusion": config.fusion,
            **subset,
        }

    def ray_config(self, request: Request) -> dict[str, Any]:
        """Return the trainable's configuration of a request."""
        return {
            "trial": request.config,
            "seed": request.seed,
            "trial_id": request.trial_id,
            "stage": request.stage,
            "work": self.record.work(request.trial_id).uri,
        }
