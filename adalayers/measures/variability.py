"""Hidden-state variability by layer: where a task's classes lie apart in what the base model already gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import Passes, SplitData
from adalayers.errors import BadInput
from adalayers.features.extract import hidden_states
from adalayers.fusion.variability import labelled, variability
from adalayers.measures.given import SEED, Given
from adalayers.results.measures import Measured
from adalayers.states import State

EXAMPLES = 1000
WORDS = 5000
"""Most examples, and most words of tasks that label these, about."""
BATCH = 32

NOTHING = Measured(
    title="layer of the lowest hidden-state variability", unit="number of the layer", distance=False
)


def measure(given: Given) -> Measured:
    """Return the number of the layer of the lowest nu (Xie et al. 2022); `by_layer` holds nu of all layers."""
    stream = given.backbone.stream
    states = [State(stream.name, number) for number in range(1, stream.layers + 1)]
    split = _sample(given)
    if split.labels.dtype.kind not in "iu" or given.prepared.shape.n_outputs < 2:
        return replace(NOTHING, why="it takes labels that are classes")
    device = next(given.backbone.parameters()).device
    vectors: dict[State, list[Tensor]] = {state: [] for state in states}
    labels: list[Tensor] = []
    for state, some, of in labelled(Passes(split, states, device, BATCH), states):
        vectors[state].append(some.float())
        labels += [of] if state == states[0] else []
    every = torch.cat(labels)
    try:
        found = {state.name: variability(torch.cat(vectors[state]), every) for state in states}
    except BadInput:
        return replace(NOTHING, why="the training examples drawn are of fewer than two classes")
    by_layer = {name: nu for name, nu in found.items() if math.isfinite(nu)}
    if not by_layer:
        return replace(NOTHING, why="the classes' means are the same in every layer")
    lowest = min(by_layer, key=by_layer.__getitem__)
    return replace(
        NOTHING,
        how="the layer that tells the classes of the training data apart best without training, by the lowest "
        "ν = trace(S_w pinv(S_b)) / |Y|: S_w is the covariance within classes, S_b that of their |Y| means, of "
        + (
            "words' first sub-tokens"
            if split.word_starts is not None
            else "the mean of a text's hidden states, without special tokens"
        ),
        value=float(next(state.number for state in states if state.name == lowest)),
        by_layer=by_layer,
        n=len(every),
        of="examples" if split.word_starts is None else "words",
    )


def _sample(given: Given) -> SplitData:
    """Return the training examples that are measured, of like length side by side; their hidden states are computed."""
    encoded, split = given.encoded, given.prepared.task.splits["train"]
    drawn = np.random.default_rng(SEED).permutation(len(encoded.offsets) - 1)[:EXAMPLES]
    if encoded.word_offsets is not None:
        drawn = drawn[: 1 + np.searchsorted(np.cumsum(np.diff(encoded.word_offsets)[drawn]), WORDS)]
    drawn = drawn[np.argsort(np.diff(encoded.offsets)[drawn], kind="stable")]
    whole = SplitData(
        _Computed(given.backbone, encoded),
        split.flat_labels,
        split.index,
        encoded.word_starts,
        encoded.word_offsets,
        encoded,
    )
    return whole.subset(drawn, _Computed(given.backbone, encoded.take(drawn)))


class _Computed:
    """Hidden states that the backbone computes at each read: a sample needs no store."""

    def __init__(self, backbone: Backbone, encoded: Encoded):
        self.backbone, self.encoded = backbone, encoded
        self.lengths = np.diff(encoded.offsets)

    def read(
        self, examples: np.ndarray, states: Sequence[State], device: torch.device
    ) -> Mapping[State, Tensor]:
        every = hidden_states(self.backbone, self.encoded, examples, device)
        return {state: every[state] for state in states}
