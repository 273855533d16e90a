"""What a training step of a group asks of a device, counted on CPU tensors with a GPU's branches taken.

What count are operations that are no views, forward, backward and Adam, and waits for their results; sizes do not
matter, so they are small.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.states import Head
from adalayers.tensors import ragged
from adalayers.training import members
from adalayers.training.trainer import Trainer
from tests.benchmarks.made import Sizes
from tests.benchmarks.measure import logger
from tests.helpers.made_data import made_data

LAYERS, WIDTH, K = 6, 16, 8
VARIANTS: dict[str, dict[str, Any]] = {
    "cutoff": {"cutoff": 0.1},
    "projection_dropout": {"projection_dropout": 0.1},
    "positions": {"positions": True},
    "four_seeds": {"seeds": 4},
    "tokens": {"kind": "token"},
}
FREE = ("_unsafe_view", "_reshape_alias", "alias", "detach", "lift_fresh", "is_same_size")
ALLOCATIONS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_")
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "_unique2", "equal")
READS = ("tolist", "numpy", "cpu", "item")
"""Methods of a tensor that give the host its numbers."""


class Counts(TorchDispatchMode):
    """Counts by name what is dispatched below autograd, backward passes included.

    Attributes:
        operations: What a GPU would launch.
        waits:      What would wait for a GPU, were the tensor on one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
            each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1]
        )
        if name in WAITS or masks:
            self.waits[name] += 1
        elif not func.is_view and name not in FREE and name not in ALLOCATIONS:
            self.operations[name] += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def counting() -> Iterator[Counts]:
    """Count what the block does."""
    with contextlib.ExitStack() as stack:
        counts = Counts()
        for name in READS:
            method = getattr(torch.Tensor, name)

            def read(tensor: torch.Tensor, *given: Any, name: str = name, method: Any = method) -> Any:
                counts.waits[name] += 1
                return method(tensor, *given)

            stack.enter_context(mock.patch.object(torch.Tensor, name, read))
        yield stack.enter_context(counts)


def operations(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return operations of a step of 1 member at batch 64 and of 64 at batch 600, and the most waits of any step."""
    most = 64 if sizes.levels is None else 3
    one, many = of_step(1, 64), of_step(most, 600)
    others = {name: of_step(most, 64, **settings) for name, settings in VARIANTS.items()}
    for name, counts in {"one": one, "many": many, **others}.items():
        done, waited = counts.operations.total(), counts.waits.total()
        logger.info(f"a step, {name}: {done} operations, {waited} waits {dict(counts.waits)}")
    return {
        "operations_step_one": one.operations.total(),
        "operations_step_64": many.operations.total(),
        "waits_step_64": max(counts.waits.total() for counts in (one, many, *others.values())),
    }


def of_step(size: int, batch: int, *, kind: Head = "sequence", seeds: int = 1, **settings: Any) -> Counts:
    """Return the counts of a step of `size` members in the middle of an epoch; settings: of all trials.

    The branches of a GPU are taken: its operations, bfloat16, and dropout by counting.
    """
    data = made_data(kind, layers=LAYERS, width=WIDTH, sizes=(3 * batch, 8, 8))
    trainers = []
    for member in range(size):
        own = {"alpha": 1.0 + member, "entropy_weight": 1e-3 * (member % 3)}
        config = LayerMixConfig(k=K, heads=2, feedforward=16, batch_size=batch, **own, **settings)
        trainers.append(Trainer(config, data, seed=member // -(-size // seeds), device=torch.device("cpu")))
    autocast = torch.autocast("cpu", torch.bfloat16)
    with (
        mock.patch.object(ragged, "on_gpu", return_value=True),
        mock.patch.object(members, "reduced", return_value=autocast),
    ):
        group = members.Members(trainers)
        for trainer in trainers:
            trainer.progress.epoch = 1
        steps = group.epoch()
        next(steps)
        with counting() as counts:
            next(steps)
    return counts
