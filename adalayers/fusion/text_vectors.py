"""What fusions have in common that make one vector of a text: how their configuration and read-out differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from adalayers.config import POOLED, TrialConfig
from adalayers.states import Head, Settings, Shape


@dataclass(frozen=True, kw_only=True)
class TextVectorConfig(TrialConfig):
    """What methods have in common that give one vector of a text: texts only, dropout and a linear layer read it.

    read_out  one of the pooled ones, which all say the same of one vector
    """

    tasks: ClassVar[tuple[Head, ...]] = ("sequence",)

    read_out: Literal["attention", "linear", "mean", "first-token", "last-token"] = "mean"

    def check(self, shape: Shape) -> None:
        super().check(shape)
        wanted = f"mean with fusion={self.fusion}, which gives one vector of a text"
        self.require("read_out", self.read_out in POOLED, wanted)

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) | {"positions"}

    def resolved(self, shape: Shape) -> Settings:
        return {**super().resolved(shape), "read_out": "mean"}
