"""Datasets as tasks: texts or words with labels, in train, validation and test splits.

A name is known here, an id on the Hugging Face hub, or a folder. The splits are the thesis's (its section 6):
whatever brings no validation split gives up a tenth of train, stratified, seed 42; CoLA's and IMDB's always
do, and CoLA's test is GLUE's validation split, the only labelled one left.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from adalayers import hub, metrics
from adalayers.errors import BadInput, unknown

Kind = Literal["sequence", "token"]

EMBEDDED = "embedded"
VALIDATION_SHARE = 0.1
VALIDATION_SEED = 42
MAX_CLASSES = 200
"""A label column with more distinct values than this is taken for something else than classes."""

DEFAULT_METRIC: dict[Kind, str] = {"sequence": "f1_macro", "token": "f1"}

_CONLL_TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")


@dataclass(frozen=True)
class Known:
    """A dataset that has a name of its own here.

    source:       hub id, with its config after a colon; "embedded" for those of `demo_data`
    metric:       what selects a model on validation
    text, label:  columns
    label_names:  for copies that lost them (csv, pandas), in the hub's order
    validation:   source split, None for a tenth of train
    test:         source split
    hub_revision: what to load from the hub where no revision is asked for
    also:         further ids of the same data
    """

    source: str
    metric: str
    text: str = "text"
    label: str = "label"
    label_names: tuple[str, ...] = ()
    validation: str | None = "validation"
    test: str = "test"
    hub_revision: str | None = None
    also: tuple[str, ...] = ()


KNOWN: dict[str, Known] = {
    "imdb": Known(
        "stanfordnlp/imdb",
        "accuracy",
        label_names=("neg", "pos"),
        validation=None,
        also=("stanfordnlp/imdb:plain_text",),
    ),
    "cola": Known(
        "nyu-mll/glue:cola",
        "matthews",
        text="sentence",
        label_names=("unacceptable", "acceptable"),
        validation=None,
        test="validation",
        also=("glue:cola",),
    ),
    "conll2003": Known(
        "eriktks/conll2003",
        "f1",
        text="tokens",
        label="ner_tags",
        label_names=_CONLL_TAGS,
        # The main branch holds a loading script, which `datasets` no longer runs.
        hub_revision="refs/convert/parquet",
        also=("eriktks/conll2003:conll2003",),
    ),
    "acceptability-demo": Known(EMBEDDED, "matthews"),
    "entities-demo": Known(EMBEDDED, "f1"),
}

_BY_ID = {
    identifier.lower(): name
    for name, known in KNOWN.items()
    for identifier in (name, known.source, *known.also)
}
_BY_ID.pop(EMBEDDED)


@dataclass(frozen=True)
class Split:
    """Examples of one split.

    inputs: n texts (sequence), or n lists of words (token)
    labels: int64 [n] (sequence), or n arrays int64 [words] (token)
    index:  int64 [n], the row of each example in the source split it came from
    """

    inputs: list[str] | list[list[str]]
    labels: np.ndarray | list[np.ndarray]
    index: np.ndarray

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: np.ndarray) -> Split:
        """Return the examples at `rows` [m] of this split, in that order."""
        inputs: Any = [self.inputs[row] for row in rows]
        labels = (
            self.labels[rows] if isinstance(self.labels, np.ndarray) else [self.labels[row] for row in rows]
        )
        return Split(inputs, labels, self.index[rows])


@dataclass(frozen=True)
class Task:
    """A dataset ready to be learned.

    name:        short, lower case, safe in paths
    source:      the canonical id; "embedded"; "local:<name>" for a folder
    revision:    the hub revision asked for
    metric:      the selection metric, without prefix
    splits:      "train", "validation", and "test" where there is a labelled one
    fingerprint: 16 hexadecimal digits over inputs, labels and label names of the whole, uncapped splits: the
                 same for the hub and for a local copy of it
    """

    name: str
    source: str
    revision: str | None
    kind: Kind
    label_names: tuple[str, ...]
    metric: str
    splits: dict[str, Split]
    fingerprint: str

    def scores(
        self, labels: np.ndarray | Sequence[np.ndarray], predictions: np.ndarray | Sequence[np.ndarray]
    ) -> dict[str, float]:
        """Return the named scores of integer predictions: [n] (sequence) or [words] per sentence."""
        if self.kind == "sequence":
            return metrics.sequence_scores(np.asarray(labels), np.asarray(predictions), len(self.label_names))
        names = np.array(self.label_names)
        return metrics.token_scores(
            [names[sentence].tolist() for sentence in labels],
            [names[sentence].tolist() for sentence in predictions],
        )

    def baseline(self, split: str) -> float:
        """Return the selection metric of always answering the most frequent label of `split`."""
        labels = self.splits[split].labels
        flat = labels if isinstance(labels, np.ndarray) else np.concatenate(labels)
        return metrics.majority_score(self.metric, flat, len(self.label_names))


@dataclass(frozen=True)
class DatasetName:
    """A dataset's name, resolved: all spellings of one dataset give the same.

    name:     short, lower case, safe in paths
    source:   hub id and config, "embedded", or "local:<name>"
    config:   the hub config, None for the dataset's own default
    revision: the hub revision asked for
    folder:   the folder where one was named, resolved
    """

    name: str
    source: str
    config: str | None = None
    revision: str | None = None
    folder: Path | None = None

    @property
    def id(self) -> str:
        """The hub id without its config."""
        return self.source.partition(":")[0]

    @property
    def known(self) -> Known | None:
        known = KNOWN.get(self.name)
        return known if known is not None and known.source == self.source else None


def canonical(name: str) -> DatasetName:
    """Resolve a dataset's name: a known one, "id[:config][@revision]" on the hub, or a folder.

    A known name goes before a folder of that name (write ./cola for the folder); a folder before a hub id.
    Nothing is read. Raises `BadInput` for a plain name that is neither, and for a path that is no folder.
    """
    identifier, revision = hub.split_revision(name)
    plain = "/" not in identifier and os.sep not in identifier
    if not (plain and identifier.lower() in _BY_ID):
        path = Path(name).expanduser()
        if name and path.is_dir():
            path = path.resolve()
            safe = _safe(path.name)
            return DatasetName(safe, f"local:{safe}", folder=path)
        if name.startswith(("/", ".", "~")) or identifier.count("/") > 1:
            raise BadInput(
                f"wanted a dataset, got the path {name!r}, which is no folder; name an existing folder, "
                f"a hub id (owner/name), or one of {', '.join(sorted(KNOWN))}"
            )
    if identifier.lower() in _BY_ID:
        short = _BY_ID[identifier.lower()]
        source = KNOWN[short].source
        if source == EMBEDDED and revision is not None:
            raise BadInput(f"wanted a dataset, got {name!r}, but {short} is embedded; drop @{revision}")
        return DatasetName(short, source, source.partition(":")[2] or None, revision)
    if plain:
        raise unknown(
            "dataset", name, KNOWN, hint="A hub id (owner/name[:config][@revision]) or a folder works too."
        )
    repository, _, config = identifier.partition(":")
    short = _safe("-".join(filter(None, (hub.last_part(repository), config))))
    return DatasetName(short, identifier, config or None, revision)


def load_task(
    name: str,
    *,
    data_dir: str | Path | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    train_examples: int | None = None,
    eval_examples: int | None = None,
    seed: int = 0,
) -> Task:
    """Load a dataset as a task: from its folder, a local copy in `data_dir`, or the hub, in this order.

    Validation is set aside first, from all of train. Then `train_examples` are drawn from the rest, and
    `eval_examples` from validation and from test: uniformly, without replacement, by `seed`, in the order of
    the source. With one seed a smaller draw is part of a larger one. Asking for more than there is gives all.

    Raises `BadInput` for whatever of it cannot be had: the hub out of reach, no such dataset, columns missing
    or ambiguous, labels missing, a split empty.
    """
    for flag, wanted in (("--train-examples", train_examples), ("--eval-examples", eval_examples)):
        if wanted is not None and wanted < 1:
            raise BadInput(
                f"wanted at least 1 example as {flag}, got {wanted}; raise it or leave it out for all"
            )
    resolved = canonical(name)
    known = resolved.known
    if resolved.source == EMBEDDED:
        if text_column or label_column:
            raise BadInput(
                f"wanted column {text_column or label_column!r} of {resolved.name}, which has no columns; "
                "leave out --text-column and --label-column"
            )
        sources, label_names = _embedded(resolved.name)
    else:
        raw = _read(resolved, data_dir)
        roles = _roles(resolved, list(raw))
        text = text_column or (known.text if known else None)
        label = label_column or (known.label if known else None)
        fallback_names = known.label_names if known and label == known.label else ()
        sources, label_names = _labelled(resolved, raw, roles, text, label, fallback_names)
    kind: Kind = "sequence" if isinstance(sources["train"].labels, np.ndarray) else "token"
    splits = {"train": sources["train"], "validation": sources.get("validation"), "test": sources.get("test")}
    if splits["validation"] is None:
        splits["train"], splits["validation"] = _set_validation_aside(resolved, sources["train"])
    whole = {role: split for role, split in splits.items() if split is not None}
    caps = {"train": train_examples, "validation": eval_examples, "test": eval_examples}
    return Task(
        name=resolved.name,
        source=resolved.source,
        revision=resolved.revision,
        kind=kind,
        label_names=label_names,
        # Another label column is another task than the one the metric was chosen for.
        metric=known.metric if known and label_column in (None, known.label) else DEFAULT_METRIC[kind],
        splits={role: _draw(split, caps[role], seed) for role, split in whole.items()},
        fingerprint=_fingerprint(label_names, whole),
    )


def _safe(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.") or "dataset"


# Where the rows come from


def _embedded(name: str) -> tuple[dict[str, Split], tuple[str, ...]]:
    from adalayers import demo_data

    if name == "acceptability-demo":
        return {
            role: Split(
                [text for text, _ in rows], np.array([label for _, label in rows]), np.arange(len(rows))
            )
            for role, rows in demo_data.acceptability().items()
        }, demo_data.ACCEPTABILITY_LABELS
    return {
        role: Split([words for words, _ in rows], [np.array(tags) for _, tags in rows], np.arange(len(rows)))
        for role, rows in demo_data.entities().items()
    }, demo_data.ENTITY_LABELS


def _read(name: DatasetName, data_dir: str | Path | None) -> dict[str, Any]:
    """Return the source splits as `datasets.Dataset`."""
    import datasets

    datasets.disable_progress_bars()
    if name.folder is not None:
        return _read_folder(name.folder)
    # A folder named after the id alone may hold several configs, as a clone of the hub's repository does.
    repository = name.id.rsplit("/", 1)[-1]
    repositories = [repository, repository.lower()]
    copies = [name.name, *repositories]
    if name.config is not None:
        copies[1:1] = [*(f"{folder}/{name.config}" for folder in repositories), name.config]
    folder = hub.local_copy(copies, data_dir)
    if folder is None:
        return _read_hub(name)
    config = (
        name.config if folder.name in repositories and folder.name not in (name.name, name.config) else None
    )
    return _read_folder(folder, config)


def _read_folder(folder: Path, config: str | None = None) -> dict[str, Any]:
    import datasets

    # `load_dataset` would read a folder whose name is that of a file format ("csv") as that format.
    folder = folder.resolve()
    try:
        if (folder / "dataset_dict.json").exists() or (folder / "state.json").exists():
            saved = datasets.load_from_disk(str(folder), keep_in_memory=True)
            return dict(saved) if isinstance(saved, datasets.DatasetDict) else {"train": saved}
        # The user's cache is no place for copies of what is on disk already.
        with tempfile.TemporaryDirectory(prefix="adalayers-") as cache:
            return dict(datasets.load_dataset(str(folder), config, cache_dir=cache, keep_in_memory=True))
    except Exception as error:  # whatever a user's files make pandas, pyarrow or datasets raise
        raise BadInput(
            f"wanted a dataset in {str(folder)!r}, which cannot be read ({_cause(error)}); give a folder of "
            "parquet, csv or json files named by split (train..., validation..., test...), or save_to_disk's"
        ) from error


def _read_hub(name: DatasetName) -> dict[str, Any]:
    import datasets

    known = name.known
    revision = name.revision or (known.hub_revision if known else None)
    try:
        hub.require_hub(f"dataset {name.source!r}")
    except BadInput:
        # The cache cannot tell revisions apart, so one that was asked for needs the hub.
        cached = _read_cache(name) if name.revision is None else None
        if cached is None:
            raise
        return cached
    try:
        return dict(datasets.load_dataset(name.id, name.config, revision=revision))
    except Exception as error:  # the hub's own errors, its transport's, and those of the files it holds
        advice = "check the id, its config (id:config) and revision (id@revision), or give a local folder"
        if "scripts are no longer supported" in str(error):
            advice = (
                f"try the hub's parquet edition, {name.source}@refs/convert/parquet, or give a local folder"
            )
        raise BadInput(
            f"wanted dataset {name.source!r} from the hub, got {_cause(error)}; {advice}"
        ) from error


def _read_cache(name: DatasetName) -> dict[str, Any] | None:
    """Return what an earlier run downloaded, None where there is nothing."""
    import datasets

    offline = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        return dict(datasets.load_dataset(name.id, name.config))
    except (OSError, ValueError):
        return None
    finally:
        datasets.config.HF_HUB_OFFLINE = offline


def _cause(error: BaseException) -> str:
    """Return the first line of the innermost cause, which is what the reader can act on."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


