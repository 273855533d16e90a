"""`--backbone states:DIR`: hidden states that another program computed, in the place of a base model.

DIR/meta.json names the model and its states; DIR/train, DIR/validation and DIR/test hold safetensors files, read in the
order of their names, whose examples are the rows of the dataset's splits in their order (docs/states.md). What reads a
backbone sees one whose token ids are numbers of rows in these arrays: all that stores, pools or draws works on them.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adalayers.backbones.pretrained import file_sha256
from adalayers.errors import BadInput

STATES = "states:"
"""In front of a folder: it holds hidden states, not a model."""
META, PAGE, ROLES = "meta.json", "docs/states.md", ("train", "validation", "test")
FLOATS = ("F16", "BF16", "F32")
KEYS: dict[str, type] = {"model": str, "states": list, "final_norm": bool, "embeddings": bool, "causal": bool}
"""Of meta.json; the last two may be left out."""


class Shard(NamedTuple):
    """A safetensors file: a row of each state for each of `rows`; `lengths`: int64 [examples], rows of each."""

    path: Path
    rows: int
    lengths: np.ndarray


class StatesFolder(NamedTuple):
    """What a folder of hidden states holds; `shards`: by split, whose rows are numbered through in this order."""

    folder: Path
    meta: Mapping[str, Any]
    width: int
    shards: dict[str, list[Shard]]
    fingerprint: str

    @property
    def layers(self) -> int:
        return len(self.meta["states"]) - self.meta["embeddings"]

    @property
    def note(self) -> str:
        """What a page says of it."""
        behind = "lies behind" if self.meta["final_norm"] else "does not lie behind"
        return f"of {self.meta['model']}, computed elsewhere; the last one {behind} a final norm"


def read(folder: Path) -> StatesFolder:
    """Return what a folder of hidden states holds, every file of it checked.

    Raises:
        BadInput: It is missing, or something in it is; two files do not fit each other; a number is not finite.
    """
    if not folder.is_dir():
        raise BadInput(f"wanted a folder of hidden states, there is no {folder}; write it first ({PAGE})")
    if not (folder / META).is_file():
        raise BadInput(
            f"wanted {META} in {folder}, which says whose states these are, it is not there; write it ({PAGE})"
        )
    paths = {role: sorted((folder / role).glob("*.safetensors")) for role in ROLES}
    files = tuple(
        (path, path.stat().st_size, path.stat().st_mtime_ns) for path in itertools.chain(*paths.values())
    )
    return _read(folder, (folder / META).read_bytes(), files)


@functools.lru_cache(maxsize=4)
def _read(folder: Path, meta_text: bytes, files: Sequence[tuple[Path, int, int]]) -> StatesFolder:
    """Return the same, once as long as no file changes."""
    meta, widths, digest = _meta(folder / META, meta_text), dict[int, Path](), hashlib.sha256(meta_text)
    shards: dict[str, list[Shard]] = {role: [] for role in ROLES}
    for path, _, _ in files:
        shard, width = _shard(path, meta["states"])
        widths.setdefault(width, path)
        shards[path.parent.name].append(shard)
        digest.update(f"{path.parent.name}/{path.name}\0{file_sha256(path)}\n".encode())
    if not shards["train"]:
        raise BadInput(f"wanted safetensors files in {folder / 'train'}, there are none; write them ({PAGE})")
    if len(widths) > 1:
        (one, first), (other, second), *_ = widths.items()
        raise BadInput(
            f"wanted states of one width, {first} has {one}, {second} has {other}; write one of them again"
        )
    return StatesFolder(folder, meta, next(iter(widths)), shards, digest.hexdigest()[:16])


def _meta(path: Path, text: bytes) -> dict[str, Any]:
    try:
        meta = {"embeddings": False, "causal": False, **json.loads(text)}
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"wanted a JSON object in {path}, it cannot be read ({error}); write it again"
        ) from error
    for key, type_ in KEYS.items():
        if not isinstance(meta.get(key), type_):
            came = repr(meta[key]) if key in meta else "nothing"
            raise BadInput(f"wanted {key} in {path} to be a {type_.__name__}, got {came}; see {PAGE}")
    names = meta["states"]
    if len(names) <= meta["embeddings"] or len({*map(str, names)} - {"lengths"}) < len(names):
        raise BadInput(
            f"wanted the names of the states in {path}, lowest first, each once, got {names}; see {PAGE}"
        )
    return meta


def _shard(path: Path, names: Sequence[str]) -> tuple[Shard, int]:
    """Return a file and the width of its states."""
    import torch
    from safetensors import SafetensorError, safe_open

    def require(holds: object, wanted: str, came: object) -> None:
        if not holds:
            raise BadInput(f"wanted {wanted} in {path}, got {came}; write it again ({PAGE})")

    try:
        with safe_open(path, "pt") as file:
            require(
                {*names} <= {*file.keys()}, f"the states {', '.join(names)}", ", ".join(sorted(file.keys()))
            )
            shapes = {tuple(file.get_slice(name).get_shape()) for name in names}
            require(
                len(shapes) == 1 and len(next(iter(shapes))) == 2,
                "states of one shape [rows, width]",
                sorted(shapes),
            )
            ((rows, width),) = shapes
            lengths = np.ones(rows, np.int64)
            if "lengths" in file.keys():  # noqa: SIM118  # no dictionary
                lengths = file.get_tensor("lengths").numpy()
                fits = lengths.ndim == 1 and lengths.dtype.kind in "iu" and (lengths > 0).all()
                require(
                    fits and lengths.sum() == rows,
                    f"lengths of {rows} rows in all",
                    f"{lengths.dtype} {lengths}",
                )
            for name in names:
                dtype = file.get_slice(name).get_dtype()
                require(dtype in FLOATS, f"{name} in float16, bfloat16 or float32", dtype)
                ends = torch.aminmax(file.get_tensor(name)) if rows * width else ()  # both pass NaN on
                require(
                    all(math.isfinite(float(end)) for end in ends),
                    f"finite numbers as {name}",
                    "NaN or infinity",
                )
    except (OSError, SafetensorError) as error:
        raise BadInput(
            f"wanted a safetensors file, {path} cannot be read ({error}); write it again"
        ) from error
    return Shard(path, rows, lengths.astype(np.int64)), width
