"""Late fusion: an ensemble of one linear probe per layer (after Nordby, Pais and Parrack, arXiv 2604.13386)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import TrialConfig
from adalayers.fusion.fusion import Fusion, Lengths, States
from adalayers.fusion.projections import projections
from adalayers.states import Pooling, Shape, State
from adalayers.tensors.ragged import sequence_means


@dataclass(frozen=True, kw_only=True)
class LateFusionConfig(TrialConfig):
    """Hyperparameters of late fusion, next to those of every method.

    ensemble  learned: the probes' weights are learned; uniform: all count alike
    """

    fusion: ClassVar[str] = "late-fusion"
    own_read_out: ClassVar[bool] = True

    ensemble: Literal["learned", "uniform"] = "learned"

    def _pooling(self) -> Pooling | None:
        return "mean"


class LateFusion(Fusion, config=LateFusionConfig):
    """An ensemble of a probe per hidden state, i = 1..l:

        o_i = W_i x_i + b_i                    W_i in R^{labels x K}; x_i: the mean of Z_i over a text, or a word of it
        p   = sum_i a_i softmax(o_i)           a = softmax(w), w in R^l, initialised to zeros; or a_i = 1/l
        out = log p                            of one label, which is a number and no class: sum_i a_i o_i

    What is taken from the paper is an ensemble of linear probes, one per layer. It trains each by itself and then
    stacks their scores by logistic regression; here all are trained together, by the likelihood of p, and its binary
    scores became classes, words and numbers. Neither w nor b_i has weight decay.
    """

    undecayed = ("biases", "w")

    def __init__(self, config: LateFusionConfig, shape: Shape):
        super().__init__(config, shape)
        self.of_texts = not shape.per_token
        self.probes = nn.ModuleList(projections(self.states, shape.width, shape.n_outputs))
        self.biases = nn.Parameter(torch.zeros(len(self.states), shape.n_outputs))
        self.w = nn.Parameter(torch.zeros(len(self.states)), requires_grad=config.ensemble == "learned")

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "items labels"]:
        """Return log p, float32, of each text or token."""
        outputs = []
        for state in live:
            x = states[state].float()
            x = sequence_means(x, lengths) if self.of_texts else x
            position = self.states.index(state)
            outputs.append(self.probes[position](x).float() + self.biases[position])
        stacked, log_weights = torch.stack(outputs), self.log_weights().view(-1, 1, 1)
        if self.width == 1:
            return (log_weights.exp() * stacked).sum(dim=0)
        return torch.logsumexp(log_weights + torch.log_softmax(stacked, dim=-1), dim=0)

    def log_weights(self) -> Float[Tensor, " live"]:
        """Return log a of the live hidden states, which sum to 1 unless `without` says otherwise."""
        live = [self.states.index(state) for state in self.live()]
        if self._renormalise:
            return torch.log_softmax(self.w[live], dim=0)
        return torch.log_softmax(self.w, dim=0)[live]

    @torch.no_grad()
    def diagnostics(self) -> dict[str, float]:
        """Return a by state, `late_fusion/weight_<state>`."""
        weights = dict(zip(self.live(), self.log_weights().exp().tolist(), strict=True))
        return self.by_state("late_fusion/weight_", [weights.get(state, 0.0) for state in self.states])

    def kept_at_use(self, inner: int) -> int:
        """Return 0 of texts, to whose means a token adds, else the probabilities so far."""
        return 0 if self.of_texts else self.width
