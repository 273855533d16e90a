"""Adam, for one trial and for several at once."""

from __future__ import annotations

import itertools
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
    """What a trial trains, and where Adam stands with it.

    Attributes:
        groups:    (how many parameters, learning rate, weight decay) of each group.
        decoupled: Whether weight decay is apart from the gradient's moments, as in AdamW.
        moments:   Of each parameter's gradient, and of its square.
        steps:     [parameters], how many each has taken: one without a gradient takes none.
    """

    def __init__(self, config: TrialConfig, model: FusionModel):
        groups = [group for group in model.parameter_groups() if len(group.parameters)]
        self.parameters = [parameter for group in groups for parameter in group.parameters]
        self.groups = [
            (
                len(group.parameters),
                config.lr if group.lr is None else group.lr,
                config.weight_decay if group.weight_decay is None else group.weight_decay,
            )
            for group in groups
        ]
        self.decoupled = config.optimiser == "adamw"
        self.moments = [(torch.zeros_like(own), torch.zeros_like(own)) for own in self.parameters]
        self.steps = torch.zeros(len(self.parameters), device=self.parameters[0].device)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint holds next to the parameters."""
        return {"moments": self.moments, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where a trial with the same parameters stood."""
        self.moments, self.steps = state["moments"], state["steps"]

    def step(self, gradients: Sequence[Tensor | None], factor: float) -> None:
        """Take a step; a parameter without a gradient stays as it is, its moments too.

        Args:
            gradients: Of each parameter.
            factor:    What the rates are multiplied by.
        """
        every = zip(self.parameters, gradients, self.moments, self.steps.unbind(), strict=True)
        for n, lr, decay in self.groups:
            if own := [each for each in itertools.islice(every, n) if each[1] is not None]:
                values, given, moments, steps = map(list, zip(*own, strict=True))
                means, squares = map(list, zip(*moments, strict=True))
                options = {"beta1": BETA1, "beta2": BETA2, "eps": EPS, "amsgrad": False, "maximize": False}
                options |= {"lr": lr * factor, "weight_decay": decay}
                options["decoupled_weight_decay"] = self.decoupled
                adam(values, given, means, squares, [], steps, fused=True, **options)  # type: ignore[arg-type]


class Stack:
    """The parameters of several trials as one tensor a group, and Adam on them (Kingma and Ba 2015).

    Args:
        trials: Of one optimiser; they have the same groups of parameters, but for the last ones, which some may lack.

    Attributes:
        values: By group, all parameters, [members, units, numbers]: where they are of one shape each is a unit, else
                all are one.
    """

    def __init__(self, trials: Sequence[Trained]):
        most = max(trials, key=lambda trial: len(trial.groups))
        like, counts = most.parameters[0].detach(), [n for n, *_ in most.groups]
        self._decoupled, self._ends = most.decoupled, [*itertools.accumulate(counts)]
        self._logs = like.new_tensor([math.log(BETA1), math.log(BETA2)]).view(2, 1, 1)
        self._steps = like.new_zeros(len(trials), len(most.parameters))
        self._rates, self._decay = self._steps.new_zeros(2, *self._steps.shape)
        for m, trial in enumerate(trials):
            own = slice(len(trial.parameters))
            trial.steps = self._steps[m, own].copy_(trial.steps)
            rates = [each for n, *each in trial.groups for _ in range(n)]
            self._rates[m, own], self._decay[m, own] = like.new_tensor(rates).T
        of_groups = [self._moved(trials, end - n, end) for n, end in zip(counts, self._ends, strict=True)]
        self.values, *self._moments = map(list, zip(*of_groups, strict=True))

    def _moved(self, trials: Sequence[Trained], first: int, end: int) -> list[Tensor]:
        """Move a group's parameters and moments into one tensor each; those of trials become views of them."""
        group = max((trial.parameters[first:end] for trial in trials), key=len)
        alike, sizes = len({own.shape for own in group}) == 1, [own.numel() for own in group]
        units = (len(sizes), sizes[0]) if alike else (1, sum(sizes))
        # A unit's numbers of all members next to each other: they are multiplied as one.
        wholes = [
            group[0].detach().new_zeros(units[0], len(trials), units[1]).transpose(0, 1) for _ in range(3)
        ]
        for m, trial in enumerate(trials):
            rows = zip(
                *(whole[m].unbind() if alike else whole[m, 0].split(sizes) for whole in wholes), strict=True
            )
            for j, (own, parts) in enumerate(zip(trial.parameters[first:end], rows, strict=False), first):
                former = zip(parts, (own.detach(), *trial.moments[j]), strict=True)
                own.data, *moments = (part.view(own.shape).copy_(of) for part, of in former)
                trial.moments[j] = tuple(moments)
        return wholes

    def step(
        self,
        gradients: Sequence[Float[Tensor, "members units numbers"]],
        factors: Sequence[float],
        used: Float[Tensor, "members units"] | None = None,
    ) -> None:
        """Take a step of all trials, each at its own rates; what is not used stays as it is, its moments too.

        Args:
            factors: What each trial's rates are multiplied by.
            used:    1 for the parameters of the second group that take part, else 0; None: all do.
        """
        takes = torch.ones_like(self._steps)
        factor = ragged.to_device(torch.tensor(factors, dtype=takes.dtype), takes.device).unsqueeze(1)
        if used is not None:
            takes[:, self._ends[0] : self._ends[1]] = used
        self._steps += takes
        short1, short2 = torch.expm1(self._logs * self._steps.clamp(min=1))  # beta^steps - 1
        rates = self._rates * factor * takes
        numbers = rates, self._decay * takes, rates / short1, short2.neg().rsqrt(), takes
        for *own, end in zip(gradients, self.values, *self._moments, self._ends, strict=True):
            units = own[0].shape[1]
            scalars = (each[:, end - units : end].unsqueeze(2) for each in numbers)
            # A CPU takes what stays in its cache, a GPU all.
            most = own[0].shape[:2] if ragged.on_gpu(takes.device) else (1, 1)
            for some in zip(*(each.split(most[0]) for each in (*own, *scalars)), strict=True):
                for part in zip(*(each.split(most[1], dim=1) for each in some), strict=True):
                    self._adam(*part)

    def _adam(self, g: Tensor, p: Tensor, m: Tensor, v: Tensor, *scalars: Tensor) -> None:
        """Take the step of values p and their moments m and v, by their gradient g."""
        lr, decay, scale, root, live = scalars
        if self._decoupled:
            p.mul_(1 - lr * decay)
        else:
            g = torch.addcmul(g, p, decay)
        m.lerp_(g, (1 - BETA1) * live)
        v.lerp_(g * g, (1 - BETA2) * live)
        p.addcdiv_(m * scale, v.sqrt().mul_(root).add_(EPS))
