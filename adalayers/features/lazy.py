"""A mapping whose values are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Lazy(Mapping[Key, Value], Generic[Key, Value]):
    """`make(key)` for each of `keys`, made again every time: whoever asks decides what is held, and how long."""

    def __init__(self, keys: Sequence[Key], make: Callable[[Key], Value]):
        self._keys, self._make = keys, make

    def __getitem__(self, key: Any) -> Value:
        if key not in self._keys:
            raise KeyError(key)
        return self._make(key)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
