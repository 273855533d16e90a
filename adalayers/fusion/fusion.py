"""The contract of a fusion: frozen hidden states of real tokens in, what a head reads out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import TrialConfig
from adalayers.states import Shape, State
from adalayers.tensors.ragged import Lengths

if TYPE_CHECKING:  # a room above makes them
    from adalayers.data.trial_data import Batch

States = Mapping[State, Float[Tensor, "tokens K"]]
"""The hidden states of a batch's real tokens, end to end."""


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that are trained alike; None: as the trial's configuration says."""

    parameters: Sequence[nn.Parameter]
    lr: float | None = None
    weight_decay: float | None = None


@dataclass(frozen=True)
class Term:
    """What a hidden state Z [tokens, K] adds to a fusion that is a sum over hidden states: w N(act(Z) W^T).

    Attributes:
        weight: w
        matrix: W [width, K]; None: Z as it is
        gelu:   whether act is gelu, else it is nothing
        eps:    of N, which normalises the last dimension; None leaves N out
    """

    weight: float
    matrix: Tensor | None = None
    gelu: bool = False
    eps: float | None = None


class Fusion(nn.Module, ABC):
    """What a method must say of itself. Only `fuse` has no default.

    `class Mean(Fusion, config=MeanConfig)` is what a `MeanConfig` builds.

    One is made without a look at the numbers in its tensors, so that it can be made on torch's meta device: by that
    `load` compares saved tensors before it takes memory for any.

    Args:
        config: The trial's.
        shape:  What it needs to know of backbone and task.
        states: The hidden states it may read, in order; None: all that the trial's configuration chooses.

    Attributes:
        width: Of what it gives: of vectors that a head reads, or of logits where it has a read-out of its own.
        of_texts: Whether it gives [batch, width], a row of each text, else [tokens, width].
        undecayed: Names of parameters without weight decay, which have the rate `mix_lr` where it is not None
    """

    of_texts: bool = False
    undecayed: tuple[str, ...] = ()

    def __init_subclass__(cls, config: type[TrialConfig] | None = None) -> None:
        super().__init_subclass__()
        if config is not None:
            config.method = cls

    def __init__(self, config: TrialConfig, shape: Shape, states: Sequence[State] | None = None):
        super().__init__()
        self.states, self.width = tuple(states or config.states(shape)), config.width(shape)
        self.mix_lr: float | None = getattr(config, "mix_lr", None)
        self._dropped: frozenset[State] = frozenset()
        self._renormalise = True

    def forward(self, states: States, lengths: Lengths) -> Float[Tensor, ...]:
        """Return [tokens, width], or of texts [batch, width], float32.

        Args:
            states:  Hidden states of real tokens, sequences end to end; those that are not live may be absent.
            lengths: Tokens of each sequence.

        Raises:
            KeyError: A live state is missing.
        """
        live = self.live()
        return self.fuse(states, lengths, live) if live else self.fuse_nothing(lengths)

    @abstractmethod
    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, ...]:
        """Return what `forward` does, of the states `live`, at least one. Reading a state may cost: read it once."""

    def fuse_nothing(self, lengths: Lengths) -> Float[Tensor, ...]:
        """Return what `forward` does where all hidden states were taken away."""
        device = next((tensor.device for tensor in (*self.parameters(), *self.buffers())), None)
        rows = len(lengths) if self.of_texts else int(lengths.sum())
        return torch.zeros(rows, self.width, device=device)

    def live(self) -> list[State]:
        """Return the hidden states that the next `forward` needs, in order: those that were not taken away."""
        return [state for state in self.states if state not in self._dropped]

    def penalty(self) -> Float[Tensor, ""] | None:
        """Return what is added to the loss of a step, None for nothing."""
        return None

    def diagnostics(self) -> dict[str, float]:
        """Return what is noted in the history, at each evaluation and a few times in between."""
        return {}

    def summary(self) -> dict[str, float]:
        """Return what is noted in the trial's row, as of its best epoch."""
        return {}

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return the trainable parameters, each in one group, those of `undecayed` in the last."""
        rest = {name: p for name, p in self.named_parameters() if p.requires_grad}
        own = [rest.pop(name) for name in self.undecayed if name in rest]
        return [ParameterGroup([*rest.values()]), ParameterGroup(own, self.mix_lr, weight_decay=0.0)]

    def unused_parameters(self) -> int:
        """Return how many trainable parameters can never affect what the fusion gives."""
        return 0

    def depth(self) -> int:
        """Return how many layers of the base model the method takes: the number of the deepest live state."""
        return max((state.number for state in self.live()), default=0)

    def weights_at_use(self) -> int:
        """Return how many weights, trained or not, act on a token at use."""
        return sum(parameter.numel() for parameter in self.parameters()) - self.unused_parameters()

    def kept_at_use(self, inner: int) -> int:
        """Return how many numbers a token must keep at use until the last hidden state is there.

        A fusion that is a sum keeps that, added up while the base model runs (thesis 5.3); of texts a token adds to
        its text's means and is done with; any other keeps all hidden states that it reads, unless the method says
        otherwise.

        Args:
            inner: K, the width of the hidden states.
        """
        if self.of_texts:
            return 0
        return self.width if self.terms() is not None else len(self.live()) * inner

    def by_state(self, prefix: str, values: Iterable[float]) -> dict[str, float]:
        """Return a value of each hidden state by name, for `diagnostics`."""
        return {f"{prefix}{state.name}": value for state, value in zip(self.states, values, strict=True)}

    def terms(self) -> dict[State, Term] | None:
        """Return what each live hidden state adds, where `forward` is `whole` of their sum; None where it is no sum.

        A sum can be added up while the base model runs (thesis 5.3). No gradient passes through the weights.
        """
        return None

    def whole(self, total: Float[Tensor, "... width"]) -> Float[Tensor, "... width"]:
        """Return what `forward` gives, of the sum of all `terms`."""
        return total

    def alike(self) -> tuple[Any, ...] | None:
        """Return what computes several such fusions as one, and what they then have in common; None: this runs alone.

        The former is a class that is made of the fusions, as `LayerMixes`.
        """
        return None

    def fit(self, batches: Iterable[Batch]) -> None:
        """Look at the training data, once, before training; the batches may be gone over several times."""

    def refit(self) -> bool:
        """Change what is trained after training has ended, and return whether to train again from there."""
        return False

    def finish(self) -> None:
        """Switch on what was to wait until training is over."""

    @contextmanager
    def without(self, states: Collection[State], *, renormalise: bool = True) -> Iterator[None]:
        """Evaluate as if `states` were not there, without training again: a mask over hidden states.

        Args:
            renormalise: Whether the weights of the rest then sum to what all summed to.
        """
        before = self._dropped, self._renormalise
        self._dropped, self._renormalise = frozenset(states), renormalise
        try:
            yield
        finally:
            self._dropped, self._renormalise = before
