"""Head2Toe: a linear probe on the features of all layers, of which the best are kept (Evci et al. 2022; thesis 3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.config import TrialConfig, bounded
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import start_seed
from adalayers.states import Head, Pooling, Shape, State
from adalayers.tensors.ragged import sequence_means
from adalayers.tensors.seeds import drawing


@dataclass(frozen=True, kw_only=True)
class Head2ToeConfig(TrialConfig):
    """Hyperparameters of Head2Toe, next to those of every method. The published probe has no weight decay.

    lasso     of the first round: the loss is that of the task + lasso * sum_j ||W_all[j, :]||_2
    fraction  F, the share of all l * K features that the second round keeps
    """

    fusion: ClassVar[str] = "head2toe"
    tasks: ClassVar[tuple[Head, ...]] = ("sequence",)
    own_read_out: ClassVar[bool] = True

    lasso: float = bounded(1e-4, least=0)
    fraction: float = bounded(0.1, above=0, most=1)

    def _pooling(self) -> Pooling | None:
        return "mean"


class Head2Toe(Fusion, config=Head2ToeConfig):
    """A linear probe on h_all, the features of l layers side by side (thesis section 3.3):

        a_i   = the mean of Z_i over a sequence's real tokens, scaled to unit norm     in R^K
        h_all = [a_1, ..., a_l]                                                        in R^{l K}
        out   = h_all W_all + b         W_all in R^{l K x labels}

    The first round trains W_all with a group lasso, lasso * sum_j ||W_all[j, :]||_2. Then features j are ranked by
    ||W_all[j, :]||_2, the first floor(fraction * l K) are kept, at least one, and a second round trains the probe on
    them without lasso. As in the released code, it starts afresh rather than from the weights of the first round, and
    the kept features of a layer are what is scaled to unit norm; a layer that keeps none is not read. Starts are
    Glorot's, biases 0.

    The probe keeps its shape: rows of dropped features are 0, get no gradient, and count as no parameters.
    """

    of_texts = True

    def __init__(self, config: Head2ToeConfig, shape: Shape):
        super().__init__(config, shape)
        self.lasso, self.fraction, inner = config.lasso, config.fraction, shape.width
        self._seed = start_seed()
        self.probe = nn.Linear(len(self.states) * inner, shape.n_outputs)
        self.kept = nn.Buffer(torch.ones(len(self.states), inner, dtype=torch.bool))
        self.selected = nn.Buffer(torch.tensor(False))
        self._second, self._counts = False, [inner] * len(self.states)
        self._start("first")
        self.register_load_state_dict_post_hook(Head2Toe._note)

    def _note(self, *_: object) -> None:
        """Note what the buffers say where asking does not wait for a GPU."""
        self._second, self._counts = bool(self.selected), self.kept.sum(dim=1).tolist()

    @torch.no_grad()
    def _start(self, name: str) -> None:
        """Draw the probe on the kept features, and set it to 0 elsewhere."""
        kept = self.kept.flatten()
        bound = math.sqrt(6 / (sum(self._counts) + self.width))
        with drawing(self._seed, name):
            drawn = torch.empty(self.probe.weight.shape).uniform_(-bound, bound)
        self.probe.weight.copy_(drawn.to(kept.device) * kept)
        self.probe.bias.zero_()

    def live(self) -> list[State]:
        """Return the hidden states with a kept feature, in order."""
        counts = dict(zip(self.states, self._counts, strict=True))
        return [state for state in super().live() if counts[state]]

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "batch labels"]:
        """Return the probe's scores of each sequence, float32. Features of states that are not there are 0."""
        positions, features = [self.states.index(state) for state in live], []
        # One at a time: a mean is all that is kept of it.
        for state, position in zip(live, positions, strict=True):
            mean = sequence_means(states[state].float(), lengths)
            features.append(functional.normalize(mean * self.kept[position], dim=1))
        rows = self.probe.weight
        if len(live) < len(self.states):
            rows = rows.unflatten(1, self.kept.shape)[:, positions].flatten(1)
        with torch.autocast(rows.device.type, enabled=False):
            return functional.linear(torch.cat(features, dim=1), rows, self.probe.bias)

    def fuse_nothing(self, lengths: Lengths) -> Float[Tensor, "batch labels"]:
        return self.probe.bias.expand(len(lengths), -1)

    def importance(self) -> Float[Tensor, "states K"]:
        """Return ||W_all[j, :]||_2 of each feature, by layer."""
        return self.probe.weight.norm(dim=0).unflatten(0, self.kept.shape)

    def penalty(self) -> Float[Tensor, ""] | None:
        """Return the group lasso in the first round, None in the second."""
        if self._second or self.lasso == 0:
            return None
        return self.lasso * self.importance().sum()

    def refit(self) -> bool:
        """Keep the best features and start again on them, once."""
        if self._second:
            return False
        self.kept.copy_(most_important(self.importance().detach(), self.fraction))
        self.selected.fill_(True)
        self._note()
        self._start("second")
        return True

    @torch.no_grad()
    def diagnostics(self) -> dict[str, float]:
        """Return by state its share of the sum of ||W_all[j, :]||_2, `head2toe/share_<state>`."""
        by_layer = self.importance().sum(dim=1)
        shares = (by_layer / by_layer.sum().clamp_min(torch.finfo(by_layer.dtype).tiny)).tolist()
        return self.by_state("head2toe/share_", shares)

    def summary(self) -> dict[str, float]:
        """Return how many features are kept, and of how many layers."""
        return {
            "head2toe/kept_features": sum(self._counts),
            "head2toe/live_layers": sum(count > 0 for count in self._counts),
        }

    def unused_parameters(self) -> int:
        """Return the parameters of dropped features."""
        return (self.kept.numel() - sum(self._counts)) * self.width


def most_important(importance: Float[Tensor, "states K"], fraction: float) -> Bool[Tensor, "states K"]:
    """Return which features are among the most important `fraction`, at least one; the first of equals."""
    flat = importance.flatten()
    n = max(1, math.floor(fraction * len(flat) + 1e-9))  # 0.29 * 100 is 28.999999999999996
    first = torch.argsort(flat, descending=True, stable=True)[:n]
    return torch.zeros_like(flat, dtype=torch.bool).index_fill(0, first, True).view_as(importance)
