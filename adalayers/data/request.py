"""Which data a study is about, by name: nothing of it is looked for yet."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from adalayers.config import Precision


@dataclass(frozen=True)
class DataRequest:
    """Which data, seen through which backbone, as the flags of the same names say.

    metric: the score that selects; None: that of `metrics`, by kind of task, else the task's own
    """

    backbone: str
    dataset: str
    _: KW_ONLY
    data_dir: str | None = None
    text_column: str | None = None
    label_column: str | None = None
    metric: str | None = None
    metrics: tuple[tuple[str, str], ...] = ()
    train_examples: int | None = None
    eval_examples: int | None = None
    max_length: int = 256
    precision: Precision = "float16"
    seed: int = 0