# Which splits and columns


def _roles(name: DatasetName, present: list[str]) -> dict[str, str]:
    """Return role -> source split."""
    known = name.known
    if known is None:
        found = next((split for split in ("validation", "valid", "dev", "val") if split in present), None)
        wanted = {"train": "train", "validation": found, "test": "test" if "test" in present else None}
    else:
        wanted = {"train": "train", "validation": known.validation, "test": known.test}
    roles = {role: split for role, split in wanted.items() if split is not None}
    missing = [split for split in roles.values() if split not in present]
    if missing:
        raise BadInput(
            f"wanted split {missing[0]!r} of {_where(name)}, which has {', '.join(present) or 'none'}; "
            "add it (file names begin with the split's name), or name another dataset"
        )
    return roles


def _where(name: DatasetName) -> str:
    return str(name.folder) if name.folder is not None else name.source


_TEXT_OF = {"class": "text", "tags": "words"}
"""The shape of inputs that goes with each shape of labels."""


def _shape(feature: Any) -> str:
    """Return what a column can be: "text", "words", "class", "tags", "int", "word ints", or its type."""
    import datasets

    if isinstance(feature, (datasets.List, datasets.LargeList)):
        inner = _shape(feature.feature)
        return {"text": "words", "class": "tags", "int": "word ints"}.get(inner, f"list of {inner}")
    if isinstance(feature, datasets.ClassLabel):
        return "class"
    dtype = str(getattr(feature, "dtype", type(feature).__name__))
    if dtype in ("string", "large_string"):
        return "text"
    return "int" if dtype.startswith(("int", "uint", "bool")) else dtype


