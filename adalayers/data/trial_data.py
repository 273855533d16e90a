"""A task's splits joined with their hidden states: all that a trial reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.errors import BadInput
from adalayers.features.features import Features, Subset
from adalayers.provenance import Provenance
from adalayers.states import Shape, State
from adalayers.tasks.kind import Gold, TaskKind
from adalayers.tensors.ragged import ragged_index, to_device

_DRAW_STREAM = 0x0D2A
"""Sets the draws of train's examples apart from all else that is drawn by small seeds."""


@dataclass(frozen=True)
class Batch:
    """One batch of a split.

    Attributes:
        states: {hidden state: [tokens, K]}, real tokens end to end, as precise as the features hold them; read when
            asked for.
        lengths: int64 [batch], tokens of each sequence, on the CPU.
        labels: [batch], or [words] for tokens.
        words: For tokens: int64 [words], places of the tokens that answer for the words in [tokens].
        rows: Where the labels stand in the split's flat `labels`; words lost to truncation have no row here.
        examples: int64 [batch], which sequences of the split these are.
        tokens: The split's token ids.
    """

    states: Mapping[State, Tensor]
    lengths: Tensor
    labels: Tensor
    words: Tensor | None
    rows: np.ndarray
    examples: np.ndarray
    tokens: Encoded

    @cached_property
    def input_ids(self) -> Tensor:
        """Token ids, int64 [tokens], end to end like `states`; for methods that run the backbone themselves."""
        return self._of_tokens(self.tokens.input_ids)

    @cached_property
    def token_types(self) -> Tensor | None:
        """Which text of a pair each token is of, int64 [tokens] like `input_ids`; None where nothing tells."""
        types = self.tokens.token_types
        return None if types is None else self._of_tokens(types)

    @cached_property
    def special(self) -> Tensor | None:
        """Which tokens the tokeniser added to the texts, bool [tokens] on the CPU; None where nobody knows."""
        special = self.tokens.special
        return None if special is None else torch.from_numpy(special[self._token_rows])

    @cached_property
    def _token_rows(self) -> np.ndarray:
        return ragged_index(self.tokens.offsets, self.examples)

    def _of_tokens(self, column: np.ndarray) -> Tensor:
        return to_device(column[self._token_rows].astype(np.int64), self.labels.device)


