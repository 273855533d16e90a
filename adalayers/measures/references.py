"""What a score is worth: the same scores of simple answers and models, which take seconds and are trained on train.

Their settings are chosen on validation, as those of arms are. They are no arms: nothing is compared with them.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from adalayers.data.trial_data import Passes, SplitData, TrialData
from adalayers.errors import BadInput
from adalayers.features.features import LiveFeatures
from adalayers.results.files import PREFIXES
from adalayers.results.measures import Scores, read_references, write_references
from adalayers.states import State
from adalayers.storage.folder import Folder
from adalayers.tasks.task import Task
from adalayers.tensors.ragged import sequence_means

Predicted = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""By split, predictions and their probabilities, each [items]."""

MOST_ITEMS = 10_000
"""Of train that a linear model learns from, drawn at random: more take minutes."""
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Of a linear model's regularisation, inverse; validation chooses."""


def add_references(folder: Folder, task: Task, data: TrialData, wanted: Sequence[str]) -> None:
    """Write the scores of these references into `measures.json`, those that it lacks or that are of other data.

    Args:
        folder: The study's.
        task: Its texts and labels.
        data: The same examples with their hidden states.
        wanted: Names of `REFERENCES`; those that the task has none of are left out. Without any the page has no row.
    """
    key = {
        "data": data.provenance.splits,
        "backbone": data.provenance.backbone.fingerprint,
        **({"words": "last-token"} if _last(data).causal else {}),
    }
    there = read_references(folder, key)
    rows = {name: (there or {}).get(name) or _scores(name, task, data) for name in wanted}
    if rows != there:
        write_references(folder, key, {name: scores for name, scores in rows.items() if scores})


def _scores(name: str, task: Task, data: TrialData) -> Scores:
    """Return {"val/<score>": ..., "test/<score>": ...} of a reference; {} where the task has none such."""
    # Of solvers that have not converged: what they have is what counts.
    with warnings.catch_warnings(action="ignore"):
        predicted = REFERENCES[name](task, data)
    return {
        f"{PREFIXES[role]}/{score}": value
        for role, (predictions, probabilities) in (predicted or {}).items()
        for score, value in task.kind.scores(task.gold(role), predictions, probabilities).items()
    }


def _scored_splits(task: Task) -> list[str]:
    return [role for role in PREFIXES if role in task.splits]


def _majority(task: Task, data: TrialData) -> Predicted:
    """Return train's best constant answer for all: the most frequent label, of numbers their mean."""
    answer = task.kind.constant(task.gold("train"))
    return {role: _certain(np.full_like(task.gold(role).labels, answer)) for role in _scored_splits(task)}


def _frequent_tag(task: Task, data: TrialData) -> Predicted | None:
    """Return the most frequent tag of each word in train, of a word that is not there that of words seen once."""
    if not task.kind.per_word or _without_texts(data):
        return None
    tags: dict[str, Counter[int]] = defaultdict(Counter)
    for word, label in zip(_words(task, "train"), task.gold("train").labels.tolist(), strict=True):
        tags[word][label] += 1
    once = Counter(next(iter(of_word)) for of_word in tags.values() if of_word.total() == 1)
    unseen = (once or sum(tags.values(), Counter())).most_common(1)[0][0]
    answers = {word: of_word.most_common(1)[0][0] for word, of_word in tags.items()}
    return {
        role: _certain(np.array([answers.get(word, unseen) for word in _words(task, role)], dtype=np.int64))
        for role in _scored_splits(task)
    }


