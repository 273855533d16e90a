"""From a dataset's columns to inputs and labels: which column is the text, which the labels, what the classes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from adalayers.errors import BadInput, unknown
from adalayers.tasks.kind import Labels, TaskKind

MAX_CLASSES = 200
"""A label column with more distinct values than this is taken for something else than classes."""


def labelled(
    dataset: str,
    raw: Mapping[str, Any],
    roles: Mapping[str, str],
    text: tuple[str, ...],
    label: str | None,
    fallback_names: tuple[str, ...],
    kinds: Mapping[str, TaskKind],
) -> tuple[dict[str, tuple[list[Any], Labels]], tuple[str, ...], TaskKind]:
    """Return inputs and labels by role, the label names, and the kind; a test split without labels is left out.

    dataset:        what messages call it
    raw, roles:     source splits as `datasets.Dataset`, and which of them each role is
    text, label:    columns, two texts for pairs; () and None to infer them
    fallback_names: of classes that are numbers without names, in order
    kinds:          those of which the columns make the task one
    """
    features = raw[roles["train"]].features
    text, label, fitting = _columns(dataset, features, text, label, bool(fallback_names), kinds.values())
    per_word = fitting[0].per_word
    inputs: dict[str, list[Any]] = {}
    values: dict[str, list[Any]] = {}
    for role, source in roles.items():
        table, where = raw[source], f"split {source!r} of {dataset}"
        missing = [column for column in (*text, label) if column not in table.column_names]
        rows = _values(table, label, where) if not missing else []
        if role == "test" and _unlabelled(rows):
            continue
        if missing:
            raise BadInput(f"wanted column {missing[0]!r} in {where}, which has none; add it")
        if not len(table):
            raise BadInput(f"wanted examples in {where}, which is empty; fill it or leave it out")
        if _unlabelled(rows):
            raise BadInput(
                f"wanted labels in column {label!r} of {where}, got none; label it or leave it out"
            )
        if table.features[label] != features[label] and shape_of(features[label]) in ("class", "tags"):
            raise BadInput(f"wanted the classes of {label!r} in {where} to be train's, got others; cast it")
        given = [_values(table, column, where) for column in text]
        for column, of in zip(text, given, strict=True):
            _check_inputs(where, column, of, rows if per_word else None)
        values[role] = rows
        inputs[role] = given[0] if len(given) == 1 else list(zip(*given, strict=True))
    flat = {
        role: list(itertools.chain.from_iterable(rows)) if per_word else rows for role, rows in values.items()
    }
    where = f"column {label!r} of {dataset}"
    without = sum(value is None for column in flat.values() for value in column)
    if without:
        raise BadInput(f"wanted a label in every row of {where}, got {without} without; label or drop them")
    label_names, ids = fitting[0].read_labels(where, features[label], flat, fallback_names)
    kind = next((kind for kind in fitting if kind.fits(label_names)), fitting[0])
    if kind is not fitting[0]:
        label_names, ids = kind.read_labels(where, features[label], flat, fallback_names)
    splits = {}
    for role, texts in inputs.items():
        labels: Labels = ids[role]
        if per_word:
            lengths = [len(words) for words in texts]
            labels = np.split(ids[role], np.cumsum(lengths)[:-1])
        splits[role] = (texts, labels)
    return splits, label_names, kind


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
) -> tuple[tuple[str, ...], str, list[TaskKind]]:
    """Return the text columns, the label column and the kinds that they can make, the likeliest first.

    named: whether names for integer tags are at hand
    """
    shapes = {column: shape_of(feature) for column, feature in features.items()}
    listed = ", ".join(f"{column} ({shape})" for column, shape in shapes.items())
    for column in (*text, label):
        if column is not None and column not in shapes:
            raise unknown(f"column of {dataset}", column, shapes, hint=f"Its columns: {listed}.")
    # Values without class names become classes only where the user says that the column holds labels.
    label_shapes = dict(shapes)
    if label is not None:
        infer = {"text": "class", "int": "class", "words": "tags"} | ({"word ints": "tags"} if named else {})
        label_shapes[label] = infer.get(shapes[label], shapes[label])
        if not any(label_shapes[label] in kind.label_shapes for kind in kinds):
            advice = (
                "cast it to a list of ClassLabel or to tag names"
                if shapes[label] == "word ints"
                else "name another"
            )
            raise BadInput(
                f"wanted classes or numbers in column {label!r} of {dataset}, got {shapes[label]}; {advice}"
            )
    texts = [text] if text else [(column,) for column in shapes]
    pairs: dict[tuple[tuple[str, ...], str], list[TaskKind]] = {}
    for lab, kind, t in itertools.product([label] if label else shapes, kinds, texts):
        given = " and ".join(shapes[column] for column in t)
        fits = {"text and text": "text pair"}.get(given, given) in kind.input_shapes
        if (
            fits
            and lab not in t
            and label_shapes[lab] in kind.label_shapes
            and (label or not kind.named_only)
        ):
            pairs.setdefault((t, lab), []).append(kind)
    if len(pairs) > 1:
        # A column of identifiers is text to its type alone.
        pairs = {
            pair: fitting
            for pair, fitting in pairs.items()
            if not re.fullmatch(r"(.*_)?(id|idx|guid|uid)", pair[0][0].lower())
        } or pairs
    if len(pairs) == 1:
        [((columns, of), fitting)] = pairs.items()
        return columns, of, fitting
    came = "several such pairs" if pairs else "none such"
    choices = "; ".join(f"--text-column {','.join(t)} --label-column {lab}" for t, lab in pairs)
    if len(pairs) == 2 and len({lab for _, lab in pairs}) == 1:
        both = ",".join(column for t, _ in pairs for column in t)
        choices += f"; or both texts as a pair, --text-column {both}"
    raise BadInput(
        f"wanted a class column next to a text column, or a tags column next to a words column, "
        f"got {came} in {dataset}; name them with --text-column and --label-column\n"
        f"Its columns: {listed}." + (f"\nPossible: {choices}." if pairs else "")
    )


def _unlabelled(rows: Iterable[Any]) -> bool:
    """Whether no row has a label: the hub writes -1 where labels are withheld."""
    return all(
        value in (None, -1) for row in rows for value in (row if isinstance(row, (list, tuple)) else (row,))
    )


def _check_inputs(where: str, text: str, inputs: list[Any], tags: list[Any] | None) -> None:
    """Raise `BadInput` for a missing text, and for words and tags that differ in number."""
    for row, value in enumerate(inputs):
        if value is None or (tags is not None and None in value):
            raise BadInput(
                f"wanted text in column {text!r} of {where}, got nothing in row {row}; fill or drop it"
            )
        if tags is not None and (tags[row] is None or len(tags[row]) != len(value)):
            came = 0 if tags[row] is None else len(tags[row])
            raise BadInput(
                f"wanted a tag per word in {where}, got {came} for {len(value)} words in row {row}; mend it"
            )


def classes(
    where: str, feature: Any, flat: Mapping[str, list[Any]], fallback_names: tuple[str, ...]
) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    """Return the class names, and by role the classes as int64 [items]; arguments as of `TaskKind.read_labels`.

    Raises `BadInput` for too many or too few classes, and for numbers that are none.
    """
    inner = getattr(feature, "feature", feature)
    own_names = tuple(getattr(inner, "names", None) or ())
    label_names = own_names or (fallback_names if shape_of(inner) == "int" else ())
    if label_names:
        ids = {role: np.array(values, dtype=np.int64) for role, values in flat.items()}
        bad = sum(int(((array < 0) | (array >= len(label_names))).sum()) for array in ids.values())
        if bad:
            raise BadInput(
                f"wanted labels in 0..{len(label_names) - 1} in {where}, got {bad} others; label or drop them"
            )
    else:
        # The hub's order where it is known, so that a copy with names for numbers stays the same task.
        found = set(itertools.chain.from_iterable(flat.values()))
        ordered = list(fallback_names) if found <= set(fallback_names) else sorted(found)
        if len(ordered) > MAX_CLASSES:
            raise BadInput(
                f"wanted at most {MAX_CLASSES} classes in {where}, got {len(ordered)}; name another column"
            )
        place = {value: i for i, value in enumerate(ordered)}
        ids = {
            role: np.array([place[value] for value in values], dtype=np.int64)
            for role, values in flat.items()
        }
        label_names = tuple(str(value) for value in ordered)
    if len(label_names) < 2:
        raise BadInput(f"wanted at least two classes in {where}, got {len(label_names)}; name another column")
    return label_names, ids
