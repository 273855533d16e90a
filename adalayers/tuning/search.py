"""One search of a study: what it suggests next, and what came of it. Optuna suggests; the record remembers."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from ray.tune.search.optuna import OptunaSearch

from adalayers.config import TrialConfig, hyperparameters, with_overrides
from adalayers.errors import BadInput, unknown
from adalayers.request import StudyRequest
from adalayers.results.record import StudyRecord
from adalayers.results.trial_row import TrialRow
from adalayers.schedulers import SCHEDULERS
from adalayers.states import Settings, Shape
from adalayers.storage.folder import Folder
from adalayers.study import PlannedSearch, Space
from adalayers.tuning.job import TrialJob

JOURNAL = "optuna.journal"
"""The searches of a study as a file of Optuna's: `optuna.load_study` and optuna-dashboard read it."""
DUPLICATES = 50
"""Suggestions in a row that only repeat known trials, after which a search space counts as exhausted."""

Identify = Callable[[TrialConfig, int], str]
"""A configuration and a seed -> the trial's id."""


class Search:
    """A search of `request.trials` configurations, rebuilt from the rows that the record holds of it.

    Args:
        planned: Its name, what it searches, and from which configuration.
        record: Of the whole study.
        identify: Gives trials their ids.
        request: How configurations are chosen, how many, and the search's seed.
        shape: Of the base model, whose last layer rows do not number.
    """

    def __init__(
        self,
        planned: PlannedSearch,
        record: StudyRecord,
        identify: Identify,
        request: StudyRequest,
        shape: Shape,
    ):
        self.planned, self.name, self.how, self.seed = planned, planned.name, request.search, request.seed
        self._record, self._identify, self._shape = record, identify, shape
        self._alone = self.how == "optuna" or SCHEDULERS[request.scheduler].stops(planned.base.epochs)
        self.trials = max(request.trials, planned.min_trials) if request.trials else 0
        self._most = planned.at_most(request.trials, request.search)
        self.notes = list(planned.notes) if self.trials else []
        self.distributions = OptunaSearch.convert_search_space(planned.space.domains)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna = optuna.create_study(direction="maximize")
        self.under_way: dict[str, optuna.trial.Trial] = {}
        self._seen: set[str] = set()
        self._exhausted = False
        self._replay()
        self._resumed = [row for row in self._rows() if not row.finished]
        self._points = self._initial_points()
        if self.how == "grid" and self.trials > len(self._seen) and not (self._points or self._resumed):
            self._exhaust()

    @property
    def size(self) -> int:
        """The number of trials that it has when it is done, as known now."""
        known = len(self._seen) + len(self._resumed)
        return known if self._exhausted else max(self._most, known)

    def remaining(self) -> int:
        """Return how many of its trials have not ended."""
        return max(0, self.size - sum(self._record.ended(row.trial_id) for row in self._rows()))

    def next(self) -> TrialJob | None:
        """Return the next trial, None where it has no more."""
        while self._resumed:
            row = self._resumed.pop(0)
            self._seen.add(row.trial_id)
            values = self._values(row)
            config = self._config(values)
            if self._identify(config, self.seed) == row.trial_id and self._has(values):
                self.under_way[row.trial_id] = self._ask(values)
                return self._job(row.trial_id, config)
        for _ in range(DUPLICATES):
            if self._exhausted or len(self._seen) >= self.trials:
                return None
            if self.how == "grid" and not self._points:
                break
            trial = self._ask(self._points.pop(0) if self._points else {})
            config = self._config(trial.params)
            trial_id = self._identify(config, self.seed)
            there = self._record.rows.get(trial_id)  # one of this search, of `--rates`, or of another search
            if there is not None or trial_id in self._seen:
                completed = there is not None and there.status == "completed"
                self._tell(trial, trial_id, "completed" if completed else "failed")
                continue
            self._seen.add(trial_id)
            self.under_way[trial_id] = trial
            return self._job(trial_id, config)
        self._exhaust()
        return None

    def _exhaust(self) -> None:
        self._exhausted = True
        self.notes.append(
            f"The search space{self._named()} holds no more than {len(self._seen)} different configurations; "
            f"{self.trials} were asked for."
        )

    def ended(self, trial_id: str, status: str) -> None:
        """Tell Optuna how a trial ended: a stopped trial is pruned, not complete.

        Args:
            trial_id: Which one; those of other searches are passed over.
            status: As in `trials.csv`.
        """
        if (trial := self.under_way.pop(trial_id, None)) is not None:
            self._tell(trial, trial_id, status)

    def _tell(self, trial: optuna.trial.Trial, trial_id: str, status: str) -> None:
        score = self._record.score(trial_id) if status == "completed" else None
        trial.set_user_attr("trial_id", trial_id)
        within = self.within(trial.params)
        if within and score is not None:
            self._optuna.tell(trial, score)
        elif within and status == "stopped":
            for epoch, score in self._evaluations(trial_id):
                trial.report(score, int(epoch))
            self._optuna.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            self._optuna.tell(trial, state=optuna.trial.TrialState.FAIL)

    def best(self) -> TrialConfig | None:
        """Return the best configuration on validation, None where no trial completed.

        Trials of `--rates` and of other searches count that are points of this search's space.
        """
        searched = [row for row in self._record.rows.values() if row.stage == "search"]
        points = {row.trial_id for row in searched if row.search == self.name or self._holds(row)}
        best = self._record.best(points)
        return None if best is None else self._config(self._values(self._record.rows[best]))

    def evaluated(self) -> list[tuple[str, list[tuple[float, float]]]]:
        """Return (trial_id, evaluations) of its trials so far, for a scheduler to rebuild its rungs.

        The last one of a trial that completed is left out: no rung had it, for it ended the trial whatever it was.
        """
        return [
            (row.trial_id, self._evaluations(row.trial_id)[: -1 if row.status == "completed" else None])
            for row in self._rows()
        ]

    def optuna_trials(self) -> list[optuna.trial.FrozenTrial]:
        """Return what Optuna knows of the trials that have ended, each with its id as a user attribute."""
        return [trial for trial in self._optuna.get_trials(deepcopy=False) if trial.state.is_finished()]

    def _job(self, trial_id: str, config: TrialConfig) -> TrialJob:
        return TrialJob(
            trial_id=trial_id,
            stage="search",
            arm=self.name,
            search=self.name,
            seed=self.seed,
            config=config,
            alone=self._alone,
        )

    def _ask(self, point: Settings) -> optuna.trial.Trial:
        number = len(self._optuna.get_trials(deepcopy=False))
        # A sampler seeded by the number of the trial: a search that goes on does not draw its first points again.
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        sampler = optuna.samplers.TPESampler if self.how == "optuna" else optuna.samplers.RandomSampler
        self._optuna.sampler = sampler(seed=seed)
        if point:
            self._optuna.enqueue_trial(point)
        with warnings.catch_warnings():  # a resumed or published point may lie outside the space
            warnings.simplefilter("ignore", UserWarning)
            return self._optuna.ask(self.distributions)

    def _initial_points(self) -> list[Settings]:
        if self.how == "grid":
            points = self.planned.space.points
            # A fixed order that is not the nested one: a part of the grid then covers every factor.
            order = np.random.default_rng(0).permutation(len(points))
            if len(points) > self.trials:
                self.notes.append(
                    f"The grid{self._named()} has {len(points)} points; a part of {self.trials} was taken, in a fixed "
                    "order."
                )
            points = [points[i] for i in order]
            first = [point.items() for point in self.planned.first]
            points.sort(key=lambda point: not any(items <= point.items() for items in first))
        else:
            points = [point for point in self.planned.first if point]
        known = self._seen | self._record.rows.keys()
        return [point for point in points if self._identify(self._config(point), self.seed) not in known]

    def _replay(self) -> None:
        """Rebuild the Optuna study from the finished rows."""
        outside = 0
        for row in self._rows():
            if row.finished:
                self._seen.add(row.trial_id)
                if self._has(values := self._values(row)):
                    self._tell(self._ask(values), row.trial_id, row.status)
                else:
                    outside += 1
        if outside:
            self.notes.append(
                f"The search{self._named()} goes on without {outside} of its trials, whose values are no choices of "
                "its space any more."
            )

    def _has(self, values: Settings) -> bool:
        """Return whether values are among the choices of the space, of what has choices."""
        choices = {name: getattr(self.distributions[name], "choices", None) for name in values}
        return all(own is None or values[name] in own for name, own in choices.items())

    def within(self, params: Settings) -> bool:
        """Return whether the search space holds these values; a point that is tried first may lie outside."""
        return self._has(params) and all(
            distribution._contains(distribution.to_internal_repr(params[name]))
            for name, distribution in self.distributions.items()
        )

    def _evaluations(self, trial_id: str) -> list[tuple[float, float]]:
        """Return epoch and best score so far at each evaluation of a trial's first round."""
        history, column = self._record.history(trial_id), f"val/{self._record.metric}"
        if column not in history:
            return []
        scored = history.dropna(subset=[column])
        if "round" in scored:
            scored = scored[scored["round"].isna()]
        return list(zip(scored["epoch"], scored[column].cummax(), strict=True))

    def _rows(self) -> list[TrialRow]:
        rows = self._record.rows.values()
        return [row for row in rows if row.stage == "search" and row.search == self.name]

    def _holds(self, row: TrialRow) -> bool:
        values = self._values(row)
        if values.keys() != self.distributions.keys() or not self.within(values):
            return False
        return self._identify(self._config(values), self.seed) == row.trial_id

    def _config(self, values: Settings) -> TrialConfig:
        return with_overrides(self.planned.base, values)

    def _values(self, row: TrialRow) -> Settings:
        """Return the hyperparameters of the search space that a row uses."""
        return row.config.within(self.distributions, self._shape)

    def _named(self) -> str:
        return f" of {self.name}" if self.name else ""


