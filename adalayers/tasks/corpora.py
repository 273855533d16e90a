"""Labelled datasets as they come: source splits of a folder, a local copy, the hub or its cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from adalayers.errors import BadInput
from adalayers.escaping import listed
from adalayers.storage import hub
from adalayers.tasks import embedded, files, tables
from adalayers.tasks.files import Source, Wanted
from adalayers.tasks.tables import Places, Tables

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
        """The hub config, None for the dataset's own default, and of a folder."""
        return None if self.folder else self.source.partition(":")[2] or None

    @property
    def roles(self) -> dict[str, str | None] | None:
        """The splits that the catalog knows, None for a dataset that is not in it."""
        if self.entry is None:
            return None
        return {"validation": self.entry.validation, "test": self.entry.test}


@dataclass(frozen=True)
class Corpus:
    """A dataset as it came.

    Attributes:
        tables: By role, the splits that are used.
        path: Where it was read: a folder, or an id on the hub.
        titles: By role, what people call its split: the name, or the files.
        unused: Splits, and files of data in the folder, that were not read, each with why.
        share: The part of train that becomes validation where there is none.
    """

    tables: Tables
    path: str
    titles: Mapping[str, str]
    unused: tuple[str, ...] = ()
    share: float | None = None

    @classmethod
    def of(
        cls,
        read: Tables,
        path: str,
        roles: Mapping[str, Source],
        unused: Mapping[Source, str],
        asked: Wanted,
    ) -> Corpus:
        """Return what `files.assign` chose."""
        titles = {role: source.title for role, source in roles.items()}
        plain = "not in --splits" if asked.names else "no role"
        left_out = sorted(f"{source.title} ({why or plain})" for source, why in unused.items())
        return cls(read, path, titles, tuple(left_out), asked.share)

    def place(self, role: str, row: int) -> str:
        """Return where a row of a split stands: "line 51 of train.jsonl"."""
        return self.tables.places.get(role, Places()).of(row)


def read(name: DatasetName, data_dir: str | Path | None, splits: Sequence[str] = ()) -> Corpus:
    """Return a dataset of the folder that was named, a copy in `data_dir`, or the hub.

    Args:
        name: Which.
        data_dir: Folder of local copies.
        splits: What `--splits` says of its roles.

    Raises:
        BadInput: If it cannot be had or read, or it is not plain which part of it is which split.
    """
    import datasets

    datasets.disable_progress_bars()
    asked = files.wanted(splits)
    if name.source == EMBEDDED:
        return _of_splits(name, embedded.read(name.name), "the package", asked)
    if name.folder is not None:
        return _read_folder(name, name.folder, asked)
    repository = name.id.rsplit("/", 1)[-1]
    repositories = [repository, repository.lower()]
    if name.config is None:
        copies = [name.name, *repositories]
    else:  # a clone of the whole repository may hold other configs
        copies = [name.name, *(f"{folder}/{name.config}" for folder in repositories), name.config]
    folder = hub.local_copy(copies, data_dir)
    if folder is None:
        come = _read_hub(name, f"dataset {name.source!r}{hub.looked_for(copies, data_dir)}")
        return _of_splits(name, come, name.source + (f"@{name.revision}" if name.revision else ""), asked)
    return _read_folder(name, folder, asked)


def _of_splits(name: DatasetName, splits: Mapping[str, Any], path: str, asked: Wanted) -> Corpus:
    """Return a dataset that came as splits."""
    sources = [Source(split, split) for split in splits]
    roles, unused = files.assign(path, sources, asked, names_kept=True, known=name.roles)
    read = Tables({role: splits[source.name] for role, source in roles.items()}, {})
    return Corpus.of(read, path, roles, unused, asked)


def _read_folder(name: DatasetName, folder: Path, asked: Wanted) -> Corpus:
    import datasets

    folder = folder.resolve()
    if (folder / "dataset_dict.json").exists() or (folder / "state.json").exists():
        wanted = f"wanted a dataset that was saved to disk in {str(folder)!r}, which cannot be read"
        with hub.refusing(wanted, "save it there anew"):
            saved = datasets.load_from_disk(str(folder), keep_in_memory=True)
        return _of_splits(
            name, saved if isinstance(saved, datasets.DatasetDict) else {"train": saved}, str(folder), asked
        )
    sources = files.find(folder)
    if not sources and not asked.names:
        there = listed(sorted(path.name for path in folder.iterdir()))
        raise BadInput(
            f"wanted files of data in {str(folder)!r}, which has {there or 'none'}; give a folder of files that are "
            f"named by split (train..., validation..., test...) and format ({', '.join(files.FORMS)}), or that of "
            "save_to_disk"
        )
    roles, unused = files.assign(str(folder), sources, asked, root=folder, known=name.roles)
    for source in roles.values():
        files.require_whole(source)
    read = tables.read(roles)
    for role, source in roles.items():
        if column := files.split_column(read.splits[role]):
            raise BadInput(
                f"wanted the rows of one split in {source.title} of {str(folder)!r}, its column {column!r} says train, "
                "test and so on for each row; write a file for each of its values"
            )
    return Corpus.of(read, str(folder), roles, unused, asked)


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
