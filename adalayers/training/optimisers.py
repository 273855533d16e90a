"""Adam for several trials at once, and learning-rate schedules by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim.adam import adam

from adalayers.config import TrialConfig
from adalayers.models.model import FusionModel
from adalayers.tensors import ragged

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


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
    """Takes a step of several trials, each at its own rates (Adam: Kingma and Ba 2015).

    On a GPU the number of operations does not grow with the trials; a CPU, and a trial alone, are quicker with torch's.

    Args:
        trials:  Of one optimiser; they have the same groups of parameters, but for the last ones, which some may lack.
        stacked: Whether gradients are given in one; else of each parameter of a trial alone, where it has one.

    Attributes:
        values: [members, numbers], all parameters.
    """

    def __init__(self, trials: Sequence[Trained], *, stacked: bool):
        most = max(trials, key=lambda trial: len(trial.groups))
        like, self._stacked, self._decoupled = most.parameters[0].detach(), stacked, most.decoupled
        self.values = like.new_zeros(len(trials), sum(most.sizes))
        self._moments = like.new_zeros(2, *self.values.shape)
        self._steps = like.new_zeros(len(trials), len(most.sizes))
        for trial, *rows in zip(trials, self.values, self._moments.unbind(1), self._steps, strict=True):
            trial.move(*rows)
        self._sizes, self._groups = most.sizes, [n for n, *_ in most.groups]
        rates = [trial.groups + most.groups[len(trial.groups) :] for trial in trials]
        self._rates = [[each for n, *each in own for _ in range(n)] for own in rates]
        self._lr, self._decay = like.new_tensor(self._rates).unbind(-1)
        self._logs = like.new_tensor([math.log(BETA1), math.log(BETA2)]).view(2, 1, 1)
        self._state = [
            [
                *zip(
                    *(each[m].split(most.sizes, -1) for each in (self.values, *self._moments)),
                    own.unbind(),
                    strict=True,
                )
            ]
            for m, own in enumerate(self._steps)
        ]

    def step(
        self,
        gradients: Sequence[Tensor | None],
        factors: Sequence[float],
        factor: Float[Tensor, "members 1"],
        used: Float[Tensor, "members units"] | None = None,
    ) -> None:
        """Take a step; a parameter without a gradient stays as it is, its moments too.

        Args:
            gradients: [members, numbers] in one; or of each parameter, None where it has none.
            factors, factor: What the rates are multiplied by, here and on the device.
            used:      1 for the parameters of the second group, all of one size, that take part, else 0; None: all do.
        """
        if not self._stacked:
            self._torchs([gradients], factors)
        elif ragged.on_gpu(self.values.device):
            self._all_at_once(gradients[0], factor, used)  # type: ignore[arg-type]
        else:
            rows: list[list[Tensor | None]] = [[*own.split(self._sizes)] for own in gradients[0]]  # type: ignore[union-attr]
            first = self._groups[0]
            for row, takes in zip(rows, [] if used is None else used.tolist(), strict=False):
                row[first : first + len(takes)] = [
                    own if each else None for own, each in zip(row[first:], takes, strict=False)
                ]
            self._torchs(rows, factors)

    def _torchs(self, gradients: Sequence[Sequence[Tensor | None]], factors: Sequence[float]) -> None:
        """Take the step by torch's own operation, one for all that have the same rates."""
        alike: dict[tuple[float, float], list[tuple[Tensor, ...]]] = {}
        for own, state, rates, factor in zip(gradients, self._state, self._rates, factors, strict=True):
            for gradient, (value, *rest), (lr, decay) in zip(own, state, rates, strict=True):
                if gradient is not None:
                    alike.setdefault((lr * factor, decay), []).append((value, gradient.flatten(), *rest))
        for (lr, decay), some in alike.items():
            values, flat, mean, square, steps = map(list, zip(*some, strict=True))
            options = {"lr": lr, "weight_decay": decay, "decoupled_weight_decay": self._decoupled}
            options |= {"beta1": BETA1, "beta2": BETA2, "eps": EPS, "amsgrad": False, "maximize": False}
            adam(values, flat, mean, square, [], steps, fused=True, **options)  # type: ignore[arg-type]

    def _all_at_once(
        self, gradient: Float[Tensor, "members numbers"], factor: Tensor, used: Tensor | None
    ) -> None:
        """Take the step group by group, of all members at once."""
        alive = torch.ones_like(self._steps)
        if used is not None:
            alive[:, self._groups[0] : self._groups[0] + self._groups[1]] = used
        self._steps += alive
        short1, short2 = torch.expm1(self._logs * self._steps.clamp(min=1))  # beta^steps - 1
        rate = self._lr * factor * alive
        numbers = (rate, self._decay * alive, rate / short1, short2.neg().rsqrt(), alive)
        first = column = 0
        for n in self._groups:
            size = sum(self._sizes[first : first + n])
            units = n if used is not None and first == self._groups[0] else 1
            g, p, m, v = (
                each[:, column : column + size].view(len(each), units, -1)
                for each in (gradient, self.values, *self._moments)
            )
            rates, decay, scale, root, live = (each[:, first : first + units, None] for each in numbers)
            if self._decoupled:
                p.mul_(1 - rates * decay)
            else:
                g = torch.addcmul(g, p, decay)
            m.lerp_(g, (1 - BETA1) * live)
            v.lerp_(g * g, (1 - BETA2) * live)
            p.addcdiv_(m * scale, v.sqrt().mul_(root).add_(EPS))
            first, column = first + n, column + size


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
