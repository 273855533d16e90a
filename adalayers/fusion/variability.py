"""Layer selection by hidden-state variability: one layer, chosen without training (Xie et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from adalayers.errors import BadInput
from adalayers.fusion.fusion import Examples, Fusion, Lengths, States, Term
from adalayers.fusion.projections import (
    ProjectedConfig,
    projected,
    projected_term,
    projection,
    projection_seed,
)
from adalayers.states import Shape, State
from adalayers.tensors.ragged import sequence_means, to_device


@dataclass(frozen=True, kw_only=True)
class VariabilityConfig(ProjectedConfig):
    """Hyperparameters of layer selection by variability, next to those of every method.

    read  selected: the layer of the lowest variability; last: the last one, as a control that adapts as many layers
    """

    fusion: ClassVar[str] = "variability"

    read: Literal["selected", "last"] = "selected"

    def check(self, shape: Shape) -> None:
        super().check(shape)
        if shape.n_outputs < 2:
            raise BadInput(
                f"wanted a task with at least two classes, which vary less within than between, got {shape.n_outputs} "
                "outputs; change fusion"
            )

    def build(self, shape: Shape) -> SelectedLayer:
        return SelectedLayer(self, shape)


class SelectedLayer(Fusion):
    """The layer whose hidden states vary least within classes, beside how they vary between them, and no other.

        nu = trace(S_w pinv(S_b)) / |Y|     (Xie et al. 2022, section 3.1; see `variability`)

    of the mean of each sequence's tokens without special ones, over the training data, before training. Of a task
    with labels per word it is that of the words' first sub-tokens and tags: our extension. What is given is Z_i of
    the layer with the lowest nu as it is, or f_i = N(gelu(Z_i) W_i^T), where W_i starts as that of the layer mix does.
    Until `fit` the choice is the last state. The paper tunes the base model up to that layer, or adapters in it;
    `depth` is what a base model that is tuned along with the fusion follows.
    """

    chosen: Tensor
    nus: Tensor

    def __init__(self, config: VariabilityConfig, shape: Shape):
        super().__init__(config.states(shape), config.width(shape))
        self.inner, self.n_classes, self.last = shape.width, shape.n_outputs, config.read == "last"
        self.register_buffer("chosen", torch.tensor(len(self.states) - 1))
        self.register_buffer("nus", torch.full((len(self.states),), math.nan, dtype=torch.float64))
        self._seed = projection_seed()
        # One projection, which starts as that of the state that is read: others would never be trained.
        self.project = (
            None if config.own_width else projection(self._seed, self.states[-1], self.inner, config.k)
        )
        self.selected = self.states[-1]
        self.register_load_state_dict_post_hook(SelectedLayer._note)

    def _note(self, *_: object) -> None:
        """Note the choice where asking for it does not wait for a GPU."""
        self.selected = self.states[int(self.chosen)]

    @property
    def _read(self) -> State:
        return self.states[-1] if self.last else self.selected

    def live(self) -> list[State]:
        """Return the one hidden state that is read, unless it is taken away."""
        return [] if self._read in self._dropped else [self._read]

    @torch.no_grad()
    def fit(self, batches: Iterable[Examples]) -> None:
        """Choose the layer with the lowest nu, the first of equals, and start its projection.

        Raises:
            BadInput: The data have fewer than two classes.
        """
        nus = variabilities(batches, self.states, self.n_classes)
        self.nus.copy_(torch.tensor([nus[state] for state in self.states], dtype=torch.float64))
        self.chosen.copy_(self.nus.argmin())
        self._note()
        if self.project is not None:
            start = projection(self._seed, self._read, self.inner, self.width)
            self.project.weight.copy_(start.weight)

    def fuse(self, states: States, lengths: Lengths, live: list[State]) -> Float[Tensor, "tokens width"]:
        """Return the layer that is read, float32."""
        hidden = states[self._read].float()
        return hidden if self.project is None else projected(self.project, hidden)

    def summary(self) -> dict[str, float]:
        """Return the number of the chosen layer, and nu of each candidate, `variability/nu_<state>`."""
        nus = self.by_state("variability/nu_", self.nus.tolist())
        finite = {name: nu for name, nu in nus.items() if math.isfinite(nu)}
        return {"variability/layer": self.selected.number, **finite}

    def depth(self) -> int:
        """Return the number of the chosen layer, whichever is read."""
        return self.selected.number

    def terms(self) -> dict[State, Term]:
        """Return the one layer that is read, as it is or projected."""
        term = Term(1.0) if self.project is None else projected_term(self.project, 1.0)
        return dict.fromkeys(self.live(), term)


def variability(features: Float[Tensor, "n K"], labels: Int[Tensor, " n"]) -> float:
    """Return nu = trace(S_w pinv(S_b)) / |Y| of vectors of classes Y (Xie et al. 2022, equations 1 to 3).

    S_w: the mean over classes of the covariance within each, which divides by its size: that of one vector is 0
    S_b: the covariance of the class means around their unweighted mean, which divides by |Y|; pinv is on the subspace
         that |Y| means span, of rank |Y| - 1 at most

    Classes without a vector are none of Y. Infinite where all class means are the same.
    Raises `BadInput` for fewer than two classes.
    """
    first = _Means(int(labels.max()) + 1, features.shape[1], features.device)
    first.add(features, labels)
    second = first.scatter()
    second.add(features, labels)
    return second.nu()


def variabilities(batches: Iterable[Examples], states: Sequence[State], n_classes: int) -> dict[State, float]:
    """Return nu of each hidden state over the examples, which are gone over twice; memory is that of a batch.

    Of sequences the mean of their tokens, without those that the tokeniser added; where nobody says which these are,
    without the first and the last one. A sequence that has no others is the mean of all its tokens.
    """
    first: dict[State, _Means] = {}
    for state, vectors, labels in labelled(batches, states):
        if state not in first:
            first[state] = _Means(n_classes, vectors.shape[1], vectors.device)
        first[state].add(vectors, labels)
    second = {state: means.scatter() for state, means in first.items()}
    for state, vectors, labels in labelled(batches, states):
        second[state].add(vectors, labels)
    return {state: scatter.nu() for state, scatter in second.items()}


def labelled(batches: Iterable[Examples], states: Sequence[State]) -> Iterator[tuple[State, Tensor, Tensor]]:
    """Yield state, vectors [n, K] and labels [n] of each batch, for each hidden state."""
    for batch in batches:
        given, text = batch.states, _text(batch) if batch.words is None else None
        for state in states:
            hidden = given[state]
            if text is None:
                vectors = hidden[batch.words]
            else:
                rows, lengths = text
                vectors = sequence_means(hidden[to_device(rows, hidden.device)].double(), lengths)
            yield state, vectors, batch.labels


def _text(batch: Examples) -> tuple[Tensor, Tensor]:
    """Return the rows of the tokens that are no special ones, and how many each sequence has of them."""
    lengths = batch.lengths
    special, ends = batch.special, lengths.cumsum(0)
    if special is None:
        special = torch.zeros(int(lengths.sum()), dtype=torch.bool)
        special[ends - 1], special[ends - lengths] = True, True
    owner = torch.repeat_interleave(lengths)
    counts = torch.bincount(owner[~special], minlength=len(lengths))
    kept = (~special | (counts == 0)[owner]).nonzero().squeeze(1)
    return kept, torch.where(counts == 0, lengths, counts)


class _Means:
    """The first pass over vectors by class: class means, in float64."""

    def __init__(self, n_classes: int, inner: int, device: torch.device):
        self.counts = torch.zeros(n_classes, dtype=torch.float64, device=device)
        self.sums = torch.zeros(n_classes, inner, dtype=torch.float64, device=device)

    def add(self, vectors: Float[Tensor, "n K"], labels: Int[Tensor, " n"]) -> None:
        members = _members(labels, len(self.counts))
        self.counts += members.sum(dim=1)
        self.sums += members @ vectors.double()

    def scatter(self) -> _Scatter:
        """Return what the second pass adds to. Raises `BadInput` for fewer than two classes."""
        present = self.counts > 0
        n = int(present.sum())
        if n < 2:
            raise BadInput(
                f"wanted training examples of at least two classes, got {n}: no layer can be chosen by them; "
                "raise train_examples"
            )
        means = self.sums / self.counts.clamp_min(1).unsqueeze(1)
        between = means[present] - means[present].mean(dim=0)
        # S_b = between^T between / |Y|, so pinv(S_b) = V diag(|Y| / s^2) V^T over its non-zero singular values s.
        _, sizes, axes = torch.linalg.svd(between, full_matrices=False)
        sizes, axes = sizes[: n - 1], axes[: n - 1]
        real = sizes > sizes.max() * max(between.shape) * torch.finfo(sizes.dtype).eps
        return _Scatter(self.counts, means, (axes[real] / sizes[real].unsqueeze(1)).T * math.sqrt(n))


class _Scatter:
    """The second pass: how far vectors lie from the mean of their class, along the axes of S_b alone."""

    def __init__(self, counts: Tensor, means: Tensor, axes: Tensor):
        self.counts, self.means, self.axes = counts, means @ axes, axes
        self.squares = torch.zeros_like(counts)

    def add(self, vectors: Float[Tensor, "n K"], labels: Int[Tensor, " n"]) -> None:
        away = vectors.double() @ self.axes - self.means[labels]
        self.squares += _members(labels, len(self.counts)) @ away.square().sum(dim=1)

    def nu(self) -> float:
        if not self.axes.shape[1]:
            return math.inf
        n = int((self.counts > 0).sum())
        return float((self.squares / self.counts.clamp_min(1)).sum()) / n**2


def _members(labels: Int[Tensor, " n"], n_classes: int) -> Float[Tensor, "classes n"]:
    """Return which vectors are of which class: sums by matrix product are the same in each run, on a GPU too."""
    return functional.one_hot(labels, n_classes).T.double()