def _certain(predictions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return predictions, np.ones(len(predictions))


def _without_texts(data: TrialData) -> bool:
    """Return whether hidden states were computed elsewhere, of whatever the texts stand for."""
    return data.source is not None and data.source.is_states


def _words(task: Task, role: str) -> list[str]:
    return [word for words in task.splits[role].inputs for word in words]


def _tf_idf(task: Task, data: TrialData) -> Predicted | None:
    """Return what a linear model on TF-IDF of words and pairs of words says."""
    if task.kind.per_word or _without_texts(data):
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = {
        role: [text if isinstance(text, str) else "\n".join(text) for text in task.splits[role].inputs]
        for role in ("train", *_scored_splits(task))
    }
    chosen = np.sort(np.random.default_rng(0).permutation(len(texts["train"]))[:MOST_ITEMS])
    texts["train"] = [texts["train"][i] for i in chosen]
    vectors = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, max_features=100_000, token_pattern=r"\S+"
    )
    try:
        vectors.fit(texts["train"])
    except ValueError:  # texts without a word
        return None
    read = {role: (vectors.transform(of_role), np.arange(len(of_role))) for role, of_role in texts.items()}
    return _linear(task, read, task.gold("train").labels[chosen])


def _last(data: TrialData) -> State:
    """Return the last hidden state, of a decoder where there are two streams."""
    stream = data.shape.streams[-1]
    return State(stream.name, stream.layers)


def _linear_probe(task: Task, data: TrialData) -> Predicted | None:
    """Return what a linear model on the last hidden state says: of a text's mean, or of each word's token.

    That is the first of a word, and where states are causal the last, as arms have it by default.
    """
    last = _last(data)
    data = data.at_words("last-token" if last.causal else "first-token")
    if isinstance(data.splits["train"].features, LiveFeatures):
        return None  # passes of the base model are not for rows of scale
    if data.splits["train"].pooled and data.source is not None and data.source.pooling != "mean":
        return None  # another vector than the mean is all that is stored
    share = min(1.0, MOST_ITEMS / len(task.gold("train").labels))
    splits = data.view(math.ceil(share * len(data.splits["train"])), 0).splits
    try:
        read = {role: _vectors(split, last) for role, split in splits.items()}
    except BadInput:  # the study stores other states alone
        return None
    mean, scale = read["train"][0].mean(axis=0), read["train"][0].std(axis=0) + 1e-6
    scaled = {role: ((vectors - mean) / scale, rows) for role, (vectors, rows) in read.items()}
    return _linear(task, scaled, splits["train"].labels[read["train"][1]])


def _vectors(split: SplitData, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Return a vector [items, K] of each text or word of a split that has a state, and where its label stands."""
    vectors, rows = [], []
    for batch in Passes(split, [state], torch.device("cpu"), 128):
        values = batch.states[state].float()
        vectors.append(sequence_means(values, batch.lengths) if batch.words is None else values[batch.words])
        rows.append(batch.rows)
    return torch.cat(vectors).numpy(), np.concatenate(rows)


def _linear(task: Task, read: Mapping[str, tuple[Any, np.ndarray]], labels: np.ndarray) -> Predicted | None:
    """Return what the linear model says whose regularisation is best on validation.

    Args:
        read: By split, [items, features], and where the items' labels stand; train's are what it learns from.
        labels: Of train's items.
    """
    from sklearn.linear_model import LogisticRegression, Ridge

    numbers = labels.dtype.kind == "f"
    if not numbers and len(np.unique(labels)) < 2:
        return None

    def predicted(strength: float) -> Predicted:
        model = Ridge(alpha=1 / strength) if numbers else LogisticRegression(C=strength, max_iter=200)
        model.fit(read["train"][0], labels)
        said = {}
        for role in _scored_splits(task):
            cut, (features, rows) = task.kind.truncated_prediction(task.label_names), read[role]
            said[role] = _certain(np.full_like(task.gold(role).labels, cut))
            said[role][0][rows] = model.predict(features)
            if not numbers:
                said[role][1][rows] = model.predict_proba(features).max(axis=1)
        return said

    def score(said: Predicted) -> float:
        return task.kind.scores(task.gold("validation"), *said["validation"])[task.metric]

    return max(map(predicted, STRENGTHS), key=score)


REFERENCES: dict[str, Callable[[Task, TrialData], Predicted | None]] = {
    "majority": _majority,
    "tf-idf": _tf_idf,
    "frequent-tag": _frequent_tag,
    "linear-probe": _linear_probe,
}
