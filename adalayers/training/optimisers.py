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
        parameters: In the order of `FusionModel.parameter_groups`.
        rates:      (learning rate, weight decay) of each.
        decoupled:  Whether weight decay is apart from the gradient's moments, as in AdamW.
        moments:    [2, numbers], of the gradient and of its square.
        steps:      [parameters], how many each has taken: one without a gradient takes none.
    """

    def __init__(self, config: TrialConfig, model: FusionModel):
        groups = [group for group in model.parameter_groups() if len(group.parameters)]
        self.parameters = [parameter for group in groups for parameter in group.parameters]
        self.rates = [
            (
                config.lr if group.lr is None else group.lr,
                config.weight_decay if group.weight_decay is None else group.weight_decay,
            )
            for group in groups
            for _ in group.parameters
        ]
        self.decoupled = config.optimiser == "adamw"
        self.sizes = [parameter.numel() for parameter in self.parameters]
        self.moments: Tensor | None = None
        self.steps: Tensor | None = None

    def move(self, values: Tensor, moments: Tensor, steps: Tensor) -> None:
        """Move all numbers into rows that are zero, which may be longer; the parameters become views of theirs."""
        for parameter, own in zip(
            self.parameters, values[: sum(self.sizes)].split(self.sizes), strict=True
        ):
            own.copy_(parameter.detach().flatten())
            parameter.data = own.view(parameter.shape)
        moments, steps = moments[:, : sum(self.sizes)], steps[: len(self.sizes)]
        if self.moments is not None and self.steps is not None:
            moments.copy_(self.moments)
            steps.copy_(self.steps)
        self.moments, self.steps = moments, steps

    def state_dict(self) -> dict[str, Tensor | None]:
        """Return what a checkpoint holds next to the parameters."""
        return {"moments": self.moments, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Tensor | None]) -> None:
        """Go on from where a trial stood that trains as many numbers. Raises `ValueError` for another one."""
        moments = state["moments"]
        if moments is not None and moments.shape[1] != sum(self.sizes):
            raise ValueError(f"wanted moments of {sum(self.sizes)} numbers, got those of {moments.shape[1]}")
        self.moments, self.steps = moments, state["steps"]


class Adam:
    """Takes a step of several trials, each at its own rates, in operations whose number does not grow with them.

    Args:
        trials: Of one optimiser; they have the same parameters, but for the last ones, which some may lack.
        units:  Which parameters, of one size and next to each other, a member may leave out of a step.

    Attributes:
        values: [members, numbers], all parameters.
    """

    def __init__(self, trials: Sequence[Trained], units: range = range(0)):
        most = max(trials, key=lambda trial: len(trial.sizes))
        self._sizes, self._units, self._decoupled = most.sizes, units, most.decoupled
        members, parameters, like = len(trials), len(most.sizes), most.parameters[0].detach()
        self.values = like.new_zeros(members, sum(self._sizes))
        self._moments = like.new_zeros(2, members, sum(self._sizes))
        self._steps = like.new_zeros(members, parameters)
        for trial, *rows in zip(trials, self.values, self._moments.unbind(1), self._steps, strict=True):
            trial.move(*rows)
        rates = [trial.rates + most.rates[len(trial.rates) :] for trial in trials]
        self._rates = torch.tensor(rates, dtype=like.dtype, device=like.device).unbind(-1)
        self._logs = like.new_tensor([[[math.log(BETA1)]], [[math.log(BETA2)]]])
        taken = [trial.steps.tolist() for trial in trials if trial.steps is not None]
        self._own = [
            [(rates[m][j], taken[m][j : j + 1] or taken[0][:1]) for m in range(members)]
            for j in range(parameters)
        ]
        self._segments = self._merged(apart=False)
        self._all = torch.ones_like(self._steps)

    def _merged(self, *, apart: bool) -> list[range]:
        """Return runs of parameters that are updated as one; apart: each by itself."""
        runs: list[range] = []
        most = GPU_NUMBERS // len(self.values)
        for j, own in enumerate(self._own):
            unit = j in self._units
            alike = runs and not apart and own == self._own[j - 1] and unit == (j - 1 in self._units)
            if alike and (unit or sum(self._sizes[runs[-1].start : j + 1]) <= most):
                runs[-1] = range(runs[-1].start, j + 1)
            else:
                runs.append(range(j, j + 1))
        return runs

    def step(
        self,
        gradients: Sequence[Tensor | None],
        factor: Float[Tensor, "members 1"],
        used: Float[Tensor, "members units"] | None = None,
    ) -> None:
        """Take a step.

        Args:
            gradients: [members, numbers] in one; or, of a single member, of each parameter, None where it has none.
            factor:    What the rates are multiplied by.
            used:      1 for the units that take part, else 0; None: all do.
        """
        alive, whole = None, gradients[0] if len(gradients) < len(self._sizes) else None
        if whole is None and any(each is None for each in gradients):
            self._segments = self._merged(apart=True)
            taking = torch.tensor([[float(each is not None) for each in gradients]])
            alive = ragged.to_device(taking, self.values.device)
        elif used is not None:
            alive = self._all.clone()
            alive[:, self._units.start : self._units.stop] = used
        self._steps += 1 if alive is None else alive
        steps = self._steps if alive is None else self._steps.clamp(min=1)
        short1, short2 = torch.expm1(self._logs * steps)  # beta^steps - 1
        rate = self._rates[0] * factor
        scale, root = rate / short1, short2.neg().rsqrt()
        first = 0
        for run in self._segments:
            size = sum(self._sizes[run.start : run.stop])
            columns, first = slice(first, first + size), first + size
            gradient = whole[:, columns] if whole is not None else self._joined(gradients, run)
            if gradient is None:
                continue
            units = run if run.start in self._units else run[:1]

            def of(each: Tensor, units: range = units) -> Tensor:
                return each[:, units.start : units.stop, None]

            self._update(
                *(
                    each.unflatten(1, (len(units), -1))
                    for each in (self.values[:, columns], gradient, *self._moments[:, :, columns])
                ),
                *(of(each) for each in (rate, self._rates[1], scale, root)),
                None if alive is None or whole is None or units is not run else of(alive),
                any(decay for j in run for (_, decay), _ in self._own[j]),
            )

    @staticmethod
    def _joined(gradients: Sequence[Tensor | None], run: range) -> Tensor | None:
        own = [each.flatten() for each in gradients[run.start : run.stop] if each is not None]
        return torch.cat(own).unsqueeze(0) if own else None

    def _update(
        self,
        values: Float[Tensor, "members units each"],
        gradient: Float[Tensor, "members units each"],
        mean: Float[Tensor, "members units each"],
        square: Float[Tensor, "members units each"],
        rate: Float[Tensor, "members units 1"],
        decay: Float[Tensor, "members units 1"],
        scale: Float[Tensor, "members units 1"],
        root: Float[Tensor, "members units 1"],
        alive: Float[Tensor, "members units 1"] | None,
        decays: bool,
    ) -> None:
        """Adam (Kingma and Ba 2015); scale: the rate over the first moment's correction, negative."""
        most = GPU_NUMBERS if ragged.on_gpu(values.device) else CPU_NUMBERS
        if alive is not None:
            rate, decay, scale = rate * alive, decay * alive, scale * alive
        pieces = (each.split(max(1, most // values[..., 0].numel()), 2) for each in (values, gradient, mean, square))
        for p, g, m, v in zip(*pieces, strict=True):
            if decays and self._decoupled:
                p.mul_(1 - rate * decay)
            elif decays:
                g = torch.addcmul(g, p, decay)
            if alive is None:
                m.lerp_(g, 1 - BETA1)
                v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            else:
                m.lerp_(g, (1 - BETA1) * alive)
                v.lerp_(g * g, (1 - BETA2) * alive)
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
