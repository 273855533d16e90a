"""`study.json` of a study whose arms are each compared with the first."""

from collections.abc import Sequence

from adalayers.comparisons import PlannedArm, pair
from adalayers.results.study_file import DatasetRecord, EnvironmentRecord, RequestRecord, StudyFile


def study_of(
    arms: Sequence[PlannedArm], metric: str, *, smallest_effect: float, baseline: float
) -> StudyFile:
    """Return it as it stands before the first run; baseline: the trivial model's score on both splits."""
    control = arms[0].name
    return StudyFile(
        request=RequestRecord(
            metric=metric,
            control=control,
            smallest_effect=smallest_effect,
            arms=tuple(arms),
            comparisons=tuple(pair(arm.name, control) for arm in arms[1:]),
        ),
        environment=EnvironmentRecord(dataset=DatasetRecord(baseline={"val": baseline, "test": baseline})),
    )
