"""Encoder, decoder or both, at which depth, read how: and the rates that suit hidden states of another scale."""

from typing import Any

from ray import tune

STREAMS = ["encoder", "decoder", "both"]
"""Those of them that a backbone has."""

DEPTHS = ["layers", "lower-half", "upper-half"]
"""All layers of a stream, its first half and its second."""

POOLINGS = ["attention", "mean", "last-token"]
"""How a text is read: the thesis's head, which attends in both directions, or by a mean or one token as they are."""

POSITIONS = ["first-token", "last-token"]
"""Which of its tokens answers for a word."""

SCIENTIFIC = {
    # Values that a backbone has not are left out once it is known: an encoder has no decoder.
    "stream": tune.choice(STREAMS),
    "hidden_states": tune.choice([*DEPTHS, "with-embeddings"]),
    "read_out": tune.choice([*POOLINGS, "first-token"]),
    "word_position": tune.choice(POSITIONS),
}

NUISANCE = {
    # Decoders' states are larger by far than encoders' before their last norm: half a decade around
    # the default on each side, for the mix a whole one above.
    "lr": tune.loguniform(3e-4, 3e-3),
    "mix_lr": tune.loguniform(3e-4, 3e-2),
}

GRID: dict[str, list[Any]] = {
    "stream": STREAMS,
    "hidden_states": DEPTHS,
    "read_out": POOLINGS,
    "word_position": POSITIONS,
    "lr": [1e-3],
    "mix_lr": [1e-3],
}
