"""Where the numbers come from, and the commands that repeat them."""

from __future__ import annotations

from dataclasses import dataclass

from adalayers.results.study_file import StudyFile
from reports.evidence.evidence import Evidence
from reports.parts.facts import facts, joined
from reports.parts.part import Part
from reports.words.text import several


@dataclass(frozen=True)
class Info:
    """seeds: stage -> the seeds of its trials."""

    study: StudyFile
    seeds: dict[str, tuple[int, ...]]


def info(evidence: Evidence) -> Info:
    seeds = {
        str(stage): tuple(int(seed) for seed in sorted(rows["seed"].dropna().unique()))
        for stage, rows in evidence.trials.groupby("stage", sort=True)
    }
    return Info(evidence.loaded.study, seeds)


def section(info: Info) -> list[str]:
    on, runs = info.study.environment, info.study.runs
    known = "with uncommitted changes" if on.git.dirty else "no uncommitted changes"
    changes = "changes unknown" if on.git.dirty is None else known
    seeds = {stage: several(map(str, of), 12) for stage, of in info.seeds.items()}
    times = {"wall time": runs.wall_seconds, "training, summed over trials": runs.training_seconds}
    machines = sorted({run.machine for run in runs.history if run.confirmed and run.machine})
    rows = {
        "commit": f"{on.git.commit}, {changes}" if on.git.commit else "",
        "packages": ", ".join(f"{name} {version}" for name, version in on.packages.items()),
        "Python, platform, device": ", ".join(filter(None, (on.python, on.platform, on.device))),
        # What stands above is of the last run, which may have added no trial.
        **(
            {"machines of confirmed trials": "; ".join(machines)}
            if machines and machines != [on.machine]
            else {}
        ),
        "seeds": "; ".join(f"{stage} {text}" for stage, text in seeds.items() if text),
        "started, ended": ", ".join(filter(None, (runs.started, runs.ended))),
        "seconds": joined(times),
        "trials at a time": str(runs.concurrency or ""),
    }
    commands = [info.study.request.command] if info.study.request.command else []
    return [
        facts(rows),
        "To repeat the study (first line), and to rebuild this page from its files alone (last line):",
        "\n".join(["```", *commands, "python -m reports <the folder of this page>", "```"]),
    ]


PART = Part("Provenance", info, section)
