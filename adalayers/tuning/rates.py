"""The learning rates that each arm tries before it is confirmed, and which it keeps (`--rates`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adalayers.config import TrialConfig, with_overrides
from adalayers.request import StudyRequest
from adalayers.results.files import RATES
from adalayers.results.record import StudyRecord
from adalayers.states import Shape
from adalayers.study import ConfirmedArm
from adalayers.tuning.job import TrialJob


def at_rates(config: TrialConfig, rates: Sequence[float], shape: Shape) -> list[TrialConfig]:
    """Return a configuration at each rate, or itself where there are none; the mix's own rate stays as it was."""
    own = config.resolved(shape)
    stays = {name: own[name] for name in ("mix_lr",) if name in own}
    return [with_overrides(config, {**stays, "lr": rate}) for rate in rates] or [config]


class RateTrials:
    """A trial of each arm at each rate, on the search's seed; all of its state is in the record's rows.

    An arm that has been confirmed keeps the rate that it was confirmed with.

    Args:
        arms: As they are without the rates.
        record: Of the whole study.
        identify: Gives a configuration and a seed the trial's id.
        request: The rates, none for arms that stay as they are, and the seeds.
        shape: Of the base model.

    Attributes:
        size: The number of its trials, those that have ended and those to come.
    """

    def __init__(
        self,
        arms: Sequence[ConfirmedArm],
        record: StudyRecord,
        identify: Callable[[TrialConfig, int], str],
        request: StudyRequest,
        shape: Shape,
    ):
        self._record = record
        self.notes: list[str] = []
        self._tried: dict[str, dict[str, TrialConfig]] = {}  # arm -> trial -> configuration
        self._kept: dict[str, TrialConfig] = {}
        self._to_run: dict[str, TrialJob] = {}  # two arms that differ in their rate alone try the same
        seed = request.seed
        for arm in arms if request.rates else ():
            configs = at_rates(arm.config, request.rates, shape)
            tried = self._tried[arm.name] = {identify(config, seed): config for config in configs}
            for config in reversed(configs):
                if any(identify(config, of_arm) in record.rows for of_arm in request.confirmation_seeds):
                    self._kept[arm.name] = config
            if arm.name in self._kept:
                continue
            for trial_id, config in tried.items():
                if not record.finished(trial_id) and trial_id not in self._to_run:
                    self._to_run[trial_id] = TrialJob(
                        trial_id=trial_id,
                        stage="search",
                        arm=arm.name,
                        search=RATES,
                        seed=seed,
                        config=config,
                    )
        self.size = len({trial_id for tried in self._tried.values() for trial_id in tried})
        self._following = iter(self._to_run.values())

    def remaining(self) -> int:
        """Return how many of its trials have not ended."""
        return sum(not self._record.ended(trial_id) for trial_id in self._to_run)

    def next(self) -> TrialJob | None:
        """Return the next trial, None where it has no more."""
        return next(self._following, None)

    def chosen(self, arm: ConfirmedArm) -> TrialConfig:
        """Return an arm's configuration at the rate that is best on validation, ties to the smallest trial id."""
        tried = self._tried.get(arm.name, {})
        best = self._record.best(tried)
        if tried and best is None and arm.name not in self._kept:
            self.notes.append(f"`{arm.name}` completed no trial of `--rates`: it has lr {arm.config.lr:g}.")
        return self._kept.get(arm.name) or (arm.config if best is None else tried[best])
