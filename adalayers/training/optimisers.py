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
                [parameters, members, numbers].
    """

    def __init__(self, trials: Sequence[Trained], *, stacked: bool):
        most = max(trials, key=lambda trial: len(trial.groups))
        self._stacked, self._decoupled, self._counts = stacked, most.decoupled, [n for n, *_ in most.groups]
        like, self.dtype = most.parameters[0].detach(), most.parameters[0].dtype
        steps = like.new_zeros(len(trials), len(most.parameters))
        for trial, own in zip(trials, steps, strict=True):
            own[: len(trial.steps)] = trial.steps
            trial.steps = own[: len(trial.steps)]
        self._steps = steps
        self._places: list[list[int]] = []
        self.values: list[Tensor] = []
        self._moments: tuple[list[Tensor], list[Tensor]] = ([], [])
        first = 0
        for n in self._counts if stacked else ():
            self._stack(trials, most.parameters[first : first + n], first)
            first += n
        groups = [trial.groups + most.groups[len(trial.groups) :] for trial in trials]
        rates = [[each for n, *each in own for _ in range(n)] for own in groups]
        self._lr, self._decay = like.new_tensor(rates).unbind(-1)
        self._logs = like.new_tensor([math.log(BETA1), math.log(BETA2)]).view(2, 1, 1)
        self._own = [
            [*zip(trial.parameters, trial.moments, trial.steps.unbind(), rate, strict=False)]
            for trial, rate in zip(trials, rates, strict=True)
        ]

    def _stack(self, trials: Sequence[Trained], group: Sequence[Tensor], first: int) -> None:
        """Move the parameters of a group, and their moments, into one tensor; those of trials become views of it."""
        sizes, like = [own.numel() for own in group], group[0].detach()
        by_unit = len(group) > 1 and len({own.shape for own in group}) == 1
        shape = (len(sizes), len(trials), sizes[0]) if by_unit else (len(trials), sum(sizes))
        wholes = [like.new_zeros(shape) for _ in range(3)]
        for m, trial in enumerate(trials):
            rows = [[*w[:, m]] if by_unit else [*w[m].split(sizes)] for w in wholes]
            for j, own in enumerate(trial.parameters[first : first + len(group)], start=first):
                value, *moments = (row[j - first].view(own.shape) for row in rows)
                value.copy_(own.detach())
                own.data = value
                for moment, former in zip(moments, trial.moments[j], strict=True):
                    moment.copy_(former)
                trial.moments[j] = tuple(moments)
        self._places.append(sizes)
        for place, whole in zip((self.values, *self._moments), wholes, strict=True):
            place.append(whole)

    def step(
        self,
        gradients: Sequence[Tensor | None],
        factors: Sequence[float],
        factor: Float[Tensor, "members 1"],
        used: Float[Tensor, "members units"] | None = None,
    ) -> None:
        """Take a step; a parameter without a gradient stays as it is, its moments too.

        Args:
            gradients: [members, ...] of each group; not stacked: [1, ...] of each parameter, None where it has none.
            factors, factor: What the rates are multiplied by, here and on the device.
            used:      1 for the parameters of the second group, all of one shape, that take part, else 0; None: all do.
        """
        if self._stacked and ragged.on_gpu(self._steps.device):
            self._all_at_once(gradients, factor, used)  # type: ignore[arg-type]
            return
        rows: list[Sequence[Tensor | None]] = [gradients]
        if self._stacked:
            rows = [self._of_member(m, gradients, used) for m in range(len(self._own))]
        alike: dict[tuple[float, float], list[tuple[Tensor, ...]]] = {}
        for row, own, by in zip(rows, self._own, factors, strict=True):
            for gradient, (value, (mean, square), taken, (lr, decay)) in zip(row, own, strict=False):
                if gradient is not None:
                    tensors = value.detach(), gradient.reshape(value.shape), mean, square, taken
                    alike.setdefault((lr * by, decay), []).append(tensors)
        for (lr, decay), some in alike.items():
            values, flat, means, squares, steps = map(list, zip(*some, strict=True))
            options = {"lr": lr, "weight_decay": decay, "decoupled_weight_decay": self._decoupled}
            options |= {"beta1": BETA1, "beta2": BETA2, "eps": EPS, "amsgrad": False, "maximize": False}
            adam(values, flat, means, squares, [], steps, fused=True, **options)  # type: ignore[arg-type]

    def _of_member(
        self, m: int, gradients: Sequence[Tensor | None], used: Tensor | None
    ) -> list[Tensor | None]:
        """Return a member's gradients by parameter, None for those that it left out."""
        row: list[Tensor | None] = []
        for group, gradient in zip(self._places, gradients, strict=True):
            assert gradient is not None
            row += gradient[m].unbind() if gradient.dim() > 2 else gradient[m].split(group)
        if used is not None:
            for j, takes in enumerate(used[m].tolist(), start=self._counts[0]):
                row[j] = row[j] if takes else None
        return row

    def _all_at_once(
        self, gradients: Sequence[Tensor], factor: Tensor, used: Float[Tensor, "members units"] | None
    ) -> None:
        """Take the step group by group, of all members at once."""
        alive = torch.ones_like(self._steps)
        if used is not None:
            alive[:, self._counts[0] : self._counts[0] + self._counts[1]] = used
        self._steps += alive
        short1, short2 = torch.expm1(self._logs * self._steps.clamp(min=1))  # beta^steps - 1
        rate = self._lr * factor
        numbers = (rate * alive, self._decay * alive, rate * alive / short1, short2.neg().rsqrt(), alive)
        first = 0
        for g, p, m, v, n in zip(gradients, self.values, *self._moments, self._counts, strict=True):
            columns = [each[:, first : first + 1] for each in numbers]
            if p.dim() > 2:
                g, columns = (
                    g.transpose(0, 1),
                    [each[:, first : first + n].t().unsqueeze(2) for each in numbers],
                )
            rates, decay, scale, root, live = columns
            if self._decoupled:
                p.mul_(1 - rates * decay)
            else:
                g = torch.addcmul(g, p, decay)
            m.lerp_(g, (1 - BETA1) * live)
            v.lerp_(g * g, (1 - BETA2) * live)
            p.addcdiv_(m * scale, v.sqrt().mul_(root).add_(EPS))
            first += n


class Schedule:
    """How the learning rates change: what they are multiplied by, told of every step and every evaluation.

    steps: of the whole training, for a schedule that counts them
    """

    def __init__(self, config: TrialConfig, steps: int):
        self._linear, self._patience = config.schedule == "linear", config.lr_patience
        self._steps, self._rising = steps, max(1, round(config.warmup * steps))
        self._state: dict[str, float] = {"taken": 0, "best": -math.inf, "stale": 0, "halved": 0}

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

    def state_dict(self) -> dict[str, float]:
        """Return where the schedule stands, in types that a checkpoint may hold."""
        return dict(self._state)

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from where a schedule of the same kind stood."""
        self._state = dict(state)
