"""Datasets as tasks: texts, pairs of texts or words with labels, in train, validation and test splits.

A name is known here, an id on the Hugging Face hub, or a folder. The splits are the thesis's (its section 6):
whatever brings no validation split gives up a tenth of train, stratified, seed 42; CoLA's and IMDB's always
do, and CoLA's test is GLUE's validation split, the only labelled one left.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adalayers.errors import BadInput, local_path, unknown
from adalayers.escaping import listed
from adalayers.provenance import Reading
from adalayers.storage import hub
from adalayers.tasks import columns, corpora, files
from adalayers.tasks.catalog import CATALOG
from adalayers.tasks.columns import Split
from adalayers.tasks.corpora import EMBEDDED, DatasetName
from adalayers.tasks.files import ROLES, Piece
from adalayers.tasks.kind import Gold, TaskKind
from adalayers.tasks.kinds import KINDS
from adalayers.tasks.tables import place

if TYPE_CHECKING:
    from adalayers.request import DataRequest

VALIDATION_SHARE = 0.1
VALIDATION_SEED = 42

_SHORT_NAMES = {
    identifier.lower(): name
    for name, entry in reversed(CATALOG.items())  # the first of several names of one id is meant by it
    for identifier in ({name} if entry.source == EMBEDDED else {name, entry.source})
}
"""The name in the catalog by name or id, lower case."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A dataset ready to be learned.

    Attributes:
        name: Short, lower case, safe in paths.
        source: The canonical id; "embedded"; "local:<name>" for a folder.
        revision: The hub revision asked for.
        kind: What kind of task it is, fitted to the labels of train.
        label_names: Names of the classes, () where labels are numbers.
        metric: The selection metric, without prefix.
        default_metric: What it is where nobody asks for another.
        splits: "train", "validation", and "test" where there is a labelled one.
        fingerprint: 16 hexadecimal digits over inputs, labels and label names of the whole, uncapped splits: the same
            for the hub and for a local copy of it.
        reading: Where it was read, and what of it.
        places: By split that has a source of its own, the files in which its rows stand.
        rows: By split that has a source of its own, how many rows that has, unlabelled ones included.
    """

    name: str
    source: str
    revision: str | None
    kind: TaskKind
    label_names: tuple[str, ...]
    metric: str
    default_metric: str
    splits: dict[str, Split]
    fingerprint: str
    reading: Reading
    places: Mapping[str, Sequence[Piece]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)

    def place(self, role: str, row: int) -> str:
        """Return where an example of a split stands in the data: "line 51 of train.jsonl"."""
        pieces = self.places.get(role) or self.places.get("train", ())
        return place(pieces, int(self.splits[role].index[row]))

    @cached_property
    def also_in_train(self) -> dict[str, np.ndarray]:
        """By split other than train, the `index` of its examples whose inputs also stand in train.

        Of the splits as they are here, after validation was set aside and the sizes were capped. Inputs are compared
        character by character.
        """

        def keys(split: Split) -> list[Any]:
            return [text if isinstance(text, str) else tuple(text) for text in split.inputs]

        others, train = {**self.splits}, {*keys(self.splits["train"])}
        del others["train"]
        return {role: of.index[[key in train for key in keys(of)]] for role, of in others.items()}

    @property
    def title(self) -> str:
        """What the task is, in words."""
        pairs = isinstance(self.splits["train"].inputs[0], tuple)
        described = self.kind.described(self.label_names)
        return f"{described} of pairs of texts" if pairs else described

    def gold(self, role: str) -> Gold:
        """Return the labels of a split as predictions are scored against them."""
        return self.splits[role].gold(self.label_names)

    def baseline(self, role: str) -> float:
        """Return what the best constant answer scores on a split, on the selection metric."""
        return self.kind.baseline(self.metric, self.gold(role))


def canonical(name: str, data_dir: str | Path | None = None) -> DatasetName:
    """Resolve a dataset's name: a known one, "id[:config][@revision]" on the hub, or a folder.

    A known name goes before a folder of that name (write ./cola for the folder); a folder before a hub id. A name
    that is known nowhere may be that of a folder in `data_dir`. Nothing is read.

    Raises:
        BadInput: If a plain name is neither, or a path is no folder.
    """
    identifier, revision = hub.split_revision(name)
    plain = "/" not in identifier
    short = _SHORT_NAMES.get(identifier.lower())
    if name and not (plain and short):
        path = local_path(name, "--dataset")
        local = path if path.is_dir() else hub.local_copy([name], data_dir) if plain else None
        if local:
            safe = hub.safe_name(local.name, "dataset")
            return DatasetName(safe, f"local:{safe}", folder=local)
        if path.is_file() or name.startswith(("/", ".", "~")) or identifier.count("/") > 1:
            raise BadInput(
                f"wanted a dataset, got the path {name!r}, which is no folder; name an existing folder (a file is "
                f"put into one of its own, called train{''.join(path.suffixes)}) or a hub id (owner/name)"
            )
    if short:
        entry = CATALOG[short]
        return DatasetName(short, entry.source, None if entry.source == EMBEDDED else revision, entry=entry)
    if plain:
        hint = "A hub id (owner/name[:config][@revision]) or a folder works too"
        raise unknown("dataset", name, CATALOG, hint=f"{hint}{hub.looked_for([name], data_dir)}.")
    return DatasetName(hub.safe_name(hub.last_part(identifier), "dataset"), identifier, revision)


def load_task(request: DataRequest) -> Task:
    """Load a dataset as a task: from its folder, a local copy in `data_dir`, or the hub, in this order.

    Validation is set aside first, from all of train. Then `train_examples` are drawn from the rest, and
    `eval_examples` from validation, `test_examples` from test: uniformly, without replacement, by `seed`, in the order
    of the source. With one seed a smaller draw is part of a larger one. Asking for more than there is gives all.

    Raises:
        BadInput: If any of it cannot be had: the hub out of reach, no such dataset, columns missing or ambiguous,
            labels missing, a split empty, no such metric.
    """
    name = canonical(request.dataset, request.data_dir)
    splits, share = files.wanted(request.splits)
    corpus = corpora.read(name, request.data_dir, splits)
    entry, told = name.entry, corpus.columns
    text: str | tuple[str, ...] = request.text_column or told[:1] or (entry.text if entry else ())
    of_file = told[1] if told else None
    if entry and entry.tags and told[:1] == ("0",):
        of_file = entry.tags
    label = request.label_column or of_file or (entry.label if entry else None)
    if isinstance(text, str):
        pair = tuple(part.strip() for part in text.split(","))
        text = pair if text not in corpus.splits["train"].column_names and len(pair) == 2 else (text,)
    if entry and request.label_column not in (None, entry.label):
        entry = None  # what it says of labels is not said of this column
    names = entry.label_names if entry else ()
    read = columns.labelled(corpus, text, label, names, KINDS.values(), request.group_column)
    kind, whole = read.kind, read.splits
    part = f"{100 * share:g}%" if share else "a tenth"
    roles = {"train": "", "validation": f"{part} of train"} | {role: corpus.titles[role] for role in whole}
    unlabelled = [f"{title} (no labels)" for role, title in corpus.titles.items() if role not in roles]
    if "validation" not in whole:
        aside = _set_validation_aside(corpus.path, whole["train"], kind, share or VALIDATION_SHARE)
        whole["train"], whole["validation"] = aside
        if aside[1].groups is not None:
            cut = len(aside[1]) / sum(map(len, aside))
            roles["validation"] = f"{100 * cut:.3g}% of train, in whole groups"
    whole = {role: whole[role] for role in ROLES if role in whole}
    sizes = dict(
        zip(ROLES, (request.train_examples, request.eval_examples, request.test_examples), strict=True)
    )
    drawn = {role: _draw(split, sizes[role], request.seed) for role, split in whole.items()}
    gold = {role: split.gold(read.names) for role, split in drawn.items()}
    groups = _group_notes(request.group_column, whole)
    notes = (*corpus.notes, *read.notes, *kind.notes(gold), *groups)
    reading = Reading(corpus.path, roles, (*unlabelled, *corpus.unused), read.columns, notes)
    default = entry.metric if entry else kind.default_metric
    asked = request.metric or dict(request.metrics).get(kind.name)
    task = Task(
        name=name.name,
        source=name.source,
        revision=name.revision,
        kind=kind.fitted(drawn["train"].labels),
        label_names=read.names,
        metric=asked or default,
        default_metric=default,
        splits=drawn,
        fingerprint=_fingerprint(read.names, whole),
        reading=reading,
        places=corpus.places,
        rows={role: len(table) for role, table in corpus.splits.items()},
    )
    _check_metric(task)
    return task


def _group_notes(column: str | None, splits: Mapping[str, Split]) -> list[str]:
    """Return how many groups there are in each split, and how many of others are in train too."""
    groups = {role: {*split.groups.tolist()} for role, split in splits.items() if split.groups is not None}
    shared = {role: len(own & groups["train"]) for role, own in groups.items() if role != "train"}
    sizes = ", ".join(f"{role} {len(own):,}" for role, own in groups.items())
    return [f"groups by {column!r}: {sizes}"] * bool(groups) + [
        f"{n:,} groups of {role} are in train too" for role, n in shared.items() if n
    ]


def _check_metric(task: Task) -> None:
    """Raise `BadInput` for a metric that the task does not have, or that a split to be scored leaves undefined."""
    choices = task.kind.metrics_of(task.label_names)
    if task.metric not in choices:
        raise unknown(f"metric of {task.name}", task.metric, choices, hint=f"It has {listed(choices, 20)}.")
    for role in [role for role in task.splits if role != "train"]:
        gold = task.gold(role)
        if task.metric not in task.kind.scores(gold, gold.labels, np.ones(len(gold.labels))):
            raise BadInput(
                f"wanted something in {role} of {task.name} that {task.metric} is about, got none in "
                f"{len(task.splits[role])} examples; name another --metric, or raise --eval-examples"
            )


def _set_validation_aside(where: str, source: Split, kind: TaskKind, share: float) -> tuple[Split, Split]:
    """Return train and validation: a part of the source's train, stratified where the kind has strata.

    The rows are those of `Dataset.train_test_split` with this seed, as in the thesis's released code. Its own
    steps are called here because it reads the labels one by one: 4 seconds for IMDB.
    """
    from datasets.utils.stratify import stratified_shuffle_split_generate_indices

    n = len(source)
    n_validation = math.ceil(share * n)
    rng = np.random.default_rng(VALIDATION_SEED)
    strata = kind.strata(source.labels)
    counts = [n] if strata is None else np.unique(strata, return_counts=True)[1]
    if source.groups is not None:
        train, validation = _whole_groups(where, source.groups, strata, share)
    elif min(counts) < 2 or min(n_validation, n - n_validation) < len(counts):
        raise BadInput(
            f"wanted {100 * share:g}% of train as validation, in equal shares of classes or of ranges of numbers, got "
            f"{n} examples in {where}, of the rarest of these {min(counts)}; bring a validation split, "
            "another share or more examples"
        )
    elif strata is not None:
        train, validation = next(
            stratified_shuffle_split_generate_indices(strata, n - n_validation, n_validation, rng=rng)
        )
    else:
        order = rng.permutation(n)
        train, validation = order[n_validation:], order[:n_validation]
    return source.take(np.sort(train)), source.take(np.sort(validation))


def _whole_groups(
    where: str, groups: np.ndarray, strata: np.ndarray | None, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of train and of about a share of whole groups, with about the same part of each stratum."""
    from sklearn.model_selection import StratifiedGroupKFold

    if not 0 < Fraction(share).limit_denominator(100) < 1:
        raise BadInput(
            f"wanted 1% to 99% of train as validation in whole groups, got {100 * share:.4g}%; choose a share"
        )
    needed, there = max(2, round(1 / min(share, 1 - share))), len(np.unique(groups))
    of_class = len(groups) if strata is None else int(np.bincount(strata).max())
    if min(there, of_class) < needed:
        raise BadInput(
            f"wanted at least {needed} groups in train of {where}, and as many examples of its largest class, to set "
            f"{share:.0%} of it aside as validation, got {there} and {of_class}; bring a validation split, or "
            "name another --group-column"
        )
    part = Fraction(share).limit_denominator(min(100, there, of_class))
    ordered = StratifiedGroupKFold(part.denominator, shuffle=True, random_state=VALIDATION_SEED)
    of_one = np.zeros(len(groups), dtype=int)
    with warnings.catch_warnings(action="ignore"):  # of classes rarer than folds
        folds = [fold for _, fold in ordered.split(of_one, of_one if strata is None else strata, groups)]
    # A group that is larger than a fold is one by itself: those of the wanted size are taken.
    folds.sort(key=lambda fold: abs(len(fold) * part.denominator - len(groups)))
    validation = np.concatenate(folds[: part.numerator])
    return np.setdiff1d(np.arange(len(groups)), validation), validation


