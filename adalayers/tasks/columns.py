"""From a dataset's columns to inputs and labels: which column is the text, which the labels, what the classes."""

from __future__ import annotations

import itertools
import logging
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adalayers.errors import BadInput, unknown
from adalayers.tasks.kind import LabelColumn, TaskKind
from adalayers.tasks.split import Split

if TYPE_CHECKING:
    from adalayers.tasks.corpora import Corpus

logger = logging.getLogger(__name__)

IDENTIFIER = re.compile(r"(.*_)?(id|idx|guid|uid)")

MAX_CLASSES = 200
"""A label column with more distinct values than this holds something other than classes."""


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
    dataset, train = corpus.path, corpus.tables.splits["train"]
    if group in train.column_names and group not in (*text, label):
        train = train.remove_columns(group)
    features = train.features
    likely = _likely(train, dataset) if label is None else []
    if not text and len(likely) == 1:
        text, label = likely[0][:1], likely[0][1]
        logger.info(
            f"read as text {text[0]!r} and labels {label!r} of {dataset}; --text-column, --label-column name others"
        )
    text, label, fitting = _columns(dataset, features, text, label, bool(fallback_names), kinds, likely)
    per_word = fitting[0].per_word
    unlabelled = _unlabelled_rows(train, label, dataset, per_word=per_word)
    inputs: dict[str, tuple[list[Any], np.ndarray, np.ndarray | None]] = {}
    values: dict[str, list[Any]] = {}
    numbers: dict[str, int] = {}
    notes = []
    for role, table in corpus.tables.splits.items():
        where = f"{corpus.titles[role]} of {dataset}"
        advice = "" if role == "train" else f", or leave it out with --splits {role}=none"
        missing = [column for column in (*text, label) if column not in table.column_names]
        rows = [] if missing else _values(table, label, where)
        without = unlabelled(rows)
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
        if table.features[label] != features[label] and shape_of(features[label]) in ("class", "tags"):
            raise BadInput(f"wanted the classes of {label!r} in {where} to be train's, got others; cast it")
        if without and role == "train":
            raise BadInput(
                f"wanted a label in every row of column {label!r} of {where}, got {len(without)} without, the first in "
                f"{corpus.place(role, without[0])}; label or drop them"
            )
        if without:
            found = {str(rows[row]).strip() for row in without}
            signs = ", ".join(sorted({"empty" if sign in ("None", "nan", "") else sign for sign in found}))
            why = "some of their words" if per_word else f"{label!r} is {signs}, as in no row of train"
            notes.append(
                f"{len(without):,} of {len(rows):,} rows of {role} are left out as unlabelled: {why}"
            )
        index = np.delete(np.arange(len(rows)), without)
        rows = [rows[row] for row in index]
        texts = []
        for column in text:
            column_texts = _values(table, column, where)
            texts.append([column_texts[row] for row in index])
            for row, value, tags in zip(index.tolist(), texts[-1], rows, strict=True):
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
        groups = _groups(table, index, group, where, numbers) if group else None
        inputs[role] = pairs_or_texts, index, groups
        values[role] = list(itertools.chain.from_iterable(rows)) if per_word else rows
    label_column = LabelColumn(f"column {label!r} of {dataset}", features[label], values, fallback_names)
    for kind in fitting:
        names, labels = kind.read_labels(label_column)
        if kind.fits(names):
            break
    splits = {}
    for role, (texts, index, groups) in inputs.items():
        ends = np.cumsum([len(words) for words in texts])[:-1]
        own = np.split(labels[role], ends) if per_word else labels[role]
        splits[role] = Split(texts, own, index, groups)
    return Labelled(splits, names, kind, (*text, label), notes)


def _groups(table: Any, rows: np.ndarray, column: str, where: str, numbers: dict[str, int]) -> np.ndarray:
    """Return a number per value of a column in some rows, int64 [n]; `numbers` are those of values, and grow.

    Raises:
        BadInput: If there is no such column, or a row has no value of it.
    """
    if column not in table.column_names:
        raise unknown(f"column of {where}", column, table.column_names)
    values = [str(value).strip() for value in _values(table.select(rows), column, where)]
    if not {"", "None", "nan"}.isdisjoint(values):
        raise BadInput(f"wanted a value of {column!r} in every row of {where}, got none; fill it")
    return np.array([numbers.setdefault(value, len(numbers)) for value in values])


def _unlabelled_rows(
    train: Any, label: str, dataset: str, *, per_word: bool
) -> Callable[[Sequence[Any]], list[int]]:
    """Return what tells, of the labels of a split, which rows have none.

    A missing value is none, and so is an empty text, but for a tag of words that train has. So is -1, as the hub writes
    it, where no row of train has it; of numbers that are learned as such only where all are -1.
    """
    rows = _values(train, label, dataset)
    withheld = _unlabelled(rows)
    signs = {"", "-1", -1}
    if not withheld:
        signs -= {value for row in rows for value in (row if per_word and row is not None else (row,))}
    if not per_word:
        signs.add("")
    numeric = shape_of(train.features[label]).startswith("float")

    def none(value: Any) -> bool:
        if value is None or value != value:  # NaN
            return True
        return not numeric and (value.strip() if isinstance(value, str) and not per_word else value) in signs

    def unlabelled(rows: Sequence[Any]) -> list[int]:
        if numeric and _unlabelled(rows):
            return list(range(len(rows)))
        return [
            row
            for row, value in enumerate(rows)
            if value is None or any(map(none, value if per_word else (value,)))
        ]

    return unlabelled


