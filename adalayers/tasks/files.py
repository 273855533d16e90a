"""Which file, or which split of a dataset, is train, validation and test: by its name, or as `--splits` says."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from adalayers.errors import BadInput, unknown
from adalayers.escaping import listed
from adalayers.storage.folder import numbered

ROLES = {
    "train": ("train", "training", "trn"),
    "validation": ("validation", "valid", "val", "dev", "devel", "development", "testa"),
    "test": ("test", "testing", "tst", "eval", "evaluation", "testb"),
}
"""The words that say a role, in any case, with an ending or numbers or without: "my_TrainSet", "test1"."""
_ROLE_OF = {word: role for role, words in ROLES.items() for word in words}
_WORD = re.compile(rf"({'|'.join(_ROLE_OF)})(set|data|dataset|split|file|examples)?")
_SHARD = re.compile(r"(?P<name>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})(-[0-9a-f]+)?")

COLUMN_FORMS = ("conll", "conllu", "iob", "iob2", "bio", "txt")
FORMS = ("parquet", "arrow", "jsonl", "ndjson", "csv", "tsv", *COLUMN_FORMS[:-1], "json", "txt")
"""The formats that are read, by the ending of a name. Where no name says train, the first that is there is the data."""
PACKED = ".gz"
"""The ending of a file that is packed, after that of its format: "train.csv.gz"."""
_ENDINGS = re.compile(rf"(\.({'|'.join(FORMS)}))?({re.escape(PACKED)})?$", re.IGNORECASE)
_NO_DATA = re.compile(
    r"(dataset_infos?|dataset_dict|state)\.json|(readme|licen[cs]e|notice|citation|requirements)\..*|(\.|__|~\$).*",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class DataFile:
    """A file of data.

    Attributes:
        path: Where it is.
        name: What messages call it: its path from the dataset's folder, with "/".
    """

    path: Path
    name: str

    @property
    def form(self) -> str:
        """One of `FORMS`; a file that is named and has no such ending is a column file."""
        return _form(self.name) or "txt"

    @property
    def stem(self) -> str:
        """The name without folders, and without the endings of format and packing."""
        return _ENDINGS.sub("", PurePosixPath(self.name).name)

    def content(self) -> bytes:
        """Return the bytes, unpacked where they are packed."""
        data = self.path.read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data

    def text(self) -> str:
        """Return the text, all line ends alike.

        Raises:
            BadInput: If it is no UTF-8, nor UTF-16 with its mark.
        """
        data = self.content()
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        try:
            text = data.decode("utf-16" if wide else "utf-8").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise BadInput(
                f"wanted UTF-8 text in {self.name}, got byte {data[error.start]:#04x} in line {line}; save it as UTF-8"
            ) from error
        return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


@dataclass(frozen=True)
class Piece:
    """What one file holds.

    Attributes:
        file: The file.
        columns: By name, values in the order of the rows: a list, or of Arrow.
        lines: The line on which each row begins; None for a file without lines.
        notes: What a reader may not expect of how it was read.
        told: The columns of words and of tags that the format itself tells, () for none.
        features: Types of columns that have one already.
    """

    file: DataFile
    columns: dict[str, Any]
    lines: Sequence[int] | None = None
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    features: Any = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True)
class Source:
    """What can be a split: a file, all shards of one, the files of a folder, or a split that has a name already.

    Attributes:
        name: What `--splits` calls it.
        split: Its own name alone, which says its role.
        files: In the order in which they are read; none of a split that is no file here.
    """

    name: str
    split: str
    files: tuple[DataFile, ...] = ()

    def __str__(self) -> str:
        """Return the files by name."""
        names = [file.name for file in self.files] or [self.name]
        return listed(names) if len(names) < 3 else f"{names[0]} to {names[-1]} ({len(names)} files)"


def wanted(splits: Sequence[str]) -> tuple[dict[str, str], float | None]:
    """Read `--splits`: ROLE=NAME each, or validation=N%.

    Returns:
        By role, the file, folder or split, "none" for a role that is to have none; and the part of train that is to
        become validation, None where nothing says.

    Raises:
        BadInput: For another role, one that is named twice, or a share that is none.
    """
    names: dict[str, str] = {}
    share = None
    for item in splits:
        role, _, name = item.partition("=")
        if not name:
            raise BadInput(
                f"wanted ROLE=FILE in --splits, got {item!r}; write train=FILE validation=FILE test=FILE"
            )
        if role not in ROLES:
            raise unknown("split in --splits", role, ROLES)
        if role in names:
            raise BadInput(
                f"wanted {role} once in --splits, got it twice; name the folder that holds several files"
            )
        if percent := re.fullmatch(r"(\d+(?:\.\d+)?)%", name):
            share = float(percent[1]) / 100
            if role != "validation" or not 0 < share < 1:
                raise BadInput(
                    f"wanted a part of train as validation in --splits, got {item!r}; write validation=10%"
                )
            name = "none"
        names[role] = name
    return names, share


def roles_in(name: str) -> set[str]:
    """Return the roles that a name says: {"train"} of "my_Trainset.v2"."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name)
    words = itertools.chain.from_iterable(re.split(r"[\W\d_]+", text.lower()) for text in (name, spaced))
    return {_ROLE_OF[match[1]] for match in map(_WORD.fullmatch, words) if match}


