"""Hidden states: which a backbone has, which of them are read, and what a model knows of backbone and task."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

from adalayers.errors import BadInput, unknown

Head = Literal["sequence", "token"]
"""Whether a head gives outputs per sequence or per token."""
Value = bool | int | float | str | None
"""What a hyperparameter may be."""
Settings = dict[str, Value]
"""Hyperparameters by name."""
Precision = Literal["float16", "bfloat16", "float32"]
ComputeType = Literal["float32", "bfloat16"]
"""In what a backbone computes its hidden states."""
StreamChoice = Literal["encoder", "decoder", "both"]

NAMED_CHOICES = ("layers", "with-embeddings", "as-released", "lower-half", "upper-half")
"""Choices of hidden states; besides them some are listed, as in "layers:1,6,12"."""


Pooling = Literal["mean", "first-token", "last-token"]
"""What stands for a text's tokens: their mean, or the first or last one's state."""


class State(NamedTuple):
    """A hidden state of a backbone: the output of layer `number` of a stream, 0 its embeddings.

    Attributes:
        before_norm: the last state before the stream's final norm, where it has one
    """

    stream: str
    number: int
    before_norm: bool = False

    @property
    def name(self) -> str:
        """As columns name it: "01", "00" for the embeddings; "decoder_01" for streams that are no encoder."""
        number = f"{self.number:02d}"
        return number if self.stream == "encoder" else f"{self.stream}_{number}"

    @property
    def causal(self) -> bool:
        """Whether it depends on no token to the right of its own, but through an encoder."""
        return self.stream == "decoder"

    @property
    def key(self) -> str:
        """As files name it, each state of a backbone another: "encoder_01", "encoder_12_before_norm"."""
        return f"{self.stream}_{self.number:02d}" + ("_before_norm" if self.before_norm else "")


@dataclass(frozen=True)
class Stream:
    """Hidden states that a backbone gives in one order: its embeddings, then each layer's output.

    Attributes:
        layers:     l
        final_norm: whether the last state lies behind a final norm that the others have not passed
        embeddings: whether there is a state 0
    """

    name: str
    layers: int
    final_norm: bool = False
    embeddings: bool = True

    def states(self) -> list[State]:
        """Return all hidden states of the stream: embeddings, layers, and the last before the final norm."""
        plain = [State(self.name, number) for number in range(0 if self.embeddings else 1, self.layers + 1)]
        return [*plain, State(self.name, self.layers, before_norm=True)] if self.final_norm else plain


@dataclass(frozen=True)
class Shape:
    """What a model needs to know of its backbone and task.

    Attributes:
        n_outputs: numbers that the head gives per sequence or token
        streams:   what the backbone offers
        width:     K
        family:    transformers' model type
    """

    head: Head
    n_outputs: int
    streams: tuple[Stream, ...]
    width: int
    family: str

    @property
    def per_token(self) -> bool:
        """Whether the head gives outputs per token."""
        return self.head == "token"

    def depth(self, states: Collection[State]) -> int:
        """Return how many layers of the base model are run for these states: for a decoder's, the encoder's too."""
        before, deepest = 0, 0
        for stream in self.streams:
            numbers = [state.number for state in states if state.stream == stream.name]
            deepest = before + max(numbers) if numbers else deepest
            before += stream.layers
        return deepest


def chosen_streams(stream: StreamChoice, shape: Shape) -> tuple[Stream, ...]:
    """Return the streams that a choice names; a backbone of one stream has no choice but that.

    Raises:
        BadInput: A stream that the backbone does not have.
    """
    if len(shape.streams) == 1:
        (only,) = shape.streams
        if stream not in ("encoder", only.name):  # encoder is the default, and says nothing of a decoder
            raise BadInput(
                f"wanted stream to be {only.name}, the only one that this {shape.family!r} backbone has, "
                f"got stream={stream}; change stream"
            )
        return shape.streams
    return shape.streams if stream == "both" else tuple(each for each in shape.streams if each.name == stream)


def chosen_states(
    hidden_states: str, shape: Shape, *, stream: StreamChoice = "encoder", final_norm: bool = True
) -> list[State]:
    """Return the hidden states that a choice names, of each of the chosen streams.

    `as-released` pairs projections with the first states, as many as the released configuration of that
    family names: the number of layers (RoBERTa: the last layer is never used), one more for BERT and BART.

    Args:
        hidden_states: The choice, by name or as a list: "layers", "layers:1,6".
        shape:         What the backbone offers.
        stream:        Of which streams.
        final_norm:    False takes the last state before the stream's final norm, where it has one.

    Raises:
        BadInput: A choice that is none, or a layer or stream that the backbone does not have.
    """
    streams = chosen_streams(stream, shape)
    return [state for each in streams for state in _of_stream(hidden_states, each, shape.family, final_norm)]


@functools.lru_cache(maxsize=1024)
def _of_stream(hidden_states: str, stream: Stream, family: str, final_norm: bool) -> tuple[State, ...]:
    layers = stream.layers
    named = {
        "layers": range(1, layers + 1),
        "with-embeddings": range(layers + 1),
        "as-released": range(layers + 1 if family in {"bert", "bart"} else layers),
        # Of an odd number of layers the one in the middle is in both halves.
        "lower-half": range(1, -(-layers // 2) + 1),
        "upper-half": range(layers // 2 + 1, layers + 1),
    }
    numbers = named[hidden_states] if hidden_states in named else listed_layers(hidden_states) or []
    least = 0 if stream.embeddings else 1
    if beyond := [number for number in numbers if not least <= number <= layers]:
        raise BadInput(
            f"wanted hidden_states to name layers {least}..{layers}, got {beyond[0]}; change hidden_states"
        )
    before_norm = stream.final_norm and not final_norm
    return tuple(State(stream.name, number, before_norm and number == layers) for number in numbers)


def listed_layers(hidden_states: str) -> list[int] | None:
    """Return the numbers of "layers:1,6,12", None for a choice by name. Raises `BadInput` for what is neither."""
    if hidden_states in NAMED_CHOICES:
        return None
    name, colon, numbers = hidden_states.partition(":")
    parts = numbers.split(",")
    # No model has a layer of more digits, and Python refuses to read thousands of them.
    if name == "layers" and colon and all(part.isdecimal() and len(part) <= 6 for part in parts):
        return sorted({int(part) for part in parts})
    raise unknown("value of hidden_states", hidden_states, (*NAMED_CHOICES, "layers:1,6,12"))
