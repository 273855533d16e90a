"""From a dataset's columns to inputs and labels: which column is the text, which the labels, what the classes."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adalayers.errors import BadInput, unknown
from adalayers.tasks.kind import Gold, Inputs, LabelColumn, TaskKind

if TYPE_CHECKING:
    from adalayers.tasks.tables import Corpus

IDENTIFIER = re.compile(r"(.*_)?(id|idx|guid|uid)")

MAX_CLASSES = 200
"""A label column with more distinct values than this holds something other than classes."""
UNTYPED = {"text", "int", "float32", "float64", "words", "null"}
"""Shapes that do not say whether a column holds labels."""


@dataclass(frozen=True)
class Split:
    """Examples of one split.

    Attributes:
        inputs: n texts, n pairs of texts, or n lists of words.
        labels: [items], one of each example, or those of all words end to end; classes are int64, numbers float32.
        index: int64 [n], the row of each example in the source split it came from.
        offsets: int64 [n + 1]; example i owns the items offsets[i]..offsets[i + 1]. None where an example is one item.
        groups: int64 [n], a number of those that belong together, the same in all splits; None where nothing says.
    """

    inputs: Inputs
    labels: np.ndarray
    index: np.ndarray
    offsets: np.ndarray | None = None
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.index)

    def gold(self, names: tuple[str, ...]) -> Gold:
        """Return the labels as predictions are scored against them; `names` are those of the classes."""
        return Gold(self.labels, names, self.offsets)

    def take(self, rows: np.ndarray) -> Split:
        """Return the examples at `rows` [m] of this split, in that order."""
        inputs: Any = [self.inputs[row] for row in rows]
        index, groups = self.index[rows], None if self.groups is None else self.groups[rows]
        if self.offsets is None:
            return Split(inputs, self.labels[rows], index, None, groups)
        words = np.split(self.labels, self.offsets[1:-1])
        labels = np.concatenate([self.labels[:0], *(words[row] for row in rows)])
        return Split(inputs, labels, index, _offsets(inputs), groups)


@dataclass(frozen=True)
class Labelled:
    """Inputs and labels as columns give them.

    Attributes:
        splits: By role.
        names: Of the classes.
        kind: The kind of task.
        columns: Of the texts, then of the labels.
        notes: What was left out, in words.
    """

    splits: dict[str, Split]
    names: tuple[str, ...]
    kind: TaskKind
    columns: tuple[str, ...]
    notes: list[str]


def labelled(
    corpus: Corpus,
    text: tuple[str, ...],
    label: str | None,
    fallback_names: tuple[str, ...],
    kinds: Collection[TaskKind],
    group: str | None = None,
) -> Labelled:
    """Read inputs and labels.

    Rows of validation and test that have no label are left out, and so is a test split without any. What stands for no
    label is decided here alone.

    Args:
        corpus: The dataset as it came.
        text: Text columns, two for pairs; () to infer them.
        label: Label column; None to infer it.
        fallback_names: Names, in order, of classes that are numbers without names.
        kinds: Kinds of which the columns may make the task one.
        group: Column of groups, which is not inferred to be another; a group has one number in all splits.

    Raises:
        BadInput: If columns, texts or labels are missing or do not fit.
    """
    dataset, train = corpus.path, corpus.splits["train"]
    if group in train.column_names and group not in (*text, label):
        train = train.remove_columns(group)
    features = train.features
    text, label, fitting = _columns(train, dataset, text, label, bool(fallback_names), kinds)
    per_word, shape = fitting[0].per_word, shape_of(features[label])
    labels_of_train = train[label][:]
    inputs: dict[str, tuple[list[Any], np.ndarray, np.ndarray | None]] = {}
    values: dict[str, list[Any]] = {}
    numbers: dict[str, int] = {}
    notes = []
    for role, table in corpus.splits.items():
        where = f"{corpus.titles[role]} of {dataset}"
        advice = "" if role == "train" else f", or leave it out with --splits {role}=none"
        missing = [column for column in (*text, label) if column not in table.column_names]
        rows = [] if missing else table[label][:]
        deciding = rows if shape.startswith("float") else labels_of_train
        without = _unlabelled_rows(rows, deciding, per_word=per_word)
        if role == "test" and not {*missing} & {*text} and len(without) == len(rows):
            continue
        if missing:
            raise BadInput(
                f"wanted column {missing[0]!r} in {where}, got {', '.join(table.column_names)}; name it so "
                f"there{advice}"
            )
        if not rows:
            raise BadInput(f"wanted examples in {where}, which is empty; fill it{advice}")
        if len(without) == len(rows):
            raise BadInput(f"wanted labels in column {label!r} of {where}, got none; label it{advice}")
        if table.features[label] != features[label] and shape in ("class", "tags"):
            raise BadInput(f"wanted the classes of {label!r} in {where} to be train's, got others; cast it")
        if without and role == "train":
            raise BadInput(
                f"wanted a label in every row of column {label!r} of {where}, got {len(without)} without, the first in "
                f"{corpus.place(role, without[0])}; label or drop them"
            )
        if without:
            notes.append(f"{len(without):,} of {len(rows):,} rows of {role} are left out as unlabelled")
        index = np.delete(np.arange(len(rows)), without)
        table, rows = table.select(index), [rows[row] for row in index]
        texts = [table[column][:] for column in text]
        for column, column_texts in zip(text, texts, strict=True):
            for row, value, tags in zip(index.tolist(), column_texts, rows, strict=True):
                if value is None or (per_word and None in value):
                    raise BadInput(
                        f"wanted text in column {column!r} of {where}, got nothing in {corpus.place(role, row)}; "
                        "fill or drop it"
                    )
                if per_word and len(tags) != len(value):
                    raise BadInput(
                        f"wanted a tag per word in {where}, got {len(tags)} for {len(value)} words in "
                        f"{corpus.place(role, row)}; fix it"
                    )
        pairs_or_texts = texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))
        inputs[role] = pairs_or_texts, index, _groups(table, group, where, numbers) if group else None
        values[role] = list(itertools.chain.from_iterable(rows)) if per_word else rows
    label_column = LabelColumn(f"column {label!r} of {dataset}", features[label], values, fallback_names)
    for kind in fitting:
        names, labels = kind.read_labels(label_column)
        if kind.fits(names, label_column.where):
            break
    splits = {}
    for role, (texts, index, groups) in inputs.items():
        splits[role] = Split(texts, labels[role], index, _offsets(texts) if per_word else None, groups)
    return Labelled(splits, names, kind, (*text, label), notes)


def _offsets(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    return np.cumsum([0, *map(len, sentences)])


def _groups(table: Any, column: str, where: str, numbers: dict[str, int]) -> np.ndarray:
    """Return a number per value of a column, int64 [n]; `numbers` are those of values, and grow.

    Raises:
        BadInput: If there is no such column, or a row has no value of it.
    """
    if column not in table.column_names:
        raise unknown(f"column of {where}", column, table.column_names)
    values = [str(value).strip() for value in table[column][:]]
    if not {"", "None", "nan"}.isdisjoint(values):
        raise BadInput(f"wanted a value of {column!r} in every row of {where}, got none; fill it")
    return np.array([numbers.setdefault(value, len(numbers)) for value in values])


def _unlabelled_rows(rows: Sequence[Any], deciding: Sequence[Any], *, per_word: bool) -> list[int]:
    """Return which rows have no label, of the labels of a split.

    A missing value is none, and so is an empty text, but for a tag of words that train has. So is -1, as the hub writes
    it, where no row of `deciding` has it, or every one: these are train's labels, or of numbers that are learned as
    such the split's own.
    """
    there = {value for row in deciding for value in (row if per_word and row is not None else (row,))}
    signs: set[Any] = {"", "-1", -1} - (set() if there <= {None, -1} else there)
    if not per_word:
        signs.add("")

    def none(value: Any) -> bool:
        plain = value.strip() if isinstance(value, str) and not per_word else value
        return plain is None or plain != plain or plain in signs  # NaN is not itself

    return [
        row
        for row, value in enumerate(rows)
        if value is None or any(map(none, value if per_word else (value,)))
    ]


def shape_of(feature: Any) -> str:
    """Return what a column can be: "text", "words", "class", "tags", "int", "word ints", or its type."""
    import datasets

    if isinstance(feature, (datasets.List, datasets.LargeList)):
        inner = shape_of(feature.feature)
        return {"text": "words", "class": "tags", "int": "word ints"}.get(inner, f"list of {inner}")
    if isinstance(feature, datasets.ClassLabel):
        return "class"
    dtype = str(getattr(feature, "dtype", type(feature).__name__))
    if dtype in ("string", "large_string"):
        return "text"
    return "int" if dtype.startswith(("int", "uint", "bool")) else dtype


def _columns(
    train: Any,
    dataset: str,
    text: tuple[str, ...],
    label: str | None,
    named: bool,
    kinds: Collection[TaskKind],
) -> tuple[tuple[str, ...], str, list[TaskKind]]:
    """Return the text columns, the label column and the kinds that they can make, the likeliest first.

    Where no label column is named and no type says which one holds classes, columns that repeat their values may, and
    others are texts. `named` says whether there are names for integer tags.
    """
    shapes = {column: shape_of(feature) for column, feature in train.features.items()}
    listed = ", ".join(f"{column} ({shape})" for column, shape in shapes.items())
    for column in (*text, label):
        if column is not None and column not in shapes:
            raise unknown(f"column of {dataset}", column, shapes, hint=f"Its columns: {listed}.")
    # A column of identifiers is text to its type alone.
    texts = [column for column in shapes if not IDENTIFIER.fullmatch(column.lower())]
    words = [column for column in texts if shapes[column] == "words"]
    untyped = label is None and {shapes[column] for column in texts} <= UNTYPED
    labels = [label] if label else list(shapes)
    if untyped:
        parts = {column: _part(train[column][:], shapes[column]) for column in texts}
        labels = [column for column in texts if parts[column] == "labels"]
        texts = [column for column in texts if parts[column] == "texts"]
    # Values without class names become classes only where nothing else can hold the labels.
    as_label = {"text": "class", "int": "class", "words": "tags"} if label or untyped else {}
    if label and named:
        as_label["word ints"] = "tags"
    label_shapes = {column: as_label.get(shapes[column], shapes[column]) for column in labels}
    if label and not any(label_shapes[label] in kind.label_shapes for kind in kinds):
        raise BadInput(
            f"wanted classes or numbers in column {label!r} of {dataset}, got {shapes[label]}; name another, or cast it"
        )
    pairs: dict[tuple[tuple[str, ...], str], list[TaskKind]] = {}
    for (candidate, shape), kind, columns in itertools.product(
        label_shapes.items(), kinds, [text] if text else [(column,) for column in texts]
    ):
        inputs = " and ".join(shapes[column] for column in columns).replace("text and text", "text pair")
        readable = inputs in kind.input_shapes and shape in kind.label_shapes
        if readable and candidate not in columns and (label or untyped or not kind.named_only):
            pairs.setdefault((columns, candidate), []).append(kind)
    if len(pairs) == 1:
        [((columns, candidate), fitting)] = pairs.items()
        return columns, candidate, fitting
    proposals = [(*columns, candidate) for columns, candidate in pairs] or list(
        itertools.permutations(words, 2)
    )
    if len(proposals) == 2 and len({proposal[-1] for proposal in proposals}) == 1:
        proposals.append((*(proposal[0] for proposal in proposals), proposals[0][-1]))
    choices = "; ".join(
        f"--text-column {shlex.quote(','.join(columns))} --label-column {shlex.quote(candidate)}"
        for *columns, candidate in proposals
    )
    raise BadInput(
        f"wanted a class column next to a text column, or a tags column next to a words column, "
        f"got {'several such pairs' if pairs else 'none such'} in {dataset}; "
        + (f"try {choices}" if proposals else "name them with --text-column and --label-column")
        + f"\nIts columns: {listed}."
    )


def _part(values: Sequence[Any], shape: str) -> str:
    """Return what a column of a table without named classes may hold: "labels", "texts", or "" for neither.

    Labels are numbers, or values that occur at least twice on average. A column with one value or none is neither.
    """
    given = [value for value in values if value is not None]
    if shape == "words":
        given = list(itertools.chain.from_iterable(given))
    distinct = len({*given})
    if distinct < 2:
        return ""
    if shape.startswith("float") or 2 * distinct <= min(len(given), 2 * MAX_CLASSES):
        return "labels"
    return "texts" if shape in ("text", "words") else ""