def _values(table: Any, column: str, where: str) -> list[Any]:
    """Return a column's values; text that is no UTF-8, as damaged or wrongly saved files have it, is refused."""
    try:
        return list(table[column][:])
    except UnicodeDecodeError as error:
        raise BadInput(
            f"wanted UTF-8 text in column {column!r} of {where}, got byte {error.object[error.start]:#04x}; "
            "save it as UTF-8"
        ) from error


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
    dataset: str,
    features: Mapping[str, Any],
    text: tuple[str, ...],
    label: str | None,
    named: bool,
    kinds: Collection[TaskKind],
    likely: Sequence[tuple[str, ...]],
) -> tuple[tuple[str, ...], str, list[TaskKind]]:
    """Return the text columns, the label column and the kinds that they can make, the likeliest first.

    `named` says whether there are names for integer tags; `likely` is what `_likely` proposes.
    """
    shapes = {column: shape_of(feature) for column, feature in features.items()}
    listed = ", ".join(f"{column} ({shape})" for column, shape in shapes.items())
    for column in (*text, label):
        if column is not None and column not in shapes:
            raise unknown(f"column of {dataset}", column, shapes, hint=f"Its columns: {listed}.")
    label_shapes = shapes
    if label is not None:
        # Values without class names become classes only where the user says that the column holds labels.
        as_label = {"text": "class", "int": "class", "words": "tags"} | (
            {"word ints": "tags"} if named else {}
        )
        label_shapes = {label: as_label.get(shapes[label], shapes[label])}
        if not any(label_shapes[label] in kind.label_shapes for kind in kinds):
            cast = "cast it to a list of ClassLabel or to tag names"
            raise BadInput(
                f"wanted classes or numbers in column {label!r} of {dataset}, got {shapes[label]}; "
                f"{cast if shapes[label] == 'word ints' else 'name another'}"
            )
    # A column of identifiers is text to its type alone.
    texts = [(column,) for column in shapes if not IDENTIFIER.fullmatch(column.lower())]
    pairs: dict[tuple[tuple[str, ...], str], list[TaskKind]] = {}
    for (candidate, shape), kind, columns in itertools.product(
        label_shapes.items(), kinds, [text] if text else texts
    ):
        inputs = " and ".join(shapes[column] for column in columns).replace("text and text", "text pair")
        readable = inputs in kind.input_shapes and shape in kind.label_shapes
        if readable and candidate not in columns and (label or not kind.named_only):
            pairs.setdefault((columns, candidate), []).append(kind)
    if len(pairs) == 1:
        [((columns, candidate), fitting)] = pairs.items()
        return columns, candidate, fitting
    came = "several such pairs" if pairs else "none such"
    words = [column for column, shape in shapes.items() if shape == "words"]
    proposals = (
        [(*columns, candidate) for columns, candidate in pairs]
        or list(likely)
        or list(itertools.permutations(words, 2))
    )
    if len(proposals) == 2 and len({proposal[-1] for proposal in proposals}) == 1:
        proposals.append((*(proposal[0] for proposal in proposals), proposals[0][-1]))
    choices = "; ".join(
        f"--text-column {shlex.quote(','.join(columns))} --label-column {shlex.quote(candidate)}"
        for *columns, candidate in proposals
    )
    raise BadInput(
        f"wanted a class column next to a text column, or a tags column next to a words column, "
        f"got {came} in {dataset}; "
        + (f"try {choices}" if proposals else "name them with --text-column and --label-column")
        + f"\nIts columns: {listed}."
    )


def _likely(table: Any, dataset: str) -> list[tuple[str, ...]]:
    """Return the columns of texts and labels that a table without named classes may mean, the label last.

    Labels are numbers, or texts of which each occurs twice on average, as tags beside words do; columns of identifiers
    are neither, nor are those with one value or none.
    """
    shapes = {
        column: shape_of(feature)
        for column, feature in table.features.items()
        if not IDENTIFIER.fullmatch(column.lower())
    }
    if not {*shapes.values()} <= {"text", "int", "float32", "float64", "words", "null"}:
        return []
    labels, texts = [], []
    for column, shape in shapes.items():
        values = [value for value in _values(table, column, dataset) if value is not None]
        if shape == "words":
            values = list(itertools.chain.from_iterable(values))
        distinct = len({*values})
        if distinct > 1 and (2 * distinct <= min(len(values), 2 * MAX_CLASSES) or shape.startswith("float")):
            labels.append(column)
        elif distinct > 1 and shape in ("text", "words"):
            texts.append(column)
    return [
        (text, label)
        for label in labels
        for text in texts
        if (shapes[text] == "words") == (shapes[label] == "words")
    ]


def _unlabelled(rows: Iterable[Any]) -> bool:
    """Return whether no row has a label: the hub writes -1 where labels are withheld."""
    return all(
        value in (None, -1) for row in rows for value in (row if isinstance(row, (list, tuple)) else (row,))
    )