def _columns(
    name: DatasetName, features: Mapping[str, Any], text: str | None, label: str | None, named: bool
) -> tuple[str, str]:
    """Return the text column and the label column; `named` says that names for integer tags are at hand."""
    shapes = {column: _shape(feature) for column, feature in features.items()}
    listed = ", ".join(f"{column} ({shape})" for column, shape in shapes.items())
    for column in (text, label):
        if column is not None and column not in shapes:
            raise unknown(f"column of {_where(name)}", column, shapes, hint=f"Its columns: {listed}.")
    # Values without class names become classes only where the user says that the column holds labels.
    label_shapes = dict(shapes)
    if label is not None:
        infer = {"text": "class", "int": "class", "words": "tags"} | ({"word ints": "tags"} if named else {})
        label_shapes[label] = infer.get(shapes[label], shapes[label])
        if label_shapes[label] not in _TEXT_OF:
            advice = (
                "cast it to a list of ClassLabel or to tag names"
                if shapes[label] == "word ints"
                else "name another"
            )
            raise BadInput(
                f"wanted classes in column {label!r} of {_where(name)}, got {shapes[label]}; {advice}"
            )
    labels = [label] if label else [column for column, shape in shapes.items() if shape in _TEXT_OF]
    texts = [text] if text else [column for column, shape in shapes.items() if shape in _TEXT_OF.values()]
    pairs = [
        (t, lab) for lab in labels for t in texts if t != lab and shapes[t] == _TEXT_OF[label_shapes[lab]]
    ]
    if len(pairs) > 1:
        # A column of identifiers is text to its type alone.
        pairs = [
            pair for pair in pairs if not re.fullmatch(r"(.*_)?(id|idx|guid|uid)", pair[0].lower())
        ] or pairs
    if len(pairs) == 1:
        return pairs[0]
    came = "several such pairs" if pairs else "none such"
    choices = "; ".join(f"--text-column {t} --label-column {lab}" for t, lab in pairs)
    raise BadInput(
        f"wanted a class column beside a text column, or a tags column beside a words column, "
        f"got {came} in {_where(name)}; name them with --text-column and --label-column\n"
        f"Its columns: {listed}." + (f"\nPossible: {choices}." if pairs else "")
    )


