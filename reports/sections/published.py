"""The published scores next to those of this study's arms, and in what the published runs were others."""

from __future__ import annotations

from adalayers.comparisons import PlannedArm
from adalayers.results.study_file import Published
from adalayers.tasks.metrics import bounds
from reports.evidence.evidence import Evidence
from reports.reading.load import as_text
from reports.section import INTERVAL, Section, Table, named, summary
from reports.tables import arms as by_arm
from reports.words import SPLITS, short


def section(evidence: Evidence) -> Section | None:
    if not evidence.request.published:
        return None
    arms = {name: arm for arm in evidence.request.arms for name in (*arm.aliases, arm.name)}
    pairs = [(arms[run.arm], run) for run in evidence.request.published if run.arm in arms]
    heads = ["arm", f"here, {INTERVAL}", "on", "published", "parameters, published", "recomputed", "source"]
    facts = [_facts(evidence, arm, run) for arm, run in pairs]
    differs = []
    for fact in dict.fromkeys(name for own in facts for name in own):
        sides = [own[fact] for own in facts if fact in own]
        if any(here != there for here, there in sides):
            differs.append([fact, *(" / ".join(dict.fromkeys(side)) for side in zip(*sides, strict=True))])
    scores = Table(heads, [_row(evidence, arm, run) for arm, run in pairs])
    return Section("Published results", [scores, Table(["what differs", "here", "published"], differs)])


def _row(evidence: Evidence, arm: PlannedArm, run: Published) -> list[object]:
    of_test = by_arm.values(evidence.trials, f"test/{run.metric}").get(arm.name)
    split = "test" if run.split == "test" and of_test else "val"
    scores = by_arm.values(evidence.trials, f"{split}/{run.metric}").get(arm.name, {}).values()
    here = summary(by_arm.summary(scores, limits=bounds(run.metric)))
    source = ": ".join(filter(None, (run.source, run.remark)))
    on = f"{SPLITS[split]} {short(run.metric)}"
    return [named(run.arm), here, on, run.score, f"{run.parameters / 1e6:.2f}M", run.recomputed, source]


def _facts(evidence: Evidence, arm: PlannedArm, run: Published) -> dict[str, tuple[str, str]]:
    """Return what an arm and its published run can differ in: (here, there)."""
    study = evidence.loaded.study
    backbone, dataset = study.environment.backbone, study.environment.dataset
    return {
        "base model": (backbone.name, run.base_model),
        "layers": (str(backbone.layers), str(run.layers)),
        "width": (str(backbone.width), str(run.width)),
        "dataset": (dataset.name, run.dataset),
        **{
            f"{split} examples": (f"{n:,}", f"{run.examples[split]:,}")
            for split, n in dataset.examples.items()
            if split in run.examples
        },
        "tokens of a text, at most": (str(study.request.data.max_length), str(run.max_length)),
        "hidden states mixed": (run.states_here, run.states),
        "score that selects": (short(evidence.request.metric), short(run.selects)),
        "precision": (
            "float32" if study.environment.device.startswith("cpu") else "mixed, bfloat16",
            run.precision,
        ),
        "seeds": (str(evidence.request.seeds), str(run.seeds)),
        **{
            name: (as_text(arm.config[name]), as_text(value))
            for name, value in run.config.items()
            if name in arm.config and name != "hidden_states" and arm.config[name] != value
        },
    }
