"""Adam for several trials at once."""

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


class Adam:
    """Takes a step of several trials, each at its own rates (Adam: Kingma and Ba 2015).

    On a GPU the number of operations does not grow with the trials; a CPU, and a trial alone, are quicker with torch's.

    Args:
        trials:  Of one optimiser; they have the same groups of parameters, but for the last ones, which some may lack.
        stacked: Whether parameters become parts of one tensor a group; else they stay, of a trial alone.

    Attributes:
        values: By group, all parameters, [members, numbers]; where a group's are several of one shape
                [members, parameters, numbers].
        device: Where `step` wants its factors.
    """

    def __init__(self, trials: Sequence[Trained], *, stacked: bool):
        most = max(trials, key=lambda trial: len(trial.groups))
        like, self.dtype = most.parameters[0].detach(), most.parameters[0].dtype
        self._at_once, self._decoupled = stacked and ragged.on_gpu(like.device), most.decoupled
        self.device = like.device if self._at_once else torch.device("cpu")
        self._counts = [n for n, *_ in most.groups]
        self._second = slice(self._counts[0], sum(self._counts[:2]))
        self._steps = like.new_zeros(len(trials), len(most.parameters))
        for trial, own in zip(trials, self._steps, strict=True):
            own[: len(trial.steps)] = trial.steps
            trial.steps = own[: len(trial.steps)]
        self.values: list[Tensor] = []
        self._moments: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._sizes: list[list[int]] = [] if stacked else [[]] * len(most.parameters)
        first = 0
        for n in self._counts if stacked else ():
            self._stack(trials, most.parameters[first : first + n], first)
            first += n
        groups = [trial.groups + most.groups[len(trial.groups) :] for trial in trials]
        rates = [[each for n, *each in own for _ in range(n)] for own in groups]
        self._lr, self._decay = torch.tensor(rates, dtype=self.dtype, device=self.device).unbind(-1)
        self._logs = like.new_tensor([math.log(BETA1), math.log(BETA2)]).view(2, 1, 1)
        self._own = [[*zip(t.parameters, t.moments, t.steps.unbind(), strict=True)] for t in trials]

    def _stack(self, trials: Sequence[Trained], group: Sequence[Tensor], first: int) -> None:
        """Move the parameters of a group, and their moments, into one tensor; those of trials become views of it."""
        sizes, like = [own.numel() for own in group], group[0].detach()
        if len(group) > 1 and len({own.shape for own in group}) == 1:
            wholes = [like.new_zeros(len(sizes), len(trials), sizes[0]).transpose(0, 1) for _ in range(3)]
        else:
            wholes = [like.new_zeros(len(trials), sum(sizes)) for _ in range(3)]
        for m, trial in enumerate(trials):
            rows = zip(*(_parts(whole[m], sizes) for whole in wholes), strict=True)
            for j, (own, row) in enumerate(zip(trial.parameters[first:], rows, strict=False), start=first):
                former = own.detach(), *trial.moments[j]
                own.data, *moments = (
                    part.view(own.shape).copy_(of) for part, of in zip(row, former, strict=True)
                )
                trial.moments[j] = tuple(moments)
        self._sizes.append(sizes)
        for place, whole in zip((self.values, *self._moments), wholes, strict=True):
            place.append(whole)

    def step(
        self,
        gradients: Sequence[Tensor | None],
        factor: Float[Tensor, "members 1"],
        used: Float[Tensor, "members units"] | None = None,
    ) -> None:
        """Take a step; a parameter without a gradient stays as it is, its moments too.

        Args:
            gradients: [members, ...] of each group; not stacked: [1, ...] of each parameter, None where it has none.
            factor:    What the rates are multiplied by, on `device`.
            used:      1 for the parameters of the second group that take part, else 0; None: all do.
        """
        rates = self._lr * factor
        takes = torch.ones_like(rates)
        if used is not None:
            takes[:, self._second] = used
        if self._at_once:
            self._step_at_once(gradients, rates * takes, takes)  # type: ignore[arg-type]
            return
        alike: dict[tuple[float, float], list[tuple[Tensor, ...]]] = {}
        numbers = zip(rates.tolist(), self._decay.tolist(), takes.tolist(), strict=True)
        for m, (own, of_member) in enumerate(zip(self._own, numbers, strict=True)):
            by_group = zip(gradients, self._sizes, strict=True)
            parts = [
                part
                for group, sizes in by_group
                for part in _parts(None if group is None else group[m], sizes)
            ]
            for (value, moments, taken), part, lr, decay, live in zip(own, parts, *of_member, strict=False):
                if part is not None and live:
                    tensors = value.detach(), part.reshape(value.shape), *moments, taken
                    alike.setdefault((lr, decay), []).append(tensors)
        for (lr, decay), some in alike.items():
            values, flat, means, squares, steps = map(list, zip(*some, strict=True))
            options = {"lr": lr, "weight_decay": decay, "decoupled_weight_decay": self._decoupled}
            options |= {"beta1": BETA1, "beta2": BETA2, "eps": EPS, "amsgrad": False, "maximize": False}
            adam(values, flat, means, squares, [], steps, fused=True, **options)  # type: ignore[arg-type]

    def _step_at_once(self, gradients: Sequence[Tensor], rates: Tensor, takes: Tensor) -> None:
        """Take the step group by group, of all members at once."""
        self._steps += takes
        short1, short2 = torch.expm1(self._logs * self._steps.clamp(min=1))  # beta^steps - 1
        numbers = (rates, self._decay * takes, rates / short1, short2.neg().rsqrt(), takes)
        first = 0
        for g, p, m, v, n in zip(gradients, self.values, *self._moments, self._counts, strict=True):
            end = first + n if p.dim() > 2 else first + 1
            lr, decay, scale, root, live = (
                each[:, first:end].view(len(p), *p.shape[1:-1], 1) for each in numbers
            )
            if self._decoupled:
                p.mul_(1 - lr * decay)
            else:
                g = torch.addcmul(g, p, decay)
            m.lerp_(g, (1 - BETA1) * live)
            v.lerp_(g * g, (1 - BETA2) * live)
            p.addcdiv_(m * scale, v.sqrt().mul_(root).add_(EPS))
            first += n


def _parts(own: Tensor | None, sizes: Sequence[int]) -> Sequence[Tensor | None]:
    """Return a member's tensor of a group by parameter; without sizes it is that of one."""
    if own is None or not sizes:
        return [own]
    return own.unbind() if own.dim() > 1 else own.split(sizes)
