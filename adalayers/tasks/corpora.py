"""Labelled datasets as they come: source splits of a folder, a local copy, the hub or its cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from adalayers.errors import BadInput
from adalayers.storage import hub
from adalayers.tasks import files, tables
from adalayers.tasks.files import Source
from adalayers.tasks.tables import Corpus

EMBEDDED = "embedded"
"""The source of datasets that lie in the package, and their folder: a parquet file each (docs/tasks.md)."""


@dataclass(frozen=True)
class CatalogEntry:
    """A dataset that has a name of its own here.

    Attributes:
        source: Hub id, with its config after a colon; `EMBEDDED` for those in the package.
        metric: What selects a model on validation.
        text: Text column; two of them for pairs.
        label: Label column.
        tags: Label column of a copy in column files, None for the last.
        label_names: For copies that lost them (csv, pandas), in the hub's order.
        validation: Source split, None for a tenth of train.
        test: Source split, None where there is none.
        hub_revision: What to load from the hub where no revision is asked for.
    """

    source: str
    metric: str
    _: KW_ONLY
    text: str | tuple[str, str] = "text"
    label: str = "label"
    tags: str | None = None
    label_names: tuple[str, ...] = ()
    validation: str | None = "validation"
    test: str | None = "test"
    hub_revision: str | None = None


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

    @property
    def roles(self) -> dict[str, str | None] | None:
        """The splits that the catalog knows, None for a dataset that is not in it."""
        return {"validation": self.entry.validation, "test": self.entry.test} if self.entry else None


def read(name: DatasetName, data_dir: str | Path | None, splits: Mapping[str, str]) -> Corpus:
    """Return a dataset of the folder that was named, a copy in `data_dir`, or the hub.

    Args:
        name: Which.
        data_dir: Folder of local copies.
        splits: By role what `--splits` names.

    Raises:
        BadInput: If it cannot be had or read, or it is not plain which part of it is which split.
    """
    import datasets

    datasets.disable_progress_bars()
    copies = _copies(name)
    if name.source == EMBEDDED:
        path, there = "the package", _read_embedded(name.name)
    elif (folder := name.folder or hub.local_copy(copies, data_dir)) is None:
        path = name.source + (f"@{name.revision}" if name.revision else "")
        there = _read_hub(name, f"dataset {name.source!r}{hub.looked_for(copies, data_dir)}")
    elif any((folder / file).exists() for file in ("dataset_dict.json", "state.json")):
        path, there = str(folder.resolve()), _read_saved(folder.resolve())
    else:
        return _read_files(name, folder.resolve(), splits)
    roles, unused = files.assign(path, [Source(split, split) for split in there], splits, known=name.roles)
    names = {role: source.name for role, source in roles.items()}
    used = {role: there[split] for role, split in names.items()}
    return Corpus(used, path=path, titles=names, unused=unused)


def _copies(name: DatasetName) -> list[str]:
    """Return what a dataset's folder in `data_dir` may be called; one of a revision says so, as nothing in it does."""
    repository, at = name.id.rsplit("/", 1)[-1], f"@{name.revision}" if name.revision else ""
    repositories = [repository, repository.lower()]
    if name.config is not None:  # a clone of the whole repository may hold other configs
        repositories = [*(f"{folder}/{name.config}" for folder in repositories), name.config]
    return [f"{each}{at}" for each in (name.name, *repositories)]


def _read_embedded(name: str) -> dict[str, Any]:
    import datasets
    import pyarrow.compute
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(Path(__file__).with_name(EMBEDDED) / f"{name}.parquet")
    rows = {split: table.filter(pyarrow.compute.field("split") == split) for split in files.ROLES}
    return {split: datasets.Dataset(of_split.drop_columns("split")) for split, of_split in rows.items()}


def _read_saved(folder: Path) -> dict[str, Any]:
    import datasets

    wanted = f"wanted a dataset that was saved to disk in {str(folder)!r}, which cannot be read"
    with hub.refusing(wanted, "save it there anew"):
        saved = datasets.load_from_disk(str(folder), keep_in_memory=True)
        splits = saved if isinstance(saved, datasets.DatasetDict) else {"train": saved}
        for table in splits.values():
            table.data.validate(full=True)
    return dict(splits)


def _read_files(name: DatasetName, folder: Path, splits: Mapping[str, str]) -> Corpus:
    sources = files.find(folder)
    if not sources and not splits:
        raise BadInput(
            f"wanted files of data in {str(folder)!r}, got none; give a folder of files that are named by split "
            f"(train..., validation..., test...) and format ({', '.join(files.FORMS)}), or that of save_to_disk"
        )
    roles, unused = files.assign(str(folder), sources, splits, root=folder, known=name.roles)
    for source in roles.values():
        files.require_whole(source)
    read = tables.read(roles)
    for role, source in roles.items():
        if column := files.split_column(read.splits[role]):
            raise BadInput(
                f"wanted the rows of one split in {source} of {str(folder)!r}, its column {column!r} says train, "
                "test and so on for each row; write a file for each of its values"
            )
    return replace(read, path=str(folder), unused=unused)


def _read_hub(name: DatasetName, what: str) -> dict[str, Any]:
    import datasets

    revision = name.revision or (name.entry.hub_revision if name.entry else None)
    try:
        hub.require_hub(what)
    except BadInput:
        # The cache cannot tell revisions apart, so one that was asked for needs the hub.
        if name.revision is None and (cached := _read_cache(name)):
            return cached
        raise
    advice = (
        f"check the id, its config (id:config) and its revision ({name.source}@refs/convert/parquet where the hub has "
        "a loading script), or give a local folder"
    )
    with hub.refusing(f"wanted dataset {name.source!r} from the hub, got none", advice):
        return dict(datasets.load_dataset(name.id, name.config, revision=revision))


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
