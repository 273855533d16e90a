"""What happened to a study over all its runs: what they added, and how often the test split was opened."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from adalayers.results import files as results
from adalayers.results.record import StudyRecord


@dataclass(frozen=True)
class InterimAnalysis:
    """An analysis: after how many seeds it was made; covered: arm -> the completed seeds that it is of."""

    after: int
    covered: dict[str, list[int]]


def analyses_of(before: Mapping[str, Any]) -> list[InterimAnalysis]:
    """Return the analyses that the runs of a study made, as its `study.json` says."""
    found = []
    for run in before.get("runs", {}).get("history", []):
        analyses = run.get("analyses", [])
        covered = run.get("covered") or [{}] * len(analyses)
        found += [InterimAnalysis(after, seeds) for after, seeds in zip(analyses, covered, strict=True)]
    return found


class Account:
    """What happened to a study over all its runs; `record` is its folder as this run found it."""

    def __init__(self, before: Mapping[str, Any], record: StudyRecord):
        earlier = before.get("runs", {})
        self._runs = [dict(run) for run in earlier.get("history", [])]
        self._held = _confirmed(record)
        self._began = time.monotonic()
        self._started = _now()
        self.concurrency = earlier.get("concurrency", 0)
        # A run killed between writing a trial's row and counting it: the row could be read all the same.
        missed = [row for row in self._held if row not in self._recorded()]
        if self._runs and len(self._held) > sum(run["confirmed"] for run in self._runs):
            self._runs[-1] = {**self._runs[-1], **_added(record, missed, self._runs[-1])}

    def runs(
        self,
        state: str,
        record: StudyRecord,
        on: Mapping[str, Any],
        arms: Iterable[str],
        *,
        planned: int,
        until_decided: bool,
        analyses: Iterable[InterimAnalysis],
        smoke: bool,
    ) -> dict[str, Any]:
        """Return the `runs` part of `study.json`.

        on: commit, dirty and machine of this run
        planned, until_decided, analyses: of this run, as in `Run`

        analyses:       analyses of the confirmed trials
        test_opened: runs in which confirmed trials scored the test split
        history:     every run: when, on which commit and machine, how many confirmed trials it added, how many of them
                     scored the test split, and the seeds it added to each arm
        """
        run = {
            "started": self._started,
            "ended": _now(),
            "seconds": round(time.monotonic() - self._began, 1),
            "confirmed": 0,
            "test_scored": 0,
            "seeds": {name: [] for name in arms},
            "planned": planned,
            "until_decided": until_decided,
            **on,
        }
        run |= _added(record, [row for row in _confirmed(record) if row not in self._held], run)
        made = list(analyses)
        run |= {
            "analyses": [analysis.after for analysis in made],
            "covered": [analysis.covered for analysis in made],
        }
        runs = [*self._runs, run]
        return {
            "started": runs[0]["started"],
            "ended": run["ended"],
            "state": state,
            "counts": counts(record),
            "wall_seconds": round(sum(run["seconds"] for run in runs), 1),
            "training_seconds": round(sum(float(row.get("seconds") or 0) for row in record.rows.values()), 1),
            "concurrency": self.concurrency,
            "analyses": max(1, sum(_analyses(run) for run in runs)),
            "test_opened": sum(1 for run in runs if run.get("test_scored", run["confirmed"])),
            "smoke": smoke,
            "history": runs,
        }

    def _recorded(self) -> set[tuple[str, int]]:
        """Return the arms and seeds that earlier runs counted."""
        return {
            (arm, seed) for run in self._runs for arm, seeds in run.get("seeds", {}).items() for seed in seeds
        }


def _confirmed(record: StudyRecord) -> dict[tuple[str, int], str]:
    """Return (arm, seed) -> trial_id of the completed confirmed trials."""
    return {
        (row["arm"], int(row["seed"])): trial_id
        for trial_id, row in record.rows.items()
        if row["stage"] == "confirm" and row["status"] == "completed"
    }


def _added(record: StudyRecord, rows: Iterable[tuple[str, int]], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run counts once it has also added these confirmed trials."""
    trials = _confirmed(record)
    seeds = {arm: list(held) for arm, held in run.get("seeds", {}).items()}
    rows = list(rows)
    for arm, seed in rows:
        seeds[arm] = sorted({*seeds.get(arm, []), seed})
    scored = sum(any(key.startswith("test/") for key in record.rows[trials[row]]) for row in rows)
    return {
        "confirmed": run["confirmed"] + len(rows),
        "test_scored": run.get("test_scored", run["confirmed"]) + scored,
        "seeds": seeds,
    }


def counts(record: StudyRecord) -> dict[str, dict[str, int]]:
    """Return stage -> status -> number of trials."""
    return results.counts({name: [row[name] for row in record.rows.values()] for name in ("stage", "status")})


def _analyses(run: Mapping[str, Any]) -> int:
    """Return how many analyses a run made; one that says nothing of them made one of all it had added."""
    return len(run["analyses"]) if "analyses" in run else int(run["confirmed"] > 0)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