# From columns to arrays


def _labelled(
    name: DatasetName,
    raw: Mapping[str, Any],
    roles: Mapping[str, str],
    text: str | None,
    label: str | None,
    fallback_names: tuple[str, ...],
) -> tuple[dict[str, Split], tuple[str, ...]]:
    """Return the source splits by role, and the label names; a test split without labels is left out."""
    features = raw[roles["train"]].features
    text, label = _columns(name, features, text, label, bool(fallback_names))
    is_token = _shape(features[text]) == "words"
    inputs: dict[str, list[Any]] = {}
    values: dict[str, list[Any]] = {}
    for role, source in roles.items():
        table, where = raw[source], f"split {source!r} of {_where(name)}"
        missing = [column for column in (text, label) if column not in table.column_names]
        rows = table[label][:] if not missing else []
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
        if table.features[label] != features[label] and _shape(features[label]) in _TEXT_OF:
            raise BadInput(f"wanted the classes of {label!r} in {where} to be train's, got others; cast it")
        inputs[role], values[role] = table[text][:], rows
        _check_inputs(where, text, inputs[role], rows if is_token else None)
    flat = {
        role: list(itertools.chain.from_iterable(rows)) if is_token else rows for role, rows in values.items()
    }
    label_names, ids = _classes(name, label, features[label], flat, fallback_names)
    splits = {}
    for role, texts in inputs.items():
        labels: np.ndarray | list[np.ndarray] = ids[role]
        if is_token:
            lengths = [len(words) for words in texts]
            labels = np.split(ids[role], np.cumsum(lengths)[:-1])
        splits[role] = Split(texts, labels, np.arange(len(texts)))
    return splits, label_names


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


