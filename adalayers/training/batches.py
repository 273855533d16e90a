"""The batches of a step, of models that are computed as one: what is read, how it is padded, and what drops out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from adalayers.features.features import in_whole
from adalayers.states import State
from adalayers.tensors import ragged
from adalayers.tensors.dropout import dropout_mask, factors, hashed, row_keys

if TYPE_CHECKING:
    from adalayers.training.members import Members

TRAIN = "train"
Examples = Sequence[np.ndarray]
"""Of each batch of a step."""
Pass = tuple[Examples, Examples]
"""Those that are passed at once, and those of the whole step."""


class Batches:
    """The batches that members pass in one step: of as many sequences, those of one place next to each other.

    A sequence has as many tokens as the longest of its place, its own and then its first one again, and lies with
    its neighbours in a group that is padded to one length.

    Args:
        group:    Whose they are.
        name:     Of the split; what is not trained on is one batch for all.
        examples: Of each batch.

    Attributes:
        members:  How many read each batch; those of one stand next to each other.
        groups:   Of like lengths, in which the sequences are padded.
        numbers:  By name, on the device:
                   words      int64 [batches, items], padded places of words with labels; absent: sequences have them
                   rows       int64 [batches * tokens], of hidden states of all batches, end to end; absent: all
                   of_member  int64 [members], the batch of each; absent where there is one
        training: Whether something drops out.
        stream:   That dropout draws from, of all members, who read one batch; None: it counts.
        keys:     By that, of dropout by its name in the model, int32 [batches, sequences], or of the fusion's
                  [batches, tokens].
    """

    def __init__(self, group: Members, name: str, examples: Examples):
        self.training, model = name == TRAIN, group.model
        assert model is not None, "a trial of another kind reads its batch by itself"
        readers, self.members = group.readers, group.counts
        if not self.training:
            readers, self.members = readers[:1], [len(group.trainers)]
        self._device, self._now = readers[0].device, slice(None)
        self.stream = None if ragged.on_gpu(self._device) else readers[0].generator
        splits = [reader.data.splits[name] for reader in readers]
        of_split = [*zip(splits, examples, strict=True)]
        every = [in_whole(split.features, own) for split, own in of_split]
        self._features, self._examples = every[0][0], np.concatenate([own for _, own in every])
        lengths = np.stack([split.lengths(own) for split, own in of_split])
        self.groups = ragged.PaddedGroups(lengths, model.head.pass_tokens, self._device)
        longest, numbers = self.groups.longest, dict[str, np.ndarray]()
        if len(readers) > 1:
            numbers["rows"] = ragged.stretched_rows(lengths.ravel(), np.tile(longest, len(lengths)))
            numbers["of_member"] = np.repeat(np.arange(len(readers)), self.members)
        if splits[0].word_offsets is not None:
            items = (split.items(own) for split, own in of_split)
            numbers["words"] = stacked([self.groups.starts[owners] + places for _, owners, places in items])
        self.numbers = {name: ragged.to_device(array, self._device) for name, array in numbers.items()}
        self.keys = dict[str, Tensor]()
        if self.training and self.stream is None:
            steps = [(reader.seed, reader.progress.epoch, reader.progress.step) for reader in readers]
            seen = [*zip(steps, (split.index[own] for split, own in of_split), strict=True)]
            of_tokens = longest, ragged.ragged_rows(np.zeros_like(longest), longest)
            for names, (n, places) in ((model.dropouts, (1, 0)), (model.fusion.dropouts(), of_tokens)):
                keys = [
                    [row_keys(step, where, np.repeat(index, n), places) for step, index in seen]
                    for where in names
                ]
                self.keys |= zip(names, ragged.to_device(np.array(keys), self._device), strict=True)

    def states(self, states: Sequence[State]) -> Iterable[Float[Tensor, "rows K"]]:
        """Return hidden states of the batches' tokens, end to end, one state after the other."""
        # A base model computes in its own type.
        with torch.autocast(self._device.type, enabled=False):
            read, rows = self._features.read(self._examples, states, self._device), self.numbers.get("rows")
            return (read[state] if rows is None else read[state].index_select(0, rows) for state in states)

    def padded(self, rows: Float[Tensor, "tokens members k"]) -> ragged.Groups:
        """Yield the members' rows group by group, [members, sequences, time, k]; dropout is now of that group."""
        first = 0
        for x, padding in self.groups.split(rows):
            self._now, first = slice(first, first + len(x)), first + len(x)
            yield x.movedim(2, 0), None if padding is None else self.by_member(padding)

    def labelled(self, read: Float[Tensor, "members rows k"]) -> Float[Tensor, "members items k"]:
        """Return the rows of what has a label, of a row of each sequence or of each token at its padded place."""
        words = self.numbers.get("words")
        if words is None:
            return read
        if len(words) == 1:
            return read.index_select(1, words[0])
        return read.take_along_dim(self.by_member(words).unsqueeze(-1), 1)

    def factors(
        self, where: str, ps: Sequence[float], like: Float[Tensor, "members rows ..."]
    ) -> Float[Tensor, "members rows ..."]:
        """Return what dropout multiplies rows by, [1, rows, ...] if it is the same for all members.

        Args:
            where: The part of the model.
            ps:    Each member's probability; where dropout draws, one for all.
        """
        if self.stream is not None:
            return dropout_mask(like[:1], ps[0], self.stream)
        keys = self.keys[where][:, self._now]
        return factors(self.by_member(hashed(keys, like.shape[2:])), ps)

    def by_member(self, each: Float[Tensor, "batches ..."]) -> Float[Tensor, "members ..."]:
        """Return what is given by batch, by member; of one batch as it is, [1, ...]."""
        return each.index_select(0, self.numbers["of_member"]) if "of_member" in self.numbers else each


def stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays as rows as long as the longest, zeros at their ends."""
    longest = max(len(row) for row in rows)
    return np.stack([np.pad(row, (0, longest - len(row))) for row in rows])


def in_passes(step: Examples, passes: int) -> list[Pass]:
    """Return a step in as many passes, as far as there are as many examples."""
    parts = zip(*(np.array_split(own, min(passes, len(own))) for own in step), strict=True)
    return [(part, step) for part in parts]
