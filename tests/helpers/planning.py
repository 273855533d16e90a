"""What studies plan, on shapes without a backbone."""

from collections.abc import Mapping
from typing import Any

from adalayers.comparisons import PlannedArm
from adalayers.states import Shape
from adalayers.study import Design, Setting, Study, StudyPlan, base_config, plan

BARE = Study(name="made", question="Why?", design=Design(arms=lambda setting: ([], [])))
"""A study without arms."""


def setting_of(
    study: Study,
    shape: Shape,
    dataset: str = "conll2003",
    *,
    epochs: int | None = None,
    pool: int = 2000,
    own: Mapping[str, Any] | None = None,
    **fixed: Any,
) -> Setting:
    """Return where a study is planned; pool: how many training examples there are; own: its own flags."""
    epochs = epochs or study.defaults.sizes.get("epochs", 20)
    base = base_config(study.space(), fixed, epochs)
    classes = max(1, (shape.n_outputs - 1) // 2) if shape.per_token else shape.n_outputs
    return Setting(dataset, shape, fixed, base, pool, classes, own or {})


def planned(study: Study, setting: Setting) -> StudyPlan:
    """Return what the study plans there."""
    return plan(study, study.space(), setting)


def planned_arms(made: StudyPlan, shape: Shape) -> list[PlannedArm]:
    """Return the arms of a plan as comparisons know them."""
    return [arm.planned(arm.config.resolved(shape)) for arm in made.arms]
