"""Hidden states that another program computed, looked up by the number of their row as a backbone gives its own."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors import safe_open
from torch import Tensor, nn

from adalayers.backbones import states_folder
from adalayers.backbones.backbone import Backbone, Ids
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.states_folder import ROLES, StatesFolder, require
from adalayers.backbones.tokens import Encoded
from adalayers.states import State
from adalayers.tensors.ragged import Lengths, ragged_index

if TYPE_CHECKING:
    from adalayers.tasks.task import Task


class GivenStates(Backbone):
    """A backbone whose token ids are numbers of rows in the arrays of a folder, which stay on disk, mapped."""

    def __init__(self, source: BackboneSource):
        super().__init__(
            nn.Identity(),
            streams=source.streams,
            states=source.states,
            width=source.width,
            family=source.reading,
        )
        there = states_folder.read(source.folder)
        shards = list(itertools.chain(*there.shards.values()))
        self._files: list[Any] = [safe_open(shard.path, "pt") for shard in shards]
        self._ends = np.cumsum([shard.rows for shard in shards])
        self._names = dict(zip(source.streams[0].states(), there.meta["states"], strict=True))

    def of_sequences(
        self, input_ids: Ids, lengths: Lengths, states: Collection[State], token_types: Ids | None = None
    ) -> dict[State, Tensor]:
        rows = input_ids.cpu().numpy()
        shards = np.searchsorted(self._ends, rows, side="right")
        return {state: self._values(state, rows, shards).to(input_ids.device) for state in states}

    def _values(self, state: State, rows: np.ndarray, shards: np.ndarray) -> Float[Tensor, "tokens width"]:
        values = torch.zeros(len(rows), self.width)
        for shard in np.unique(shards):
            at = torch.from_numpy(np.flatnonzero(shards == shard))
            array = self._files[shard].get_tensor(self._names[state])
            values[at] = array[torch.from_numpy(rows)[at] - int(self._ends[shard]) + len(array)].float()
        return values


def encoded_states(states: StatesFolder, task: Task) -> dict[str, Encoded]:
    """Return by split of a task the rows of the arrays that its examples own, as if they were token ids.

    A validation split that was cut from train has its rows there.

    Raises:
        BadInput: A split has other rows than the dataset, or an example of words not a row for each.
    """
    lengths, firsts, first = {}, {}, 0
    for role in ROLES:
        own = (shard.lengths for shard in states.shards[role])
        lengths[role], firsts[role] = np.concatenate([np.zeros(0, np.int64), *own]), first
        first += int(lengths[role].sum())
    encoded = {}
    for role, split in task.splits.items():
        place = role if role in task.rows else "train"
        there, where = lengths[place], states.folder / place
        wanted = f"the hidden states of {task.rows[place]} examples, the rows of {place} of {task.name} in their order,"
        require(len(there) == task.rows[place], wanted, where, len(there))
        of_each, none = there[split.index], np.zeros(len(split), np.int64)
        columns = {"offsets": np.cumsum([0, *of_each]), "cut": none}
        if split.offsets is not None:
            words = np.diff(split.offsets)
            if len(wrong := np.flatnonzero(words != of_each)):
                i, example = wrong[0], task.place(role, int(wrong[0]))
                wanted = f"a row for each of the {words[i]} words of {example}, its first token's state,"
                require(False, wanted, where, of_each[i])
            of_words = np.concatenate([np.arange(n) for n in words])
            columns |= {"word_starts": of_words, "word_ends": of_words}
            columns |= {"word_offsets": split.offsets, "lost_words": none}
        rows = firsts[place] + ragged_index(np.cumsum([0, *there]), split.index)
        encoded[role] = Encoded(rows, **columns)
    return encoded