def exact_role(split: str) -> str:
    """Return the role of a split whose whole name is a word for it, else the name: "dev", not "dev_matched"."""
    match = _WORD.fullmatch(re.sub(r"[\W_]+", "", split.lower()))
    return _ROLE_OF[match[1]] if match else split


def split_column(table: Any) -> str | None:
    """Return the column of a table that says for each row which split it is of, None where none does."""
    for name in table.column_names:
        if getattr(table.features[name], "dtype", "") == "string":
            values = table.data[name].drop_null().unique().slice(0, 7).to_pylist()
            roles = {*map(exact_role, values)}
            if "train" in roles and len(roles) > 1 and roles <= ROLES.keys():
                return str(name)
    return None


def find(root: Path) -> list[Source]:
    """Return all that can be a split below a folder: files of data, shards of one as one."""
    paths = sorted(root.rglob("*"), key=lambda path: [*map(numbered, path.parts)])
    named = [(path, path.relative_to(root).as_posix()) for path in paths]
    files = [DataFile(path, name) for path, name in named if _holds_data(name) and path.is_file()]
    groups: dict[tuple[str, str, str], list[DataFile]] = {}
    for file in files:
        shard, folder = _SHARD.fullmatch(file.stem), file.name.rpartition("/")[0]
        key = (f"{folder}/{shard['name']}".lstrip("/"), shard["name"], file.form) if shard else None
        groups.setdefault(key or (file.name, file.stem, ""), []).append(file)
    return [Source(name, split, tuple(group)) for (name, split, _), group in groups.items()]


def require_whole(source: Source) -> None:
    """Raise `BadInput` where shards are missing, or there twice; one that is named alone is what was wanted."""
    named_alone = source.name == source.files[0].name
    shards = [shard for file in source.files if (shard := _SHARD.fullmatch(file.stem)) and not named_alone]
    totals = {shard["name"]: shard["total"] for shard in shards}
    wanted = sorted(f"{name}-{i:05d}-of-{n}" for name, n in totals.items() for i in range(int(n)))
    there = sorted(f"{shard['name']}-{shard['number']}-of-{shard['total']}" for shard in shards)
    if there != wanted:
        raise BadInput(
            f"wanted all {len(wanted)} files of {source.name}, each once, got {listed(there)}; add or remove some, or "
            f"read one alone with --splits {next(iter(roles_in(source.name)), 'train')}={source.files[0].name}"
        )


def assign(
    where: str,
    sources: Sequence[Source],
    asked: Mapping[str, str],
    *,
    root: Path | None = None,
    known: Mapping[str, str | None] | None = None,
) -> tuple[dict[str, Source], tuple[str, ...]]:
    """Return the source of each role, and the titles of those that have none, each with why.

    Files must each say a role; one alone is train. Where sources have names of splits, as the hub's and shards do, one
    that is called "test" and no more goes before "test_hard", and one that says no role is left out.

    Args:
        where: What messages call the data.
        sources: What can be a split.
        asked: By role what `--splits` names; one that it does not name goes by the sources' names.
        root: The folder of the files.
        known: Of a catalogued dataset, the split of each role, None for none.

    Raises:
        BadInput: For two sources of one role, a file without any, no train, or a name that is not there.
    """
    chosen = {role: _named(where, name, sources, root) for role, name in asked.items() if name != "none"}
    if len({*chosen.values()}) < len(chosen):
        raise BadInput(
            f"wanted another source for each split in --splits, got one twice in {where}; change one"
        )
    taken = {file for source in chosen.values() for file in source.files}
    forms = {file.form for file in taken} or _forms_of_data(sources)
    left = [source for source in sources if source not in chosen.values() and not taken & {*source.files}]
    others = [source for source in left if source.files and source.files[0].form not in forms]
    left = [source for source in left if source not in others]
    names_kept = known is not None or all(
        not source.files or _SHARD.fullmatch(source.files[0].stem)
        for source in sources
        if source not in others
    )
    by_role: dict[str | None, list[Source]] = {}
    for source in left:
        by_role.setdefault(_role(source), []).append(source)
    if by_role.get(None) == left[:1] == left and not chosen and not roles_in(left[0].split):
        by_role = {"train": left}
    for role in ROLES:
        if role in asked:
            continue
        of_role = by_role.get(role, [])
        if known is not None and role != "train":
            split = known[role]
            of_role = [source for source in left if split and exact_role(source.split) == exact_role(split)]
            if split and not of_role:
                raise _missing(where, role, split, sources)
        elif names_kept:
            of_role = [source for source in of_role if exact_role(source.split) == role] or of_role
        if len(of_role) > 1:
            raise BadInput(
                f"wanted one {role} split in {where}, got {listed(of_role)}; say which is which, others are then left "
                f"out: {_advice({**by_role, role: of_role}, chosen)}"
            )
        if of_role:
            [chosen[role]] = of_role
    without = by_role.get(None, [])
    if without and not (names_kept or asked):
        raise BadInput(
            f"wanted train, validation or test in the name of each file in {where}, got {listed(without)}; say which "
            f"is which, others are then left out: {_advice(by_role, chosen)}"
        )
    if "train" not in chosen:
        raise _missing(where, "train", "train", sources)
    why = "not in --splits" if asked else "no role"
    unused = [f"{source} ({why})" for source in left if source not in chosen.values()]
    unused += [f"{source} (another format)" for source in others]
    return {role: chosen[role] for role in ROLES if role in chosen}, tuple(sorted(unused))


