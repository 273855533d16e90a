"""The agenda and the record, seen by Ray Tune as a searcher and a scheduler."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from adalayers.results.record import StudyRecord
from adalayers.tuning.agenda import Agenda


class StudySearcher(Searcher):
    """Hands Tune the trials of an agenda, and merges each into the record as it ends.

    stopped: ids of trials that the scheduler stopped, filled by the scheduler: Ray itself calls them complete
    """

    def __init__(
        self,
        agenda: Agenda,
        record: StudyRecord,
        *,
        threads: int,
        on_end: Callable[[dict[str, Any]], None],
    ):
        super().__init__(metric="best", mode="max")
        self.agenda, self.record, self.threads = agenda, record, threads
        self.on_end = on_end
        self.stopped: set[str] = set()
        self._trials: dict[str, str] = {}

    def suggest(self, trial_id: str) -> Any:
        """Return the next trial's configuration, None while others must end first, or `FINISHED`."""
        request = self.agenda.next()
        if isinstance(request, str):
            return None if request == "wait" else Searcher.FINISHED
        self._trials[trial_id] = request.trial_id
        self.record.begin(request.trial_id, self.agenda.row(request))
        return self.agenda.ray_config(request, self.threads)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Nothing: a trial's results reach the record through its own folder."""

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        identity = self._trials.pop(trial_id)
        if identity in self.stopped:
            row = self.record.end(identity, "stopped")
        elif error:
            row = self.record.end(
                identity, "failed", "the worker process died, twice: out of memory, or killed from outside"
            )
        else:
            row = self.record.end(identity)
        self.agenda.ended(identity, row["status"])
        self.on_end(row)

    def set_search_properties(self, metric: Any, mode: Any, config: Any, **spec: Any) -> bool:
        return True

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the results folder is the only state of a study."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing, as `save`."""

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles its parts for a restore that is never made from them


class SearchOnlyASHA(ASHAScheduler):
    """ASHA over the trials of the search; confirmations, and a trial's last evaluation, always go on.

    A trial that reaches its last epoch is finished, not stopped, whatever its rung says.
    """

    def __init__(self, agenda: Agenda, searcher: StudySearcher, *, epochs: int):
        self.grace, self.factor = max(1, epochs // 8), 3
        super().__init__(
            time_attr="epoch",
            metric="best",
            mode="max",
            max_t=epochs + 1,  # an evaluation at `epochs` is a trial's last and never comes here
            grace_period=self.grace,
            reduction_factor=self.factor,
        )
        self._stopped = searcher.stopped
        for identity, evaluations in agenda.finished_searches():
            trial: Any = SimpleNamespace(trial_id=f"replayed-{identity}")
            super().on_trial_add(None, trial)  # type: ignore[arg-type]
            for evaluation in evaluations:
                super().on_trial_result(
                    None,  # type: ignore[arg-type]
                    trial,
                    {"epoch": evaluation["epoch"], "best": evaluation["score"]},
                )

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        if trial.config["stage"] != "search" or result.get("last", True):
            return TrialScheduler.CONTINUE
        decision = super().on_trial_result(tune_controller, trial, result)
        if decision == TrialScheduler.STOP:
            self._stopped.add(trial.config["trial_id"])
        return decision

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """Nothing more to record: every rung was met on the way."""
        self._trial_info.pop(trial.trial_id, None)

    def set_search_properties(self, metric: Any, mode: Any, **spec: Any) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {}  # as the searcher's


def scheduler(name: str, agenda: Agenda, searcher: StudySearcher, *, epochs: int) -> FIFOScheduler:
    """Return the scheduler of that name: asha, or fifo, which never stops a trial."""
    return SearchOnlyASHA(agenda, searcher, epochs=epochs) if name == "asha" else FIFOScheduler()
