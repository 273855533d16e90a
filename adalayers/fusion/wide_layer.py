"""One hidden state under as many projections as a layer mix has: what the mix gains by its parameters alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import WidthConfig, bounded
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import projected, starts
from adalayers.states import Settings, Shape, State


@dataclass(frozen=True, kw_only=True)
class WideLayerConfig(WidthConfig):
    """Hyperparameters of one layer under several projections, next to those of every method.

    layer        the hidden state that is read; None: the last
    projections  how many it has; None: as many as there are hidden states, as a layer mix has
    k            width of each projection
    alpha        as of the layer mix
    mix_lr       learning rate of p, which has no weight decay (None: that of lr)
    """

    fusion: ClassVar[str] = "wide-layer"
    token_by_token: ClassVar[bool] = True

    layer: int | None = None
    projections: int | None = bounded(None, least=1, most=2**12)
    alpha: float = bounded(1.0, above=0)
    mix_lr: float | None = bounded(None, above=0)

    def resolved(self, shape: Shape) -> Settings:
        states = self.states(shape)
        return {
            **super().resolved(shape),
            "layer": states[-1].number if self.layer is None else self.layer,
            "projections": self.projections or len(states),
        }

    def check(self, shape: Shape) -> None:
        super().check(shape)
        self.check_layer(shape, self.layer)


class WideLayer(Fusion, config=WideLayerConfig):
    """The layer mix (thesis section 5) with one hidden state Z in the place of all l:

        F = sum_j p~_j N(gelu(Z) W_j^T), j = 1..n          p~ = softmax(alpha * p), p initialised to ones

    With n = l projections it has the parameters of a mix of l hidden states and what one of them knows.
    """

    undecayed = ("p",)

    def __init__(self, config: WideLayerConfig, shape: Shape):
        states = config.states(shape)
        layer = states[-1].number if config.layer is None else config.layer
        read = next(state for state in states if state.number == layer)
        super().__init__(config, shape, [read])
        names = (f"{read.key}, projection {j}" for j in range(config.projections or len(states)))
        self.projections = nn.ModuleList(starts(names, lambda: nn.Linear(shape.width, config.k, bias=False)))
        self.p = nn.Parameter(torch.ones(len(self.projections)))
        self.alpha = config.alpha

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "tokens k"]:
        """Return F, float32."""
        hidden = states[live[0]].float()
        of_copies = torch.stack([projected(project, hidden) for project in self.projections])  # type: ignore[arg-type]
        # F is float32, whatever the projections were.
        with torch.autocast(of_copies.device.type, enabled=False):
            return torch.einsum("j,jtk->tk", torch.softmax(self.alpha * self.p, dim=0), of_copies)

    def kept_at_use(self, inner: int) -> int:
        """Return the width: one hidden state is read as soon as it is there."""
        return self.width
