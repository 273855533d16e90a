"""Adapters: small layers within the layers of a frozen base model (Houlsby et al. 2019, section 2)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.backbones.families import LayerParts
from adalayers.config import AdapterConfig
from adalayers.tensors.seeds import drawing

START = 1e-3
"""Standard deviation of the weights at the start, cut off at two of them: that of Houlsby et al.'s released code."""


class Adapter(nn.Module):
    """x + U gelu(D x + d) + u, with D in R^{m x K}; near the identity at the start.

    Args:
        inner: K.
        width: m.
    """

    def __init__(self, inner: int, width: int):
        super().__init__()
        self.down, self.up = nn.Linear(inner, width), nn.Linear(width, inner)
        for linear in (self.down, self.up):
            nn.init.trunc_normal_(linear.weight, std=START, a=-2 * START, b=2 * START)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "... K"]) -> Float[Tensor, "... K"]:
        return x + self.up(functional.gelu(self.down(x)))


class Adapters(nn.Module):
    """All adapters of a base model: two places a layer, one or several adapters for them.

    They act on what attention's projection gives, and on what the second feed-forward layer gives, before dropout, the
    residual connection and the norm. (The paper's figure 2 shows no dropout; its released code drops out first.)

    There are none before `put_into`.

    Args:
        config: Their width m, and their sharing. none: an adapter for each place; layer: one for both places of a
                layer; three: one for all places of layers 1-3, one for those of 4-6, ... (Mohebbi and Rajaee, section
                6.2).
        inner:  K.
        seed:   Of their starts; each depends on its place alone, not on which others there are.

    Attributes:
        layers: Numbers of the layers that have some.
        off:    Numbers of layers in which they do nothing now.
        acting: Weights that act on a token: those of an adapter as often as it has a place.
    """

    def __init__(self, config: AdapterConfig, *, inner: int, seed: int):
        super().__init__()
        self._config, self._inner, self._seed = config, inner, seed
        self.layers: tuple[int, ...] = ()
        self.off: frozenset[int] = frozenset()
        self.by_place = nn.ModuleDict()
        self.acting = 0

    def put_into(self, layers: Mapping[int, nn.Module], parts: LayerParts) -> None:
        """Put adapters into layers by their numbers, by hooks on the `parts` of each."""
        self.layers = tuple(layers)
        for number, layer in layers.items():
            for part, name in vars(parts).items():
                key = _key(self._config.adapter_sharing, number, part)
                if key not in self.by_place:
                    with drawing(self._seed, "adapters", key):
                        self.by_place[key] = Adapter(self._inner, self._config.adapter_width)
                self.acting += sum(parameter.numel() for parameter in self.by_place[key].parameters())
                layer.get_submodule(name).register_forward_hook(functools.partial(self._adapted, number, key))

    def _adapted(
        self, number: int, key: str, module: nn.Module, inputs: tuple[Any, ...], output: Tensor
    ) -> Tensor:
        """Return what the adapter makes of a module's output; the output itself in a layer where they are off."""
        return output if number in self.off else self.by_place[key](output)


def _key(sharing: str, number: int, part: str) -> str:
    """Return the name of the adapter of a place in a layer."""
    if sharing == "none":
        return f"{number:02d}_{part}"
    if sharing == "layer":
        return f"{number:02d}"
    first = number - (number - 1) % 3
    return f"{first:02d}-{first + 2:02d}"
