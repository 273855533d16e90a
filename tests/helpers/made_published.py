"""Made-up studies whose arms have published scores next to them."""

import dataclasses
from typing import Any

from adalayers.presets import Published
from tests.helpers.made_up import CONTROL, MadeUp

CLASSES = {"LOC": 0.915, "PER": 0.915}


def published(made: MadeUp, **changes: Any) -> Published:
    """Return what was published for the control, of a run that this study repeats but for `changes`."""
    on = made.study["environment"]
    same = Published(
        arm=CONTROL,
        source="A thesis, figure 11",
        base_model="minilm",
        layers=6,
        width=384,
        dataset=on["dataset"]["name"],
        metric="f1" if made.tokens else "accuracy",
        score=0.836,
        selects=made.metric,
        parameters=1.59e6,
        recomputed=1_589_658,
        examples={name: on["dataset"]["examples"][name] for name in ("train", "test")},
        max_length=256,
        seeds=made.seeds,
        precision="float32",
        states="layers 1 to 6",
        states_here="layers 1 to 6",
        config={"alpha": 1},
        classes=CLASSES if made.tokens else {},
    )
    return dataclasses.replace(same, **changes)


def with_published(made: MadeUp, *records: Published) -> MadeUp:
    """Put records, or that of the control, into a study."""
    found = records or (published(made),)
    made.study["request"]["published"] = [dataclasses.asdict(record) for record in found]
    return made
