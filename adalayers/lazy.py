"""A mapping whose values are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Lazy(Mapping[int, Value], Generic[Value]):
    """`make(key)` for each of `keys`, made anew every time: whoever asks decides what is held, and how long."""

    def __init__(self, keys: Sequence[int], make: Callable[[int], Value]):
        self._keys, self._make = keys, make

    def __getitem__(self, key: int) -> Value:
        if key not in self._keys:
            raise KeyError(key)
        return self._make(key)

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
