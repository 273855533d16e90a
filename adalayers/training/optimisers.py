"""Optimisers and learning-rate schedules by name."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from adalayers.config import TrialConfig
from adalayers.models.model import FusionModel


def _not_compiled(kind: type[torch.optim.Adam]) -> type[torch.optim.Adam]:
    """Return an optimiser of torch's without what leads `torch.compile` around it.

    Those wrappers import the compiler, which takes two seconds of the start of every process that trains.
    """
    wrapped = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    own: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in wrapped}
    step = inspect.unwrap(kind.step)
    return type(kind.__name__, (kind,), {**own, "step": torch.no_grad()(step)})


_OPTIMISERS = {"adam": _not_compiled(torch.optim.Adam), "adamw": _not_compiled(torch.optim.AdamW)}


def build_optimiser(config: TrialConfig, model: FusionModel) -> torch.optim.Optimizer:
    """Return the optimiser of all that the model trains, group by group; a group without parameters is left out."""
    groups = [
        {
            "params": list(group.parameters),
            "lr": config.lr if group.lr is None else group.lr,
            "weight_decay": config.weight_decay if group.weight_decay is None else group.weight_decay,
        }
        for group in model.parameter_groups()
        if len(group.parameters)
    ]
    return _OPTIMISERS[config.optimiser](groups, lr=config.lr, fused=True)


def step_as_one(optimisers: Sequence[torch.optim.Optimizer]) -> None:
    """Take the steps that several optimisers of one kind would take, each of its own parameters at its own rates.

    Parameters without a gradient are passed over, as each optimiser does. What has the same rate takes one operation.
    """
    alike: dict[tuple[float, float], tuple[dict[str, Any], list[list[Tensor]]]] = {}
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            _, tensors = alike.setdefault(
                (group["lr"], group["weight_decay"]), (group, [[] for _ in range(6)])
            )
            optimiser._init_group(group, *tensors)  # type: ignore[attr-defined]  # fills in parameters and moments
        optimiser._opt_called = True  # type: ignore[attr-defined]  # schedules warn where it took no step
    for group, tensors in alike.values():
        beta1, beta2 = group["betas"]
        options = {
            name: group[name] for name in ("amsgrad", "lr", "weight_decay", "eps", "maximize", "fused")
        }
        options |= {"decoupled_weight_decay": group["decoupled_weight_decay"]}
        adam(*tensors, beta1=beta1, beta2=beta2, **options)  # type: ignore[arg-type]  # six lists


class Schedule:
    """How the learning rates change: told of every step and every evaluation.

    steps: of the whole training, for a schedule that counts them
    """

    def __init__(self, config: TrialConfig, optimiser: torch.optim.Optimizer, steps: int):
        self._by_step = config.schedule == "linear"
        self._schedule: Any  # their steps take different arguments
        if self._by_step:
            rising = max(1, round(config.warmup * steps))
            self._schedule = torch.optim.lr_scheduler.LambdaLR(
                optimiser,
                lambda step: min((step + 1) / rising, max(0.0, (steps - step) / max(1, steps - rising + 1))),
            )
        else:
            self._schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimiser,
                mode="max",
                factor=0.5,
                patience=config.lr_patience - 1,  # PyTorch counts the evaluations that it forgives
                threshold=0.0,
            )

    def after_step(self) -> None:
        """Note a step of the optimiser."""
        if self._by_step:
            self._schedule.step()

    def after_evaluation(self, score: float) -> None:
        """Note the score of an evaluation on validation; higher is better."""
        if not self._by_step:
            self._schedule.step(score)

    def state_dict(self) -> dict[str, Any]:
        """Return where the schedule stands, in types that a checkpoint may hold."""
        state: dict[str, Any] = self._schedule.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where a schedule of the same kind stood."""
        self._schedule.load_state_dict(state)