def _classes(
    name: DatasetName,
    label: str,
    feature: Any,
    flat: Mapping[str, list[Any]],
    fallback_names: tuple[str, ...],
) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    """Return the label names, and by role the labels as int64 [n] (or [all words])."""
    where = f"column {label!r} of {_where(name)}"
    missing = sum(value is None for values in flat.values() for value in values)
    if missing:
        raise BadInput(f"wanted a label in every row of {where}, got {missing} without; label or drop them")
    inner = getattr(feature, "feature", feature)
    own_names = tuple(getattr(inner, "names", None) or ())
    label_names = own_names or (fallback_names if _shape(inner) == "int" else ())
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


# From source splits to a task's


def _set_validation_aside(name: DatasetName, source: Split) -> tuple[Split, Split]:
    """Return train and validation: a tenth of the source's train, stratified where an example has one label.

    The rows are those of `Dataset.train_test_split` with this seed, as in the thesis's released code. Its own
    steps are called here because it reads the labels one by one: 4 seconds for IMDB.
    """
    from datasets.utils.stratify import stratified_shuffle_split_generate_indices

    n = len(source)
    n_validation = math.ceil(VALIDATION_SHARE * n)
    rng = np.random.default_rng(VALIDATION_SEED)
    if isinstance(source.labels, np.ndarray):
        counts = np.unique(source.labels, return_counts=True)[1]
        if counts.min() < 2 or n_validation < len(counts):
            raise BadInput(
                f"wanted a stratified tenth of train as validation, got {n} examples in {_where(name)}, "
                f"the rarest of {len(counts)} classes {counts.min()} times; "
                "bring a validation split or more examples"
            )
        train, validation = next(
            stratified_shuffle_split_generate_indices(source.labels, n - n_validation, n_validation, rng=rng)
        )
    else:
        if n < 2:
            raise BadInput(
                f"wanted a tenth of train as validation, got {n} example in {_where(name)}; "
                "bring a validation split or more examples"
            )
        order = rng.permutation(n)
        train, validation = order[n_validation:], order[:n_validation]
    return source.take(np.sort(train)), source.take(np.sort(validation))


def _draw(split: Split, examples: int | None, seed: int) -> Split:
    """Return `examples` of a split, drawn uniformly and kept in its order; all of it where it has no more."""
    if examples is None or examples >= len(split):
        return split
    return split.take(np.sort(np.random.default_rng(seed).permutation(len(split))[:examples]))


def _fingerprint(label_names: tuple[str, ...], splits: Mapping[str, Split]) -> str:
    digest = hashlib.sha256(json.dumps(label_names).encode())
    for role, split in splits.items():
        words: Sequence[Any] = split.inputs
        labels = split.labels
        lengths = [1] * len(split)
        if not isinstance(labels, np.ndarray):
            lengths, words = [len(sentence) for sentence in words], list(itertools.chain.from_iterable(words))
            labels = np.concatenate(labels)
        texts = [word.encode("utf-8", "surrogatepass") for word in words]
        digest.update(f"{role} {len(split)}".encode())
        # Lengths go in beside the text, so that "a b" and "ab " differ wherever the border falls.
        for numbers in (lengths, [len(text) for text in texts], labels):
            digest.update(np.asarray(numbers, dtype="<i8").tobytes())
        digest.update(b"".join(texts))
    return digest.hexdigest()[:16]
