"""What a step asks of a device, counted on CPU tensors: operations that are no views, and waits for their results."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

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
