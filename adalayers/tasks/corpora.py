"""Labelled datasets as they come: source splits of a folder, a local copy, the hub or its cache."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import math
import re
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from adalayers.console.progress import size
from adalayers.errors import BadInput
from adalayers.storage import hub

FILE_TYPES = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".txt", ".zip", ".gz")

UNPACKED_BYTES, UNPACKED_TIMES = 100_000_000, 100
"""Most that an archive or parquet file may unpack to: so many bytes, or times its size. Text packs to about a tenth."""
_OPENERS: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}

EMBEDDED = "embedded"
"""The source of datasets that lie in the package."""


@dataclass(frozen=True)
class CatalogEntry:
    """A dataset that has a name of its own here.

    Attributes:
        source: Hub id, with its config after a colon; `EMBEDDED` for those in the package.
        metric: What selects a model on validation.
        text: Text column; two of them for pairs.
        label: Label column.
        label_names: For copies that lost them (csv, pandas), in the hub's order.
        validation: Source split, None for a tenth of train.
        test: Source split, None where there is none.
        hub_revision: What to load from the hub where no revision is asked for.
        also: Further ids of the same data.
        by_config: What its configs on the hub are ("language"), each a dataset of its own, named "wikiann:de"; "" for
            one dataset.
    """

    source: str
    metric: str
    _: KW_ONLY
    text: str | tuple[str, str] = "text"
    label: str = "label"
    label_names: tuple[str, ...] = ()
    validation: str | None = "validation"
    test: str | None = "test"
    hub_revision: str | None = None
    also: tuple[str, ...] = ()
    by_config: str = ""


@dataclass(frozen=True)
class DatasetName:
    """A dataset's name, resolved: all spellings of one dataset give the same.

    Attributes:
        name: Short, lower case, safe in paths.
        source: Hub id and config, `EMBEDDED`, or "local:<name>".
        revision: The hub revision asked for.
        folder: The folder where one was named, resolved.
        entry: What the catalog says of it, None for datasets that are not in it.
    """

    name: str
    source: str
    revision: str | None = None
    folder: Path | None = None
    entry: CatalogEntry | None = None

    @property
    def id(self) -> str:
        """The hub id without its config."""
        return self.source.partition(":")[0]

    @property
    def config(self) -> str | None:
        """The hub config, None for the dataset's own default."""
        return self.source.partition(":")[2] or None


@dataclass(frozen=True)
class Corpus:
    """A dataset as it came.

    Attributes:
        splits: Source splits as `datasets.Dataset`.
        path: Where it was read: a folder, or an id on the hub.
        unused: Files of data in the folder that no split was read from, each with why.
    """

    splits: Mapping[str, Any]
    path: str
    unused: tuple[str, ...] = ()


def read(name: DatasetName, data_dir: str | Path | None) -> Corpus:
    """Return a dataset of the folder that was named, a copy in `data_dir`, or the hub.

    Raises:
        BadInput: If it cannot be had or read.
    """
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
        splits = _read_hub(name, f"dataset {name.source!r}{hub.looked_for(copies, data_dir)}")
        return Corpus(splits, name.source + (f"@{name.revision}" if name.revision else ""))
    holds_configs = folder.name in repositories and folder.name not in (name.name, name.config)
    return _read_folder(folder, name.config if holds_configs else None)


def roles(name: DatasetName, corpus: Corpus) -> dict[str, str]:
    """Return the source split of each role.

    Raises:
        BadInput: If a split is missing.
    """
    present = corpus.splits
    validation = next((split for split in ("validation", "valid", "dev", "val") if split in present), None)
    test = "test" if "test" in present else None
    if name.entry is not None:
        test = name.entry.test
        if validation is None or name.entry.validation != "validation":
            validation = name.entry.validation
    wanted = {"train": "train", "validation": validation, "test": test}
    sources = {role: split for role, split in wanted.items() if split is not None}
    missing = [split for split in sources.values() if split not in present]
    if missing:
        raise BadInput(
            f"wanted split {missing[0]!r} of {corpus.path}, which has {', '.join(present) or 'none'}; "
            "add it (file names begin with the split's name), or name another dataset"
        )
    return sources