def _draw(split: Split, examples: int | None, seed: int) -> Split:
    """Return `examples` of a split, drawn uniformly and kept in its order; all of it where it has no more."""
    if examples is None or examples >= len(split):
        return split
    return split.take(np.sort(np.random.default_rng(seed).permutation(len(split))[:examples]))


def label_bytes(labels: np.ndarray) -> bytes:
    """Return labels [items] as bytes that are the same on every machine."""
    return labels.astype("<f8" if labels.dtype.kind == "f" else "<i8").tobytes()


def _fingerprint(label_names: tuple[str, ...], splits: Mapping[str, Split]) -> str:
    digest = hashlib.sha256(json.dumps(label_names).encode())
    for role, split in splits.items():
        words: Sequence[Any] = split.inputs
        lengths = [1] * len(split)
        if len(split) and not isinstance(split.inputs[0], str):
            lengths, words = [len(sentence) for sentence in words], list(itertools.chain.from_iterable(words))
        texts = [word.encode("utf-8", "surrogatepass") for word in words]
        digest.update(f"{role} {len(split)}".encode())
        # Lengths go in next to the text, so that "a b" and "ab " differ wherever the border falls.
        for numbers in (lengths, [len(text) for text in texts]):
            digest.update(np.asarray(numbers, dtype="<i8").tobytes())
        digest.update(label_bytes(split.labels))
        digest.update(b"".join(texts))
        if split.groups is not None:
            digest.update(label_bytes(split.groups))
    return digest.hexdigest()[:16]
