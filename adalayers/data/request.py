"""Which data a study is about, by name: nothing of it is looked for yet."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from adalayers.config import ComputeType, Precision


@dataclass(frozen=True)
class DataRequest:
    """Which data, seen through which backbone, as the flags of the same names say.

    backbone_dtype: in what the backbone computes; auto: float32, bfloat16 where that does not fit the device
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
    backbone_dtype: ComputeType | Literal["auto"] = "auto"
    seed: int = 0