@dataclass(frozen=True)
class SplitData:
    """A split: features next to flat labels.

    Attributes:
        labels: [n], or [words of all sentences] for tokens; classes are int64.
        index: int64 [n], row of each example in the source split.
        tokens: Token ids of the same examples, and where their words are.
        pooled: Whether the features give one vector of each sequence, as if it had one token.
        groups: int64 [n], of examples that belong together; None where nothing says.
        last_tokens: Whether a word's last sub-token answers for it, not its first (`TrialData.at_words`).
    """

    features: Features
    labels: np.ndarray
    index: np.ndarray
    tokens: Encoded
    pooled: bool = False
    groups: np.ndarray | None = None
    last_tokens: bool = False

    def __len__(self) -> int:
        return len(self.index)

    @property
    def word_offsets(self) -> np.ndarray | None:
        """For words: int64 [n + 1], example i owns the words word_offsets[i]..word_offsets[i + 1]."""
        return self.tokens.word_offsets

    @property
    def word_places(self) -> np.ndarray:
        """Of words: int64 [words], place of the sub-token that answers for each in its sequence, -1 if cut away."""
        places = self.tokens.word_ends if self.last_tokens else self.tokens.word_starts
        assert places is not None
        return places

    def batch(self, examples: np.ndarray, states: Sequence[State], device: torch.device) -> Batch:
        """Return the sequences `examples` with the hidden states asked for."""
        lengths, (rows, owners, places) = self.lengths(examples), self.items(examples)
        words = None
        if self.word_offsets is not None:
            words = to_device((np.cumsum(lengths) - lengths)[owners] + places, device)
        read = self.features.read(examples, states, device)
        labels = to_device(self.labels[rows], device)
        return Batch(read, torch.from_numpy(lengths), labels, words, rows, examples, self.tokens)

    def lengths(self, examples: np.ndarray) -> np.ndarray:
        """Return how many vectors each of these sequences has, int64 [batch]."""
        return np.ones_like(examples) if self.pooled else self.features.lengths[examples]

    def items(self, examples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return of what these sequences are asked for, [items]: rows in `labels`, their sequences, places in these.

        Words lost to truncation are left out; a sequence as a whole is at its first place.
        """
        owners = np.arange(len(examples))
        if self.word_offsets is None:
            return examples, owners, np.zeros_like(examples)
        rows = ragged_index(self.word_offsets, examples)
        owners, places = np.repeat(owners, np.diff(self.word_offsets)[examples]), self.word_places[rows]
        kept = places >= 0
        return rows[kept], owners[kept], places[kept]

    @cached_property
    def trainable(self) -> np.ndarray:
        """The examples with a label to learn from, int64: not sentences without words, or with all words cut away."""
        all_examples = np.arange(len(self))
        if self.word_offsets is None:
            return all_examples
        labelled = np.concatenate([[0], np.cumsum(self.word_places >= 0)])
        return all_examples[np.diff(labelled[self.word_offsets]) > 0]

    def shuffled(self, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Return an epoch's batches: which examples share one is uniform at random; each is sorted by length.

        Examples without any label to learn from are left out: the loss of a batch of them is a mean of nothing.
        """
        order = np.random.default_rng([seed, epoch]).permutation(self.trainable)
        batches = (order[start : start + batch_size] for start in range(0, len(order), batch_size))
        # Like lengths side by side: the head then pads little. The order within a batch changes nothing else.
        return [batch[np.argsort(self.features.lengths[batch], kind="stable")] for batch in batches]

    def subset(self, examples: np.ndarray, features: Features) -> SplitData:
        """Return the split of these examples, with features of their own."""
        rows = examples if self.word_offsets is None else ragged_index(self.word_offsets, examples)
        own = {"features": features, "labels": self.labels[rows], "index": self.index[examples]}
        return dataclasses.replace(self, **own, tokens=self.tokens.take(examples), groups=None)


@dataclass(frozen=True)
class Passes:
    """All examples of a split in its order, batch by batch, read again each time they are gone over.

    Attributes:
        on_batch: Called before each batch.
    """

    split: SplitData
    states: Sequence[State]
    device: torch.device
    batch_size: int
    on_batch: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[Batch]:
        for start in range(0, len(self.split), self.batch_size):
            self.on_batch()
            examples = np.arange(start, min(start + self.batch_size, len(self.split)))
            yield self.split.batch(examples, self.states, self.device)


@dataclass(frozen=True)
class TrialData:
    """All that trials of one study share.

    Attributes:
        metric: The selection metric, without prefix.
        provenance: What determines it.
        kind: The kind of task.
        source: Where the base model is, for methods that run it themselves.
        layer_parameters: Of one layer of the base model, where known: what costs are computed from.
        pairs: Whether an example is two texts.
        max_length: Most tokens of a text; None where nothing says.
    """

    shape: Shape
    label_names: tuple[str, ...]
    metric: str
    splits: dict[str, SplitData]
    provenance: Provenance
    kind: TaskKind
    source: BackboneSource | None = None
    layer_parameters: int = 0
    _: KW_ONLY
    pairs: bool = False
    max_length: int | None = None

    def view(self, train_examples: int | None, draw: int) -> TrialData:
        """Return the data with `train_examples` of train, drawn uniformly without replacement, in train's order.

        The draw follows from `draw` alone, and with one draw a smaller number is part of a larger one. None, or as
        many as there are: all of train. Hidden states are read where they are, nothing is copied.

        Raises:
            BadInput: For examples without a label to learn from.
        """
        train = self.splits["train"]
        if train_examples is None or train_examples >= len(train):
            return self
        rng = np.random.default_rng([draw, _DRAW_STREAM])
        examples = np.sort(rng.permutation(len(train))[:train_examples])
        drawn = train.subset(examples, Subset(train.features, examples))
        if not len(drawn.trainable):
            raise BadInput(
                f"wanted labelled words in the {train_examples} examples of train that draw {draw} gives, got none; "
                "raise train_examples"
            )
        kind = self.kind.fitted(drawn.labels)  # nothing of the pool beyond the draw is known to the trial
        return dataclasses.replace(self, splits={**self.splits, "train": drawn}, kind=kind)

    def at_words(self, position: Literal["first-token", "last-token"]) -> TrialData:
        """Return the data with words answered for by their first sub-tokens, as they are, or by their last ones.

        Of a word that truncation cut in two the last sub-token that is left answers.
        """
        if position == "first-token":
            return self
        last = {name: dataclasses.replace(split, last_tokens=True) for name, split in self.splits.items()}
        return dataclasses.replace(self, splits=last)

    def gold(self, split: SplitData) -> Gold:
        """Return the labels of a split as predictions are scored against them."""
        return Gold(split.labels, self.label_names, split.word_offsets)