def _read_folder(folder: Path, config: str | None = None) -> Corpus:
    import datasets
    from datasets.data_files import get_data_patterns

    # `load_dataset` would read a folder whose name is that of a file format ("csv") as that format.
    folder = folder.resolve()
    try:
        if (folder / "dataset_dict.json").exists() or (folder / "state.json").exists():
            saved = datasets.load_from_disk(str(folder), keep_in_memory=True)
            splits = dict(saved) if isinstance(saved, datasets.DatasetDict) else {"train": saved}
            return Corpus(splits, str(folder))
        # The user's cache is no place for copies of what is on disk already.
        with tempfile.TemporaryDirectory(prefix="adalayers-") as cache:
            root, files = folder, _parts(folder)
            if glob.has_magic(str(folder)):  # `datasets` would read its path as a pattern
                root = Path(cache) / "read" / "data"
                root.parent.mkdir()
                root.symlink_to(folder, target_is_directory=True)
                patterns = files or get_data_patterns(str(root))
                files = {split: [f"{root}/{name}" for name in names] for split, names in patterns.items()}
            builder = datasets.load_dataset_builder(
                str(root), config, data_files=files, cache_dir=f"{cache}/written"
            )
            used = {Path(file) for files in (builder.config.data_files or {}).values() for file in files}
            for path in used:
                _require_bounded(path)
            builder.download_and_prepare()
            formats = {path.suffix for path in used}
            unused = [
                f"{path.relative_to(root)} ({'named by no split' if path.suffix in formats else 'another format'})"
                for path in root.rglob("*")
                if _holds_data(path) and path not in used
            ]
            return Corpus(dict(builder.as_dataset(in_memory=True)), str(folder), tuple(sorted(unused)))
    except BadInput:
        raise
    except Exception as error:  # whatever a user's files make pandas, pyarrow or datasets raise
        raise BadInput(
            f"wanted a dataset in {str(folder)!r}, which cannot be read ({_cause(error)}); give a folder of "
            "parquet, csv, tsv or json files named by split (train..., validation..., test...), or save_to_disk's"
        ) from error


def _holds_data(path: Path) -> bool:
    return path.suffix in FILE_TYPES and not path.name.startswith("dataset_info")


def _require_bounded(path: Path) -> None:
    """Raise `BadInput` for a file that unpacks to far more than text does, or an archive whose size nothing tells."""
    from datasets.utils.extract import Extractor

    form = Extractor.infer_extractor_format(path) or ("parquet" if path.suffix == ".parquet" else None)
    if form is None:
        return
    packed, unpacked = path.stat().st_size, math.inf
    limit = max(UNPACKED_BYTES, UNPACKED_TIMES * packed)
    what, advice = f"of {size(packed)} would unpack to more than {size(limit)}", "unpack it there, and look"
    if form == "zip":
        unpacked = sum(info.file_size for info in zipfile.ZipFile(path).infolist())
    elif form == "parquet":
        unpacked, advice = _parquet_bytes(path, limit), "look"
    elif form in _OPENERS:
        unpacked = 0
        with _OPENERS[form](path) as stream:
            while unpacked <= limit and (chunk := stream.read(1 << 20)):
                unpacked += len(chunk)
    else:
        what = f"is a {form}"
    if unpacked > limit:
        raise BadInput(
            f"wanted files of text and labels, {path.name} in the dataset's folder {what}; {advice} at what is in it"
        )


def _parquet_bytes(path: Path, limit: int) -> int:
    """Return the bytes that a parquet file's columns take once read, or any number beyond `limit`.

    Its footer tells the size of its pages alone: one text of a page's dictionary may stand for a million rows.
    """
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        columns = [group.column(i) for group in groups for i in range(group.num_columns)]
        pages = sum(column.total_uncompressed_size for column in columns)
        told = max(pages, sum(column.num_values for column in columns))
        if told > limit:
            return told
        read = 0
        # As few rows at a time as stay below the limit even where each has the largest text that there can be.
        for batch in file.iter_batches(batch_size=max(1, limit // max(pages, 1))):
            read += batch.nbytes
            if read > limit:
                break
        return read


_SHARD = re.compile(r"(?P<split>\w+)-\d{5}-of-\d{5}\.\w+")
_PART = re.compile(r"(train|validation|test)_\w+")


def _parts(folder: Path) -> dict[str, list[str]] | None:
    """Return the files of each split where some are parts of one ("validation_matched"); else None.

    `datasets` goes by the split that a file's name begins with, and would read all parts as one.
    """
    files: dict[str, list[str]] = {}
    for path in sorted(folder.iterdir()):
        if shard := _SHARD.fullmatch(path.name):
            files.setdefault(shard["split"], []).append(path.name)
    return files if any(map(_PART.fullmatch, files)) else None


def _read_hub(name: DatasetName, what: str) -> dict[str, Any]:
    import datasets

    revision = name.revision or (name.entry.hub_revision if name.entry else None)
    try:
        hub.require_hub(what)
    except BadInput:
        # The cache cannot tell revisions apart, so one that was asked for needs the hub.
        cached = _read_cache(name) if name.revision is None else None
        if cached is None:
            raise
        return cached
    try:
        return dict(datasets.load_dataset(name.id, name.config, revision=revision))
    except Exception as error:  # the hub's own errors, its transport's, and those of the files it holds
        advice = "check the id, its config (id:config) and revision (id@revision)"
        if "scripts are no longer supported" in str(error):
            advice = f"try the hub's parquet edition, {name.source}@refs/convert/parquet"
        raise BadInput(
            f"wanted dataset {name.source!r} from the hub, got {_cause(error)}; {advice}, or give a local folder"
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
    return f"{type(error).__name__}: {hub.first_line(error)}"
