"""What a trained model costs, computed and not timed: in training, and per task at use.

Operations of fusion and head are those of their matrix products, counted by torch on a few sequences; those of the base
model two per weight of its layers and token forwards, two more for a gradient that passes and two for weights that are
trained. Sums, norms and embedding tables are left out, and the base model's attention scores. Bytes are not counted
here, but what makes them: weights, and numbers kept.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from adalayers.data.trial_data import TrialData
from adalayers.models.model import FusionModel

TRAINING, USE = "cost/training", "cost/use"
WEIGHTS, KEPT, LAYERS = "cost/weights", "cost/kept", "cost/layers"
SEQUENCES = 2
"""On which operations are counted, each as long as train's mean: of one length, so that there is no padding."""


@dataclass(frozen=True)
class Operations:
    """Of what is passed in every epoch, per token: forwards, and of a step, which is forwards and backwards."""

    forward: float
    training: float

    def of_epoch(self, data: TrialData, *, evaluated: bool) -> float:
        """Return those of training on train, and of an evaluation on validation where one follows."""
        train, validation = _tokens(data)
        return self.training * train + (self.forward * validation if evaluated else 0)


def operations(model: FusionModel, data: TrialData) -> Operations:
    """Count the matrix products of fusion and head, as they stand, on sequences of train's mean length.

    Where the base model is changed, gradients pass to the hidden states too, and its own operations are added. Those of
    a frozen one are left out: it is passed once, whatever the number of epochs. Parameters are left without gradients.
    """
    mean = max(1, round(float(data.splits["train"].features.lengths.mean())))
    lengths, use = torch.full((SEQUENCES,), mean), model.base_use()
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    states = {
        state: torch.ones(int(lengths.sum()), model.shape.width, device=device, requires_grad=use.own_pass)
        for state in model.fusion.live()
    }
    # Written out: torch counts no products of its own attention on a CPU.
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), _Products() as products:
        given = model(states, lengths)
        forward = products.operations
        if given.requires_grad:
            given.sum().backward()
    model.zero_grad(set_to_none=True)
    tokens, forwards, backwards = int(lengths.sum()), 0, 0
    if use.own_pass:
        forwards = use.run * data.layer_parameters + use.adapters
        backwards = use.through * data.layer_parameters + use.trained + 2 * use.adapters
    return Operations(
        forward / tokens + 2 * forwards, products.operations / tokens + 2 * (forwards + backwards)
    )


class _Products(TorchDispatchMode):
    """Counts the operations of matrix products by torch's formulas, and those with vectors, for which it has none.

    So does torch's `FlopCounterMode`, which also counts by module, with hooks on all of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            self.operations += formula(*args, **(kwargs or {}), out_val=output)
        elif func.overloadpacket in (torch.ops.aten.mv, torch.ops.aten.dot):
            self.operations += 2 * args[0].numel()
        return output


# Without what leads torch.compile around it: that imports the compiler, two seconds of every process that trains.
_Products.__torch_dispatch__ = inspect.unwrap(_Products.__torch_dispatch__)  # type: ignore[method-assign]


def cost(model: FusionModel, data: TrialData, *, epochs: float, read_to: int) -> dict[str, float]:
    """Return the columns `cost/*` of a trial's row.

    epochs:  operations of all its epochs, from `Operations.of_epoch`
    read_to: layers of the base model run for hidden states read in training, or to choose among them before

    cost/training: operations of the whole trial, in all. Of a frozen base model one pass over train and validation, as
                   if no other trial shared it; of one that is changed every pass, and one over train where the fusion
                   looked at hidden states before
    cost/use:      operations per token that the task adds at use, in millions: next to a frozen base model, which runs
                   anyway, its own; else a pass of the base model too, for no other task can share it
    cost/weights:  weights that the task adds at use, those of a base model that it changed included
    cost/kept:     numbers per token that are kept until the last hidden state is there
    cost/layers:   layers of the base model that have to run

    The first two are left out where the size of a layer is not known.
    """
    use = model.base_use()
    counts = {WEIGHTS: model.weights_at_use() + use.changed, KEPT: model.kept_at_use(), LAYERS: use.run}
    columns = {name: float(count) for name, count in counts.items()}  # trials that were stopped have none
    if not data.layer_parameters:
        return columns
    train, validation = _tokens(data)
    once = 2 * read_to * data.layer_parameters * (train if use.own_pass else train + validation)
    return {**columns, TRAINING: float(once + epochs), USE: 1e-6 * operations(model, data).forward}


def _tokens(data: TrialData) -> tuple[int, int]:
    """Return the tokens of train and of validation."""
    train, validation = (int(data.splits[name].features.lengths.sum()) for name in ("train", "validation"))
    return train, validation
