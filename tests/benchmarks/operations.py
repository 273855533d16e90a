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

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.features.features import Lazy
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.states import Head
from adalayers.tasks.kinds import KINDS
from adalayers.tensors import ragged
from adalayers.training import members
from adalayers.training.trainer import Trainer
from tests.benchmarks.made import Sizes, cola_lengths
from tests.benchmarks.measure import logger
from tests.helpers.states import made_shape

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
    """Return operations and waits of a step of 1, 16 and 64 members, at batch 64 and 600."""
    measured, waits = {}, []
    several = (1, 16, 64) if sizes.levels is None else (1, 3)
    for size in several:
        for batch in (64, 600):
            for name, settings in {"": {}, **VARIANTS}.items() if batch == 64 else (("", {}),):
                counts = of_step(size, batch, **settings)
                done, waited = counts.operations.total(), counts.waits.total()
                waits.append(waited)
                logger.info(
                    f"a step of {size} at batch {batch} {name}: {done} operations, {waited} waits {dict(counts.waits)}"
                )
                measured[name, size, batch] = done
    return {
        "operations_step_one": measured["", 1, 64],
        "operations_step_64": measured["", several[-1], 600],
        "waits_step_64": max(waits),
    }


def of_step(
    size: int, batch: int, *, kind: Head = "sequence", seeds: int = 1, gpu: bool = True, **settings: Any
) -> Counts:
    """Return the counts of a step in the middle of an epoch.

    Args:
        size:  Members.
        gpu:   Whether the branches of a GPU are taken: its operations, bfloat16, and dropout by counting.
        settings: Of all trials.
    """
    data = made_trial_data(kind, cola_lengths(3 * batch))
    trainers = []
    for member in range(size):
        own = {"alpha": 1.0 + member, "entropy_weight": 1e-3 * (member % 3)}
        config = LayerMixConfig(k=K, heads=2, feedforward=16, batch_size=batch, **own, **settings)
        trainers.append(Trainer(config, data, seed=member // -(-size // seeds), device=torch.device("cpu")))
    with contextlib.ExitStack() as stack:
        if gpu:
            stack.enter_context(mock.patch.object(ragged, "on_gpu", return_value=True))
            autocast = torch.autocast("cpu", torch.bfloat16)
            stack.enter_context(mock.patch.object(members, "reduced", return_value=autocast))
        group = members.Members(trainers)
        for trainer in trainers:
            trainer.progress.epoch = 1
        steps = group.epoch()
        next(steps)
        counts = stack.enter_context(counting())
        next(steps)
    return counts


class InMemory:
    """Hidden states in memory, read by rows as those of a store are."""

    def __init__(self, lengths: np.ndarray):
        self.lengths, self._starts = lengths, np.cumsum(lengths) - lengths
        self._state = torch.randn(int(lengths.sum()), WIDTH, dtype=torch.bfloat16)

    def read(self, examples: np.ndarray, states: Any, device: torch.device) -> Any:
        rows = torch.from_numpy(ragged.ragged_rows(self._starts[examples], self.lengths[examples]))
        return Lazy(states, lambda state: self._state.index_select(0, rows))


def made_trial_data(kind: Head, lengths: np.ndarray) -> TrialData:
    """Return random labels of sequences of these lengths, or of their words."""
    rng, n = np.random.default_rng(0), len(lengths)
    if kind == "sequence":
        names, metric = ("a", "b"), "accuracy"
        split = SplitData(InMemory(lengths), rng.integers(0, 2, n), np.arange(n))
    else:
        names, metric, words = ("O", "B-X", "I-X"), "f1", lengths - 2
        starts = np.concatenate([np.arange(1, 1 + count) for count in words])
        offsets = np.concatenate([[0], np.cumsum(words)])
        ids, ends = np.zeros(int(lengths.sum()), dtype=np.int32), np.concatenate([[0], np.cumsum(lengths)])
        tokens = Encoded(ids, ends, starts, offsets)
        split = SplitData(InMemory(lengths), rng.integers(0, 3, int(words.sum())), np.arange(n), tokens)
    shape = made_shape(kind, len(names), LAYERS, WIDTH)
    return TrialData(shape, names, metric, {"train": split, "validation": split}, {}, KINDS[kind])
