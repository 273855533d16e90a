"""Layer selection by hidden-state variability: one layer, chosen without training (Xie et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from adalayers.errors import BadInput
from adalayers.fusion.fusion import Fusion, Lengths, States, Term
from adalayers.fusion.projections import ProjectedConfig, projected, projected_term, projections, start_seed
from adalayers.states import Shape, State
from adalayers.tensors.ragged import sequence_means, to_device

if TYPE_CHECKING:
    from adalayers.data.trial_data import Batch


@dataclass(frozen=True, kw_only=True)
class VariabilityConfig(ProjectedConfig):
    """Hyperparameters of layer selection by variability, next to those of every method.

    read  selected: the layer of the lowest variability; last: the last one, as a control that adapts as many layers
    """

    fusion: ClassVar[str] = "variability"
    least_outputs: ClassVar[int] = 2  # what varies less within classes than between them

    read: Literal["selected", "last"] = "selected"


class SelectedLayer(Fusion, config=VariabilityConfig):
    """The layer whose hidden states vary least within classes, beside how they vary between them, and no other.

        nu = trace(S_w pinv(S_b)) / |Y|     (Xie et al. 2022, section 3.1; see `variabilities`)

    of the mean of each sequence's tokens without special ones, over the training data, before training. Of a task
    with labels per word it is that of the words' first sub-tokens and tags: our extension. What is given is Z_i of
    the layer with the lowest nu as it is, or f_i = N(gelu(Z_i) W_i^T), where W_i starts as that of the layer mix does.
    Until `fit` the choice is the last state. The paper tunes the base model up to that layer, or adapters in it;
    `depth` is what a base model that is tuned along with the fusion follows.
    """

    def __init__(self, config: VariabilityConfig, shape: Shape):
        super().__init__(config, shape)
        self.inner, self.n_classes, self.last = shape.width, shape.n_outputs, config.read == "last"
        self.chosen = nn.Buffer(torch.tensor(len(self.states) - 1))
        self.nus = nn.Buffer(torch.full((len(self.states),), math.nan, dtype=torch.float64))
        self._seed = start_seed()
        # One projection, which starts as that of the state that is read: others would never be trained.
        self.project = None if config.own_width else self._projection(self.states[-1])
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
    def fit(self, batches: Iterable[Batch]) -> None:
        """Choose the layer with the lowest nu, the first of equals, and start its projection.

        Raises:
            BadInput: The data have fewer than two classes.
        """
        nus = variabilities(lambda: labelled(batches, self.states), self.n_classes)
        self.nus.copy_(torch.tensor([nus[state] for state in self.states], dtype=torch.float64))
        self.chosen.copy_(self.nus.argmin())
        self._note()
        if self.project is not None:
            self.project.weight.copy_(self._projection(self._read).weight)

    def _projection(self, state: State) -> nn.Linear:
        return projections([state], self.inner, self.width, self._seed)[0]

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


Labelled = Iterable[tuple[State, Float[Tensor, "n K"], Int[Tensor, " n"]]]
"""Vectors of a hidden state and their classes, batch by batch."""


def variabilities(read: Callable[[], Labelled], n_classes: int) -> dict[State, float]:
    """Return nu = trace(S_w pinv(S_b)) / |Y| of each hidden state for classes Y (Xie et al. 2022, equations 1 to 3).

    S_w: the mean over classes of the covariance within each, which divides by its size: that of one vector is 0
    S_b: the covariance of the class means around their unweighted mean, which divides by |Y|; pinv is on the subspace
         that |Y| means span, of rank |Y| - 1 at most

    Classes without a vector are none of Y. Infinite where all class means are the same.

    Args:
        read:      Gives the vectors; called twice, so that memory is that of a batch.
        n_classes: How many classes there may be.

    Raises:
        BadInput: For fewer than two classes.
    """
    counts, means = dict[State, Tensor](), dict[State, Tensor]()
    for state, vectors, labels in read():
        members = _members(labels, n_classes)
        counts[state] = counts.get(state, 0) + members.sum(dim=1)
        means[state] = means.get(state, 0) + members @ vectors.double()
    axes, squares = dict[State, Tensor](), dict[State, Tensor]()
    for state, sums in means.items():
        sums /= counts[state].clamp_min(1).unsqueeze(1)
        axes[state] = _axes(sums[counts[state] > 0])
        means[state] = sums @ axes[state]
    for state, vectors, labels in read():
        away = vectors.double() @ axes[state] - means[state][labels]
        squares[state] = squares.get(state, 0) + _members(labels, n_classes) @ away.square().sum(dim=1)
    nus = dict[State, float]()
    for state, of_classes in squares.items():
        total = float((of_classes / counts[state].clamp_min(1)).sum())
        n = int((counts[state] > 0).sum())
        nus[state] = total / n**2 if axes[state].shape[1] else math.inf
    return nus


def _axes(means: Float[Tensor, "classes K"]) -> Float[Tensor, "K rank"]:
    """Return axes A of the subspace that class means span, so that trace(S pinv(S_b)) is that of A^T S A.

    Raises:
        BadInput: For fewer than two classes.
    """
    n = len(means)
    if n < 2:
        raise BadInput(
            f"wanted training examples of at least two classes, got {n}: no layer can be chosen by them; "
            "raise train_examples"
        )
    between = means - means.mean(dim=0)
    # S_b = between^T between / |Y|, so pinv(S_b) = V diag(|Y| / s^2) V^T over its non-zero singular values s.
    _, sizes, axes = torch.linalg.svd(between, full_matrices=False)
    sizes, axes = sizes[: n - 1], axes[: n - 1]
    real = sizes > sizes.max() * max(between.shape) * torch.finfo(sizes.dtype).eps
    return (axes[real] / sizes[real].unsqueeze(1)).T * math.sqrt(n)


def labelled(batches: Iterable[Batch], states: Sequence[State]) -> Labelled:
    """Yield state, vectors [n, K] and labels [n] of each batch, for each hidden state.

    Of sequences the mean of their tokens, without those that the tokeniser added; where nobody says which these are,
    without the first and the last one. A sequence that has no others is the mean of all its tokens.
    """
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


def _text(batch: Batch) -> tuple[Tensor, Tensor]:
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


def _members(labels: Int[Tensor, " n"], n_classes: int) -> Float[Tensor, "classes n"]:
    """Return which vectors are of which class: sums by matrix product are the same in each run, on a GPU too."""
    return functional.one_hot(labels, n_classes).T.double()
