"""Hidden-state variability by layer: where a task's classes lie apart in what the base model already gives."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from adalayers.data.trial_data import Passes, SplitData
from adalayers.errors import BadInput
from adalayers.features.features import Subset
from adalayers.fusion.variability import labelled, variabilities
from adalayers.measures.case_data import SEED, CaseData
from adalayers.results.measures import Measured
from adalayers.states import State

MAX_EXAMPLES = 1000
MAX_WORDS = 5000
"""About, of tasks with labels per word."""
BATCH = 32

UNMEASURED = Measured(
    title="layer of the lowest hidden-state variability", unit="number of the layer", distance=False
)


def measure(case: CaseData) -> Measured:
    """Return the number of the layer of the lowest nu (Xie et al. 2022); `by_layer` holds nu of all layers."""
    stream = case.prepared.source.streams[0]
    states = [State(stream.name, number) for number in range(1, stream.layers + 1)]
    split = _sample(case)
    if split.labels.dtype.kind not in "iu" or case.prepared.shape.n_outputs < 2:
        return replace(UNMEASURED, why="it takes labels that are classes")
    passes = Passes(split, states, torch.device("cpu"), BATCH)
    read = [(state, vectors.float(), labels) for state, vectors, labels in labelled(passes, states)]
    try:
        nus = variabilities(lambda: read, case.prepared.shape.n_outputs)
    except BadInput:
        return replace(UNMEASURED, why="the training examples drawn are of fewer than two classes")
    nus = {state: nu for state, nu in nus.items() if math.isfinite(nu)}
    if not nus:
        return replace(UNMEASURED, why="the classes' means are the same in every layer")
    vectors, counted = "words' first sub-tokens", "words"
    if split.word_offsets is None:
        vectors, counted = "the mean of a text's hidden states, without special tokens", "examples"
    return replace(
        UNMEASURED,
        how="the layer that tells the classes of the training data apart best without training, by the lowest "
        "ν = trace(S_w pinv(S_b)) / |Y|: S_w is the covariance within classes, S_b that of their |Y| means, of "
        + vectors,
        value=float(min(nus, key=nus.__getitem__).number),
        by_layer={state.name: nu for state, nu in nus.items()},
        n=sum(len(labels) for state, _, labels in read if state == states[0]),
        counted=counted,
    )


def _sample(case: CaseData) -> SplitData:
    """Return the training examples that are measured, sorted by length; their hidden states are computed."""
    encoded, split = case.encoded, case.prepared.task.splits["train"]
    drawn = np.random.default_rng(SEED).permutation(len(encoded.offsets) - 1)[:MAX_EXAMPLES]
    if encoded.word_offsets is not None:
        drawn = drawn[: 1 + np.searchsorted(np.cumsum(np.diff(encoded.word_offsets)[drawn]), MAX_WORDS)]
    drawn = drawn[np.argsort(np.diff(encoded.offsets)[drawn], kind="stable")]
    features = case.features(encoded)
    whole = SplitData(features, split.labels, split.index, encoded)
    return whole.subset(drawn, Subset(features, drawn))