def check_space(space: Space, how: str, study: str) -> None:
    """Raise `BadInput` where a search space of a study cannot be searched as it is written."""
    names, of = hyperparameters(), f"in the search space of {study}"
    for name, domain in space.domains.items():
        if name not in names:
            raise unknown("hyperparameter", name, names, hint=f"It stands {of}.")
        try:
            searched = OptunaSearch.convert_search_space({name: domain})
        except ValueError as error:
            raise BadInput(
                f"wanted a domain that Optuna searches for {name} {of}, got {domain!r} ({error}); write a choice, "
                "uniform, loguniform or randint of ray.tune"
            ) from error
        if not searched:
            raise BadInput(
                f"wanted a domain of ray.tune for {name} {of}, got {domain!r}; a value that stays goes to FIXED"
            )
        if how == "grid" and name not in space.grid:
            raise BadInput(f"wanted values of {name} {of} for --search grid, got none; add them to GRID")


def write_journal(folder: Folder, searches: Sequence[Search]) -> None:
    """Write `optuna.journal`: an Optuna study for each search, by its name, or the folder's where there is one search.

    Trials have the states and scores of `trials.csv` (stopped: pruned) and its id as the user attribute `trial_id`.
    """
    if not searches:
        return
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / JOURNAL
        storage = JournalStorage(JournalFileBackend(str(path)))
        for search in searches:
            name = search.name or folder.name
            study = optuna.create_study(storage=storage, study_name=name, direction="maximize")
            # Of a point outside the space, no storage takes the trial.
            study.add_trials([trial for trial in search.optuna_trials() if search.within(trial.params)])
        folder.write_bytes(JOURNAL, path.read_bytes())
