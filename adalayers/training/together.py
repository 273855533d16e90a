"""Steps of several trials, taken as one: their models are stacked, and so is what their optimisers hold."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from adalayers.fusion.fusion import Stacked
from adalayers.models.several import FusionModels, alike
from adalayers.request import MAX_GROUP
from adalayers.training.evaluation import outputs
from adalayers.training.steps import Request, is_out_of_memory

if TYPE_CHECKING:
    from adalayers.training.trainer import Trainer


logger = logging.getLogger(__name__)


class Together:
    """Passes the batches that several trials ask for, for all at once where their models are alike.

    Trials must ask for the same examples of the same data. A step is that of each trial alone, to rounding; where
    memory does not hold all of them it is taken for half as many at a time.
    """

    def __init__(self) -> None:
        self._several: dict[Any, _Several] = {}
        self._most = MAX_GROUP

    def __call__(self, requests: Sequence[Request]) -> None:
        """Fill in the results of the requests that can be passed together; the rest is left to the trials."""
        by_kind: dict[Any, list[Request]] = {}
        for request in requests:
            if (kind := _kind(request)) is not None:
                by_kind.setdefault(kind, []).append(request)
        for (kind, *_), alike_requests in by_kind.items():
            for start in range(0, len(alike_requests), self._most):
                self._pass((kind, start), alike_requests[start : start + self._most])

    def _pass(self, kind: Any, requests: Sequence[Request]) -> None:
        if len(requests) == 1:
            return
        trainers = [request.trainer for request in requests]
        several = self._several.get(kind)
        try:
            if several is None or several.trainers != trainers:
                several = self._several[kind] = _Several(trainers)
            results = several.step(requests[0]) if requests[0].training else several.outputs(requests[0])
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            self._most = max(1, len(requests) // 2)
            self._several.clear()
            logger.warning(
                f"out of memory on a batch of {len(requests)} trials: it is passed for {self._most} at a time"
            )
            return
        for request, result in zip(requests, results, strict=True):
            request.result = result


def _kind(request: Request) -> Any:
    """Return what must be the same of requests that are passed together, None where one is passed alone."""
    trainer = request.trainer
    if trainer is None or trainer.parts > 1 or (kind := alike(trainer.model)) is None:
        return None
    config = trainer.config
    kind = (kind, config.optimiser, config.class_weights, config.word_token(trainer.model.shape))
    return kind, request.training, request.examples.tobytes()


class _Several:
    """Trials whose models are alike, and their optimisers, as one."""

    def __init__(self, trainers: Sequence[Trainer]):
        self.trainers = list(trainers)
        self.model = FusionModels([trainer.model for trainer in trainers])
        groups = {
            id(parameter): (trainer, group)
            for trainer in trainers
            for group in trainer.optimiser.param_groups
            for parameter in group["params"]
        }
        self._moments = [
            _Moments(stacked, groups)
            for stacked in self.model.stacked
            if stacked.whole.requires_grad and any(owner is not None for owner in stacked.owners)
        ]

    def step(self, request: Request) -> list[Tensor]:
        """Train all on a batch; return the objective of each before the step, detached."""
        first, split = self.trainers[0], request.split
        self.model.train()
        batch = split.batch(request.examples, self.model.live(), first.device)
        kind, weights = first.data.kind, first.class_weights
        losses = torch.stack([kind.loss(part, batch.labels, weights) for part in outputs(self.model, batch)])
        if (penalties := self.model.fusion.penalties()) is not None:
            losses = losses + penalties
        losses.sum().backward()
        for moments in self._moments:
            moments.step(decoupled=first.config.optimiser == "adamw")
        for trainer in self.trainers:
            trainer.optimiser._opt_called = True  # type: ignore[attr-defined]  # schedules warn where it took no step
            trainer.schedule.after_step()
            trainer.progress.step += 1
        return list(losses.detach().unbind())

    @torch.no_grad()
    def outputs(self, request: Request) -> list[Tensor]:
        """Return what each model gives for a batch."""
        self.model.eval()
        batch = request.split.batch(request.examples, self.model.live(), self.trainers[0].device)
        return list(outputs(self.model, batch).unbind())


class _Moments:
    """What Adam or AdamW holds of stacked parameters; each trial's own optimiser holds views of it."""

    def __init__(self, stacked: Stacked, groups: dict[int, tuple[Trainer, dict[str, Any]]]):
        self.stacked, self.rows = stacked, stacked.rows()
        self.means, self.squares = torch.zeros_like(self.rows), torch.zeros_like(self.rows)
        self.steps = self.rows.new_zeros(len(self.rows), 1, dtype=torch.float32)
        self.owned = [i for i, owner in enumerate(stacked.owners) if owner is not None]
        self.groups: dict[int, dict[str, Any]] = {}
        self._rates: tuple[list[float], Tensor] = [], self.rows
        for i in self.owned:
            owner = stacked.owners[i]
            assert owner is not None
            trainer, self.groups[i] = groups[id(owner)]
            own = {"step": self.steps[i, 0], "exp_avg": self.means[i], "exp_avg_sq": self.squares[i]}
            own = {name: row if name == "step" else row.view(owner.shape) for name, row in own.items()}
            for name, before in trainer.optimiser.state.get(owner, {}).items():
                own[name].copy_(before)
            trainer.optimiser.state[owner] = own

    @torch.no_grad()
    def step(self, *, decoupled: bool) -> None:
        """Take each owner's own step, at its own rate; `decoupled`: AdamW's decay of weights."""
        live = self.owned if self.stacked.live is None else self.stacked.live
        group = self.groups[self.owned[0]]
        (beta1, beta2), eps = group["betas"], group["eps"]
        whole = self.stacked.whole
        assert whole.grad is not None
        tensors = (self.rows, self.means, self.squares, self.steps)
        gradient, rates = whole.grad.view_as(self.rows), self._current_rates()
        some = None
        if len(live) < len(self.rows):
            some = torch.tensor(live, device=whole.device)
            gradient, rates = gradient[some], rates[some]
        numbers, means, squares, steps = tensors if some is None else tuple(each[some] for each in tensors)
        rate, decay = rates[:, :1], rates[:, 1:]
        steps += 1
        if decoupled:
            numbers.mul_((1 - rate * decay).to(numbers.dtype))
        else:
            gradient = torch.addcmul(gradient, decay.to(numbers.dtype), numbers)
        means.lerp_(gradient, 1 - beta1)
        squares.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        power = steps.double()
        scale, root = rate / (1 - beta1**power), (1 - beta2**power).sqrt()
        denominator = squares.sqrt().div_(root.to(numbers.dtype)).add_(eps)
        numbers.addcmul_(means / denominator, -scale.to(numbers.dtype))
        if some is not None:
            for each, changed in zip(tensors, (numbers, means, squares, steps), strict=True):
                each[some] = changed
        whole.grad = None

    def _current_rates(self) -> Tensor:
        """Return the learning rate and weight decay of each row, float64 [rows, 2]."""
        now = [value for group in self.groups.values() for value in (group["lr"], group["weight_decay"])]
        if now != self._rates[0]:
            rates = torch.zeros(len(self.rows), 2, dtype=torch.float64)
            rates[self.owned] = torch.tensor(now, dtype=torch.float64).view(-1, 2)
            self._rates = now, rates.to(self.rows.device)
        return self._rates[1]
