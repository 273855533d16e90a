"""Which trial comes next: the arms at their rates, the searches' suggestions, then every confirmed arm over its seeds.

The agenda knows its searches, the record and the plan; Ray's loop asks it through `tuning.searcher`. All of its state
is rebuilt from the record, so a study that was stopped, or is given more trials or seeds, goes on from its rows.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Sequence

from adalayers.comparisons import PlannedArm, crossing
from adalayers.config import TrialConfig
from adalayers.data.trial_data import TrialData
from adalayers.request import StudyRequest
from adalayers.results.interim_analyses import CROSSED, PLANNED, InterimAnalysis, next_analysis
from adalayers.results.record import StudyRecord
from adalayers.results.study_file import StudyFile
from adalayers.results.trial_row import TrialRow
from adalayers.study import ConfirmedArm, StudyPlan, merge, trial_id
from adalayers.tuning.job import TrialJob
from adalayers.tuning.rates import RateTrials
from adalayers.tuning.search import Search

logger = logging.getLogger(__name__)


class Agenda:
    """The trials of a study in order.

    Args:
        plan: What the study will run.
        record: Its rows.
        data: Its shape and fingerprints identify a trial, with configuration and seed.
        request: The size of each search, and how often arms are confirmed: with seeds seed + 1 .. seed + seeds.
        undecided: Returns the arms that need more seeds, once an analysis is made: these alone then run up to the next
            one. None: every arm runs with all seeds.
        factors: Names of what is under study: a core that crosses them completely spends part of its error otherwise.
        before: The study as earlier runs have left it: their analyses, and the bests of smaller searches.
        take: Takes a trial that is about to be confirmed from another study that has trained it; returns whether it
            could. The record then holds it.
    """

    def __init__(
        self,
        plan: StudyPlan,
        record: StudyRecord,
        data: TrialData,
        request: StudyRequest,
        *,
        undecided: Callable[[], Collection[str]] | None = None,
        factors: Sequence[str] = (),
        before: StudyFile = StudyFile(),  # noqa: B008  # frozen
        take: Callable[[TrialJob], bool] = lambda job: False,
    ):
        self.plan, self.record = plan, record
        self.shape, provenance = data.shape, data.provenance
        self.trials, self.seeds, self.seed = request.trials, request.seeds, request.seed
        self._seeds = request.confirmation_seeds

        @functools.cache
        def identify(config: TrialConfig, seed: int) -> str:
            return trial_id(config, self.shape, seed, provenance)

        self._identify = identify
        # Where arms are to be confirmed as tuned alone, they join once the searches have ended.
        self.arms = plan.known_arms(self.trials)
        self._rates = RateTrials(plan.arms, record, identify, request, self.shape)
        self.dropped = list(plan.dropped)
        self.searches = [Search(planned, record, identify, request, self.shape) for planned in plan.searches]
        self._queues: list[RateTrials | Search] = [self._rates, *self.searches]
        self._begun: set[str] = set()
        self._running: set[str] = set()
        self._postponed: TrialJob | None = None  # was asked for, and did not fit the group
        self._undecided, self._before, self._take = undecided, before, take
        self._analyses = [analysis for run in before.runs.history for analysis in run.analyses]
        self._earlier = len(self._analyses)
        self._error = CROSSED if self._crossed(factors) else PLANNED
        self._best_known = False
        self._order = self._in_order()
        self._arms_changed()
        if not self._rates.remaining():
            self._settle_rates()
            if not any(search.remaining() for search in self.searches):
                self._settle_best()

    @property
    def notes(self) -> list[str]:
        return list(dict.fromkeys(note for queue in self._queues for note in queue.notes))

    def total(self) -> int:
        """Return the number of trials that the study has when it is done, as known now."""
        searched = sum(queue.size for queue in self._queues)
        return searched + sum(1 for _ in self._confirmed_trials(ended=True)) + self._best_left()

    def remaining(self) -> int:
        """Return how many of them have not ended."""
        searched = sum(queue.remaining() for queue in self._queues)
        left = sum(not self.record.ended(identity) for identity, _, _ in self._confirmed_trials())
        return searched + left + self._best_left()

    def _best_left(self) -> int:
        """Return how many trials the arms that searches will give have, while these are not known."""
        return self.seeds * len(self.searches) if self.trials and not self._best_known else 0

    def next(self) -> TrialJob | str:
        """Return the next trial to run, "wait" while others must end first, or "done"."""
        job = next(self._order, "done")
        if isinstance(job, TrialJob):
            self._begun.add(job.trial_id)
            self._running.add(job.trial_id)
        return job

    def next_group(self, most: int, *, across_seeds: bool = False) -> list[TrialJob] | str:
        """Return trials to run in one program, "wait" while others must end first, or "done".

        They are the next trial and those directly after it that read the same batches. Of a group that was interrupted
        they are those that it had, in their places.

        Args:
            most: At most so many.
            across_seeds: Whether batches may be those of several seeds, of one size.
        """
        first, self._postponed = self._postponed or self.next(), None
        if isinstance(first, str):
            return first
        group = [first]

        def shared(job: TrialJob) -> tuple[object, ...]:
            before = self.record.rows.get(job.trial_id)
            return job.batches and job.batches[across_seeds:], before and before.found.get("group")

        while len(group) < most and first.batches is not None:
            following = self.next()
            if isinstance(following, str):  # it says so again
                break
            if shared(following) != shared(first):
                self._postponed = following
                break
            group.append(following)
        return group

    def waiting(self) -> int:
        """Return how many trials have neither ended nor been handed out."""
        return self.remaining() - len(self._running) + (self._postponed is not None)

    def ended(self, trial_id: str, status: str) -> None:
        """Note how a trial ended.

        Args:
            trial_id: Which one.
            status: As in `trials.csv`.
        """
        self._running.discard(trial_id)
        for search in self.searches:
            search.ended(trial_id, status)

    # Confirmation

    def _in_order(self) -> Iterator[TrialJob | str]:
        """Yield the trials as they are to run, and "wait" as long as others must end first."""
        rates_known = not self._rates.remaining()
        for queue in self._queues:
            yield from iter(queue.next, None)
        while self._rates.remaining():
            yield "wait"
        if not rates_known:
            self._settle_rates()
        if self._undecided is not None and self._last:
            # Which arms of an analysed study need seeds is known once the searches' best is.
            yield from self._until_best_known()
        yield from self._confirm()
        yield from self._until_best_known()
        yield from self._confirm()
        while self._undecided is not None and self._block():
            while self._running:  # an analysis is of all trials up to it
                yield "wait"
            if (analysis := self._next_analysis(self._analyses)) is None:
                return
            self._analyses.append(analysis)
            self._arms_changed()
            yield from self._confirm()

    def _until_best_known(self) -> Iterator[str]:
        while any(search.under_way for search in self.searches):
            yield "wait"
        if not self._best_known:
            self._settle_best()

    def _arms_changed(self) -> None:
        """Let arms, and which of them need seeds, be looked at again."""
        self._wanted: frozenset[str] | None = None
        # Seed by seed: a study that is cut short has whole blocks of paired arms.
        self._planned = [
            (self._identify(arm.config, seed), arm, seed) for seed in self._seeds for arm in self.arms
        ]

    def _confirm(self) -> Iterator[TrialJob]:
        for identity, arm, seed in self._confirmed_trials(self._block()):
            if identity in self._begun or self.record.finished(identity):
                continue
            job = TrialJob(
                trial_id=identity,
                stage="confirm",
                arm=arm.name,
                seed=seed,
                config=arm.config,
                variants=tuple(self.plan.variants),
            )
            if not self._take(job):
                yield job

    def _confirmed_trials(
        self, most: int | None = None, *, ended: bool = False
    ) -> Iterator[tuple[str, ConfirmedArm, int]]:
        """Yield id, arm and seed of the trials of the arms that need seeds, up to `most` seeds or all.

        ended: those of other arms too, where they have ended
        """
        wanted = self._wanted_arms()
        for identity, arm, seed in self._planned[: None if most is None else most * len(self.arms)]:
            if arm.name in wanted or (ended and self.record.ended(identity)):
                yield identity, arm, seed

    # Analyses

    def analyses(self, *, closing: bool = False) -> list[InterimAnalysis]:
        """Return the analyses that this run has made.

        Without `undecided` they are made as the run closes, once all trials up to them have ended; with it, those are
        made then that bring only arms that joined, or failed trials that have been run again.

        Args:
            closing: Whether the run has trained what it will.
        """
        made, all_known = list(self._analyses), not self.trials or self._best_known
        while closing and all_known and (analysis := self._next_analysis(made)) and _brings(analysis, made):
            if self._undecided is not None and analysis.after > self._last and not self._wanted_arms():
                break  # the study has ended before it
            before = self._confirmed_trials(analysis.after)
            if not all(self.record.ended(identity) for identity, _, _ in before):
                break
            made.append(analysis)
        return made[self._earlier :]

    def _crossed(self, factors: Sequence[str]) -> bool:
        """Whether the core crosses all levels of two factors or more."""
        core = [arm for arm in self.plan.arms if arm.role == "core"]
        cells = {arm.name: arm.planned(arm.config.used(self.shape)).levels for arm in core}
        return bool(crossing(cells, factors)[0])

    @property
    def _last(self) -> int:
        """After how many seeds the last analysis was made."""
        return max((analysis.after for analysis in self._analyses), default=0)

    def _next_analysis(self, made: Sequence[InterimAnalysis]) -> InterimAnalysis | None:
        """Return the analysis after those `made` in all runs, of what has completed or diverged by then."""
        until_decided = self._undecided is not None
        planned = next_analysis(made, self.seeds, until_decided=until_decided, error=self._error)
        if planned is None:
            return None
        covered: dict[str, list[int]] = {arm.name: [] for arm in self.arms}
        failed: dict[str, list[int]] = {}
        for row in sorted(self._confirmed(), key=lambda row: row.seed):
            if row.seed <= self.seed + planned.after and row.status in ("completed", "diverged", "failed"):
                (failed if row.status == "failed" else covered).setdefault(row.arm, []).append(row.seed)
        return dataclasses.replace(planned, covered=covered, failed=failed)

    def _block(self) -> int | None:
        """Return up to how many seeds arms run before the next analysis; None where none is to come."""
        if self._undecided is None:
            return self.seeds
        if self._last >= self.seeds or not self._wanted_arms():
            return None
        analysis = self._next_analysis(self._analyses)
        return analysis.after if analysis else self.seeds

    def _wanted_arms(self) -> frozenset[str]:
        """Return the arms that need more seeds."""
        arms = frozenset(arm.name for arm in self.arms)
        if self._undecided is None or not self._last or not self._best_known:
            return arms
        if self._wanted is None:
            self._wanted = frozenset(self._undecided())
            if self._begun and (decided := arms - self._wanted):
                logger.info(
                    f"decided after {self._last} seeds, no more trials of: {', '.join(sorted(decided))}"
                )
        return self._wanted

    def _settle_rates(self) -> None:
        """Give the arms the rates that they keep, once all have been tried; equal ones are one from here on."""
        arms, self.arms = self.arms, []
        for arm in arms:
            merge(self.arms, dataclasses.replace(arm, config=self._rates.chosen(arm)), self.shape)
        self._arms_changed()

    def _settle_best(self) -> None:
        """Add what the searches found best to the arms, once all have ended."""
        self._best_known = True
        for search in self.searches if self.trials else ():
            config = search.best()
            if config is None:
                self.dropped.append((search.planned.becomes, "no trial of the search completed"))
            else:
                tunes = (search.name,) if search.name else ()
                name = self._name(search.planned.becomes, tunes, config)
                arm = ConfirmedArm(name, search.planned.role, {}, config=config, tunes=tunes)
                merged = merge(self.arms, arm, self.shape)
                if merged != arm.name and self._begun:  # else no larger total has been said
                    logger.info(f"the search's best has the settings of {merged}: {self.seeds} trials fewer")
        self._arms_changed()

    def _name(self, name: str, tunes: tuple[str, ...], config: TrialConfig) -> str:
        """Return what the best of a search is called; one that changed as the search grew gets a name of its own."""
        names = {name, *(arm.name for arm in self.earlier_bests() if arm.tunes[:1] == tunes)}
        earlier = [row for row in self._confirmed() if row.arm in names]
        own = {self._identify(config, seed) for seed in self._seeds}
        same = [row.arm for row in earlier if row.trial_id in own]
        if same or not earlier:
            return same[0] if same else name
        free = (f"{name}-{number}" for number in itertools.count(self.trials))
        return next(new for new in free if all(row.arm != new for row in earlier))

    def earlier_bests(self) -> list[PlannedArm]:
        """Return what searches of earlier runs found best, and was confirmed."""
        confirmed = {row.arm for row in self._confirmed()}
        arms = self._before.request.arms
        return [arm for arm in arms if arm.role in ("best", "tuned") and arm.name in confirmed]

    # Shared

    def _confirmed(self) -> list[TrialRow]:
        return [row for row in self.record.rows.values() if row.stage == "confirm"]

    def row(self, job: TrialJob, group: str = "") -> TrialRow:
        """Return what is known of a trial before it runs; `group`: the one that it runs in, if any."""
        config = job.config
        used = config.used(self.shape)
        if config.train_examples:
            used["draw"] = job.seed if config.draw is None else config.draw
        return TrialRow(
            trial_id=job.trial_id,
            stage=job.stage,
            arm=job.arm,
            search=job.search,
            seed=job.seed,
            fusion=config.fusion,
            settings={name: value for name, value in used.items() if value is not None},
            found={"group": group} if group else {},
        )


def _brings(analysis: InterimAnalysis, made: Sequence[InterimAnalysis]) -> bool:
    """Whether an analysis has seeds, or judges arms, that those `made` before it have not."""
    judging = [*made[:1], *(one for one in made if one.extension)]
    judged = {arm for one in judging for arm in one.covered}
    known = made[-1].covered if made else {}
    return any(
        set(seeds) - set(known.get(arm, ())) or (seeds and analysis.extension and arm not in judged)
        for arm, seeds in analysis.covered.items()
    )
