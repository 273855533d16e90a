"""A trial of a study, as the agenda orders it and a Ray worker runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adalayers.config import TrialConfig
from adalayers.study import Variant


@dataclass(frozen=True, kw_only=True)
class TrialJob:
    """A trial to run.

    Attributes:
        arm: The arm that it confirms, or that its search tunes; "" for none.
        search: The search that it belongs to; "" where the study has one, and for a confirmation.
        work: Address of the folder where the trial leaves what it did, known as it begins.
        variants: How else its best model is scored.
        case: Number of the study's case whose data it reads.
        alone: Whether no other trial may run in its program: it may be stopped, or decides what runs next.
    """

    trial_id: str
    stage: Literal["search", "confirm"]
    arm: str
    search: str = ""
    seed: int
    config: TrialConfig
    work: str = ""
    variants: tuple[Variant, ...] = ()
    case: int = 0
    alone: bool = False

    @property
    def batches(self) -> tuple[int | None, ...] | None:
        """What the batches that it reads follow from; None where no other trial reads them."""
        config = self.config
        if self.alone or config.base_model != "frozen":
            return None
        return self.seed, config.batch_size, config.train_examples, config.draw