def _form(name: str) -> str | None:
    """Return the format of a file by its name, None for one that holds no data; "eng.testa" is a column file."""
    path = PurePosixPath(name.lower())
    path = path.with_suffix("") if path.suffix == PACKED else path
    form = path.suffix.removeprefix(".") or path.name
    return form if form in FORMS else "txt" if form in _ROLE_OF else None


def _holds_data(name: str) -> bool:
    return _form(name) is not None and not any(map(_NO_DATA.fullmatch, PurePosixPath(name).parts))


def _forms_of_data(sources: Sequence[Source]) -> set[str]:
    """Return the format of the data among files of several: that of the most roles, train among them, or several."""
    files = {(source.files[0].form, _role(source)) for source in sources if source.files}
    roles = Counter(form for form, role in files if role and (form, "train") in files)
    first = [form for form in FORMS if form in dict(files)][:1]
    return {form for form, count in roles.items() if count == max(roles.values())} or {*first}


def _role(source: Source) -> str | None:
    """Return the role that a source's own name says, or else the innermost folder that says one."""
    for part in (source.split, *reversed(source.name.split("/")[:-1])):
        if roles := roles_in(part):
            return roles.pop() if len(roles) == 1 else None
    return None


def _named(where: str, name: str, sources: Sequence[Source], root: Path | None) -> Source:
    """Return what `--splits` names: a source, a file of one, the files of a folder, or a file elsewhere."""
    plain = name.removeprefix("./").rstrip("/")
    files = [file for source in sources for file in source.files]
    path = ((root or Path("no folder")) / plain).resolve()
    plain = next((file.name for file in files if file.path == path), plain)
    named = [source for source in sources if source.name == plain]
    named = named or [source for source in sources if source.split == plain]
    if len(named) == 1:
        return named[0]
    if path.is_dir():
        inside = [file for source in find(path) for file in source.files]
        forms = [form for form in FORMS if any(file.form == form for file in inside)]
        if len(forms) != 1:
            raise BadInput(
                f"wanted files of one format in {path}, got {' and '.join(forms) or 'none'}; name one, {name}/FILE"
            )
        return Source(plain, plain, tuple(DataFile(file.path, f"{plain}/{file.name}") for file in inside))
    if file := next((file for file in files if plain == file.name), None):
        return Source(plain, file.stem, (file,))
    if path.is_file():
        return Source(plain, path.stem, (DataFile(path, plain),))
    raise unknown(f"name of a split in --splits, for {where},", name, [source.name for source in sources])


def _missing(where: str, role: str, split: str, sources: Sequence[Source]) -> BadInput:
    name = shlex.quote(sources[0].name) if len(sources) == 1 else "FILE"
    return BadInput(
        f"wanted split {split!r} of {where}, which has {listed(sources) or 'none'}; add it, or name it with "
        f"--splits {role}={name}"
    )


def _advice(by_role: Mapping[str | None, Sequence[Source]], chosen: Mapping[str, Source]) -> str:
    """Return the `--splits` that takes one source of each role."""
    names = {role: source.name for role, source in chosen.items()}
    for role in ROLES:
        if of_role := [source.name for source in by_role.get(role, [])]:
            folder = os.path.commonpath(of_role) if len(of_role) > 1 else ""
            names.setdefault(role, folder if role in roles_in(folder) else of_role[0])
    if "train" not in names and len(by_role.get(None, [])) == 1:
        names["train"] = by_role[None][0].name
    words = [f"{role}={shlex.quote(names[role])}" for role in ROLES if role in names]
    return f"--splits {' '.join(words if 'train' in names else ['train=FILE', *words])}"
