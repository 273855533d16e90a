"""Adam for several trials at once, and learning-rate schedules by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.config import TrialConfig
from adalayers.models.model import FusionModel
from adalayers.tensors import ragged

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
CPU_NUMBERS, GPU_NUMBERS = 1 << 16, 1 << 26
"""Numbers that are updated at a time: on a CPU as many as its cache holds, on a GPU as memory has room for."""


class Trained:
    """What a trial trains: its parameters, one after the other, and where Adam stands with them.

    Attributes:
        groups:     (how many parameters, learning rate, weight decay) of each group.
        decoupled:  Whether weight decay is apart from the gradient's moments, as in AdamW.
        state:      moments [2, numbers], of the gradient and of its square; steps [parameters], how many each has
                    taken: one without a gradient takes none.
    """

    def __init__(self, config: TrialConfig, model: FusionModel):
        groups = [group for group in model.parameter_groups() if len(group.parameters)]
        self.parameters = [parameter for group in groups for parameter in group.parameters]
        self.sizes = [parameter.numel() for parameter in self.parameters]
        self.groups = [
            (
                len(group.parameters),
                config.lr if group.lr is None else group.lr,
                config.weight_decay if group.weight_decay is None else group.weight_decay,
            )
            for group in groups
        ]
        self.decoupled = config.optimiser == "adamw"
        self.state: dict[str, Tensor] = {}

    def move(self, values: Tensor, moments: Tensor, steps: Tensor) -> None:
        """Move all numbers into rows that are zero, and may be longer; the parameters become views of theirs."""
        numbers = sum(self.sizes)
        rows = {"moments": moments[:, :numbers], "steps": steps[: len(self.sizes)]}
        for name, former in self.state.items():
            rows[name].copy_(former)
        self.state = rows
        for parameter, row in zip(self.parameters, values[:numbers].split(self.sizes), strict=True):
            row.copy_(parameter.detach().flatten())
            parameter.data = row.view(parameter.shape)


class Adam:
    """Takes a step of several trials, each at its own rates, in operations whose number does not grow with them.

    Args:
        trials: Of one optimiser; they have the same groups of parameters, but for the last ones, which some may lack.
        units:  Number of the group of whose parameters, all of one size, a member may leave some out of a step.
        apart:  Whether gradients are given one by one, of a trial alone, and may be missing.

    Attributes:
        values: [members, numbers], all parameters.
    """

    def __init__(self, trials: Sequence[Trained], *, units: int | None = None, apart: bool = False):
        most = max(trials, key=lambda trial: len(trial.groups))
        like, self._apart, self._decoupled = most.parameters[0].detach(), apart, most.decoupled
        self.values = like.new_zeros(len(trials), sum(most.sizes))
        self._moments = like.new_zeros(2, *self.values.shape)
        self._steps = like.new_zeros(len(trials), len(most.sizes))
        for trial, *rows in zip(trials, self.values, self._moments.unbind(1), self._steps, strict=True):
            trial.move(*rows)
        groups = [trial.groups + most.groups[len(trial.groups) :] for trial in trials]
        rates = [[rates for n, *rates in own for _ in range(n)] for own in groups]
        self._lr, self._decay = like.new_tensor(rates).unbind(-1)
        self._logs = like.new_tensor([math.log(BETA1), math.log(BETA2)]).view(2, 1, 1)
        self._units, self._segments, first = range(0), [], 0
        for number, (n, *_) in enumerate(most.groups):
            own = range(first, first + n)
            self._units = own if number == units else self._units
            self._segments += [own[i : i + 1] for i in range(n)] if apart else [own]
            first += n
        self._sizes = [sum(most.sizes[own.start : own.stop]) for own in self._segments]

    def step(
        self,
        gradients: Sequence[Tensor | None],
        factor: Float[Tensor, "members 1"],
        used: Float[Tensor, "members units"] | None = None,
    ) -> None:
        """Take a step: Adam (Kingma and Ba 2015).

        Args:
            gradients: [members, numbers] in one; or of each parameter, None where it has none.
            factor:    What the rates are multiplied by.
            used:      1 for the units that take part, else 0; None: all do.
        """
        taking = [each is not None for each in gradients]
        if not self._apart:
            gradients = gradients[0].split(self._sizes, 1)  # type: ignore[union-attr]
        elif not all(taking):  # as torch's own optimisers: one without a gradient stays as it is
            self._steps += ragged.to_device(self._steps.new_tensor(taking, device="cpu"), self._steps.device)
        alive = torch.ones_like(self._steps) if used is not None else None
        if alive is not None:
            alive[:, self._units.start : self._units.stop] = used
        if all(taking):
            self._steps += 1 if alive is None else alive
        short1, short2 = torch.expm1(self._logs * self._steps.clamp(min=1))  # beta^steps - 1
        rate = self._lr * factor
        numbers = (rate, self._decay, rate / short1, short2.neg().rsqrt())
        tensors = [each.split(self._sizes, -1) for each in (self.values, *self._moments)]
        for own, gradient, *given in zip(self._segments, gradients, *tensors, strict=True):
            units = own if own == self._units else own[:1]
            if gradient is not None:
                flat = gradient.reshape(given[0].shape), *given
                self._update(
                    *(each.view(len(each), len(units), -1) for each in flat),
                    [each[:, units.start : units.stop, None] for each in numbers],
                    alive[:, units.start : units.stop, None]
                    if alive is not None and units == self._units
                    else None,
                )

    def _update(
        self,
        gradient: Float[Tensor, "members units each"],
        values: Float[Tensor, "members units each"],
        mean: Float[Tensor, "members units each"],
        square: Float[Tensor, "members units each"],
        numbers: Sequence[Float[Tensor, "members units 1"]],
        alive: Float[Tensor, "members units 1"] | None,
    ) -> None:
        """Update parameters and moments; numbers: rate, decay, -rate and root of the moments' corrections."""
        most = GPU_NUMBERS if ragged.on_gpu(values.device) else CPU_NUMBERS
        rate, decay, scale, root = numbers
        weight1, weight2 = 1 - BETA1, 1 - BETA2
        if alive is not None:
            rate, decay, scale = rate * alive, decay * alive, scale * alive
        pieces = (
            each.split(max(1, most // values[..., 0].numel()), 2) for each in (gradient, values, mean, square)
        )
        for g, p, m, v in zip(*pieces, strict=True):
            if self._decoupled:
                p.mul_(1 - rate * decay)
            else:
                g = torch.addcmul(g, p, decay)
            m.lerp_(g, weight1 if alive is None else weight1 * alive)
            v.lerp_(g * g, weight2 if alive is None else weight2 * alive)
            p.addcdiv_(m * scale, v.sqrt().mul_(root).add_(EPS))


class Schedule:
    """How the learning rates change: what they are multiplied by, told of every step and every evaluation.

    steps: of the whole training, for a schedule that counts them
    """

    def __init__(self, config: TrialConfig, steps: int):
        self._linear, self._patience = config.schedule == "linear", config.lr_patience
        self._steps, self._rising = steps, max(1, round(config.warmup * steps))
        self._state: dict[str, Any] = {"taken": 0, "best": -math.inf, "stale": 0, "halved": 0}

    def factor(self, later: int = 0) -> float:
        """Return what the rates of the next step are multiplied by, or of one so many steps later."""
        if not self._linear:
            return float(0.5 ** self._state["halved"])
        step = self._state["taken"] + later
        falling = (self._steps - step) / max(1, self._steps - self._rising + 1)
        return min((step + 1) / self._rising, max(0.0, falling))

    def after_steps(self, steps: int) -> None:
        """Note steps of the optimiser."""
        self._state["taken"] += steps

    def after_evaluation(self, score: float) -> None:
        """Note the score of an evaluation on validation; higher is better."""
        state = self._state
        state["stale"] += 1
        if score > state["best"]:
            state["best"], state["stale"] = score, 0
        if state["stale"] >= self._patience:
            state["stale"], state["halved"] = 0, state["halved"] + 1

    def state_dict(self) -> dict[str, Any]:
        """Return where the schedule stands, in types that a checkpoint may hold."""
        return dict(self._state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where a schedule of the same kind stood."""
        self._state = dict(state)
