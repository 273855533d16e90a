"""One pass of a frozen backbone over a split: all hidden states, without padding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.tokens import Encoded
from adalayers.features.store import Writer
from adalayers.states import Pooling, State
from adalayers.tensors.ragged import pooled, ragged_index, token_batches

EXTRACT_TOKENS = 4096
"""Tokens, padding included, of one forward pass of the backbone."""

Progress = Callable[[int, int], None]
"""Called with (sequences done, sequences in all)."""


def extraction_batches(lengths: np.ndarray) -> list[np.ndarray]:
    """Return batches of sequences of like length, each of at most `EXTRACT_TOKENS` with padding, longest first."""
    return token_batches(lengths, EXTRACT_TOKENS)


def extract(
    writer: Writer,
    encoded: Encoded,
    backbone: Backbone,
    device: torch.device,
    on_progress: Progress | None = None,
    *,
    pooling: Pooling | None = None,
) -> None:
    """Append to `writer` what it lacks of the hidden states of `encoded`, in the order of `extraction_batches`.

    Args:
        pooling: What of each sequence is appended; None: all its tokens.

    Raises:
        OutOfRange: Where a hidden state does not fit the store's precision.
    """
    lengths = np.diff(encoded.offsets)
    batches = extraction_batches(lengths)
    backbone = backbone.to(device)
    done = sum(len(batch) for batch in batches[: writer.batches])
    for examples in batches[writer.batches :]:
        states = list(hidden_states(backbone, encoded, examples, device).values())
        if pooling:
            of_each = torch.from_numpy(lengths[examples])
            states = [pooled(state.float(), of_each, pooling) for state in states]
        writer.append(states)
        done += len(examples)
        if on_progress:
            on_progress(done, len(lengths))


def hidden_states(
    backbone: Backbone, encoded: Encoded, examples: np.ndarray, device: torch.device
) -> dict[State, Tensor]:
    """Return all hidden states of the sequences `examples`, each [tokens, K], end to end without padding."""
    tokens = ragged_index(encoded.offsets, examples)

    def of_tokens(column: np.ndarray) -> Tensor:
        return torch.from_numpy(column[tokens].astype(np.int64)).to(device)

    lengths = torch.from_numpy(encoded.offsets[examples + 1] - encoded.offsets[examples])
    types = None if encoded.token_types is None else of_tokens(encoded.token_types)
    return backbone.of_sequences(of_tokens(encoded.input_ids), lengths, backbone.states, types)
