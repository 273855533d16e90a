"""Adam, for one trial and for several at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim.adam import adam

from adalayers.config import TrialConfig
from adalayers.models.model import FusionModel
from adalayers.tensors import ragged

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
ADAM = {"beta1": BETA1, "beta2": BETA2, "eps": EPS, "amsgrad": False, "maximize": False, "fused": True}


class Trained:
    """What a trial trains, and where Adam stands with it.

    Attributes:
        groups:    (how many parameters, learning rate, weight decay) of each group.
        decoupled: Whether weight decay is apart from the gradient's moments, as in AdamW.
        moments:   Of each parameter's gradient, and of its square.
        steps:     [parameters], how many each has taken: one without a gradient takes none.
    """

    def __init__(self, config: TrialConfig, model: FusionModel):
        self.parameters, self.groups = list[nn.Parameter](), list[tuple[int, float, float]]()
        for group in model.parameter_groups():
            if len(group.parameters):
                lr = config.lr if group.lr is None else group.lr
                decay = config.weight_decay if group.weight_decay is None else group.weight_decay
                self.groups.append((len(group.parameters), lr, decay))
                self.parameters += group.parameters
        self.decoupled = config.optimiser == "adamw"
        self.moments = [(torch.zeros_like(own), torch.zeros_like(own)) for own in self.parameters]
        self.steps = torch.zeros(len(self.parameters), device=self.parameters[0].device)

    def step(self, gradients: Iterable[Tensor | None], factor: float) -> None:
        """Take a step; a parameter without a gradient stays as it is, its moments too.

        Args:
            gradients: Of each parameter, its numbers in whatever shape.
            factor:    What the rates are multiplied by.
        """
        every = zip(
            self.parameters, gradients, *zip(*self.moments, strict=True), self.steps.unbind(), strict=True
        )
        for n, lr, decay in self.groups:
            if own := [each for each in itertools.islice(every, n) if each[1] is not None]:
                values, given, means, squares, steps = map(list, zip(*own, strict=True))
                given = [g.view(p.shape) for g, p in zip(given, values, strict=True)]
                how = {"lr": lr * factor, "weight_decay": decay, "decoupled_weight_decay": self.decoupled}
                adam(values, given, means, squares, [], steps, **how, **ADAM)  # type: ignore[arg-type]


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
        sizes, like = iter([own.numel() for own in most.parameters]), most.parameters[0].detach()
        self._trials, self._sizes = trials, [[*itertools.islice(sizes, n)] for n, *_ in most.groups]
        self._logs = like.new_tensor([math.log(BETA1), math.log(BETA2)]).view(2, 1, 1)
        self._steps, self._rates, self._decay = like.new_zeros(3, len(trials), len(most.parameters))
        wholes = []
        for own in self._sizes:
            units = len(own) if len({*own}) == 1 else 1
            # A unit's numbers of all members next to each other: they are multiplied as one.
            whole = like.new_zeros(3, units, len(trials), sum(own) // units)
            wholes.append(whole.transpose(1, 2).unbind())
        self.values, *self._moments = map(list, zip(*wholes, strict=True))
        for m, trial in enumerate(trials):
            self._move(m, trial)
        self.values = [values.detach().requires_grad_() for values in self.values]

    def _move(self, m: int, trial: Trained) -> None:
        """Make what a trial trains, and where Adam stands with it, views of the stack."""
        n = len(trial.parameters)
        trial.steps = self._steps[m, :n].copy_(trial.steps)
        rates = [each for count, *each in trial.groups for _ in range(count)]
        self._rates[m, :n], self._decay[m, :n] = self._rates.new_tensor(rates).T
        places = zip(*(self._parts(m, each) for each in (self.values, *self._moments)), strict=True)
        for j, (own, parts) in enumerate(zip(trial.parameters, places, strict=False)):
            former = zip(parts, (own.detach(), *trial.moments[j]), strict=True)
            own.data, *moments = (part.view(own.shape).copy_(of) for part, of in former)
            trial.moments[j] = tuple(moments)

    def _parts(self, m: int, wholes: Sequence[Tensor]) -> list[Tensor]:
        """Return a member's own of each parameter, views [numbers]."""
        parts = list[Tensor]()
        for sizes, whole in zip(self._sizes, wholes, strict=True):
            parts += whole[m].unbind() if whole.shape[1] == len(sizes) else whole[m, 0].split(sizes)
        return parts

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
        takes, of_head = torch.ones_like(self._steps), len(self._sizes[0])
        if used is not None:
            takes[:, of_head : of_head + used.shape[1]] = used
        if not ragged.on_gpu(takes.device):
            for m, (trial, factor) in enumerate(zip(self._trials, factors, strict=True)):
                own = zip(trial.parameters, self._parts(m, gradients), takes[m].tolist(), strict=False)
                trial.step((g if taken else None for _, g, taken in own), factor)
            return
        of_members = ragged.to_device(torch.tensor(factors, dtype=takes.dtype), takes.device)
        self._steps += takes
        short1, short2 = torch.expm1(self._logs * self._steps.clamp(min=1))  # beta^steps - 1
        rates, end = self._rates * of_members.unsqueeze(1) * takes, 0
        numbers = rates, self._decay * takes, rates / short1, short2.neg().rsqrt(), takes
        for sizes, g, p, m, v in zip(self._sizes, gradients, self.values, *self._moments, strict=True):
            end += len(sizes)
            # Of a group that is one unit all parameters have the same.
            lr, decay, scale, root, live = (each[:, end - p.shape[1] : end].unsqueeze(2) for each in numbers)
            if self._trials[0].decoupled:
                p.mul_(1 - lr * decay)
            else:
                g = torch.addcmul(g, p, decay)
            m.lerp_(g, (1 - BETA1) * live)
            v.lerp_(g * g, (1 - BETA2) * live)
            p.addcdiv_(m * scale, v.sqrt().mul_(root).add_(EPS))
