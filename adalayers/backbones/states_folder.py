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
from adalayers.storage.folder import numbered

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
    width: int
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
    require(folder.is_dir(), "a folder of hidden states", folder, "none")
    require((folder / META).is_file(), f"{META}, which says whose states these are,", folder, "none")
    text = (folder / META).read_bytes()
    meta, digest = _meta(folder / META, text), hashlib.sha256(text)
    shards: dict[str, list[Shard]] = {role: [] for role in ROLES}
    seen: dict[str, str] = {}
    for role in ROLES:
        paths = sorted((folder / role).glob("*.safetensors"))
        for path, after in itertools.pairwise(paths):  # else states could go to other rows' labels
            came = f"{path.name} before {after.name}"
            wanted = "names that sort as their numbers do (zeros in front)"
            require(numbered(path.name) <= numbered(after.name), wanted, folder / role, came)
        for path in paths:
            require(path.is_file(), "a safetensors file", path, "a folder" if path.is_dir() else "none")
            content = file_sha256(path)
            shards[role].append(_shard(path, tuple(meta["states"]), content))
            own = seen.setdefault(content, role) if shards[role][-1].rows else role
            require(own == role, "other states than those of another split", path, f"what {own} has too")
            digest.update(f"{role}/{path.name}\0{content}\n".encode())
    require(shards["train"], "safetensors files", folder / "train", "none")
    first = shards["train"][0]
    for shard in itertools.chain(*shards.values()):
        wanted = f"states of one width, as {first.width} in {first.path},"
        require(shard.width == first.width, wanted, shard.path, shard.width)
    return StatesFolder(folder, meta, first.width, shards, digest.hexdigest()[:16])


def require(holds: object, wanted: str, where: Path, came: object) -> None:
    """Raise `BadInput` where a folder does not hold what it has to."""
    if not holds:
        raise BadInput(f"wanted {wanted} in {where}, got {came}; write it again ({PAGE})")


def _meta(path: Path, text: bytes) -> dict[str, Any]:
    try:
        meta = {"embeddings": False, "causal": False, **json.loads(text)}
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"wanted a JSON object in {path}, got {error}; write it again ({PAGE})") from error
    for key, type_ in KEYS.items():
        require(isinstance(meta.get(key), type_), f"{key}, a {type_.__name__},", path, repr(meta.get(key)))
    names = meta["states"]
    fits = all(isinstance(name, str) for name in names)
    fits = fits and len(names) > meta["embeddings"] and len({*names} - {"lengths"}) == len(names)
    # Sorted as texts layer_10 comes before layer_2: every layer would get another's number.
    fits = fits and not (names == sorted(names) != sorted(names, key=numbered))
    require(fits, "the names of the states, lowest first, each once,", path, names)
    return meta


@functools.cache
def _shard(path: Path, names: Sequence[str], content: str) -> Shard:
    """Return what a file holds, looked at once as long as its `content`, a hash, is the same."""
    import torch
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            there = sorted(file.keys())
            require({*names} <= {*there}, f"the states {', '.join(names)}", path, ", ".join(there))
            slices = {name: file.get_slice(name) for name in names}
            shapes = sorted({tuple(of_state.get_shape()) for of_state in slices.values()})
            one = len(shapes) == 1 and len(shapes[0]) == 2 and shapes[0][1] > 0
            require(one, "states of one shape [rows, width]", path, shapes)
            rows, width = shapes[0]
            lengths = torch.ones(rows, dtype=torch.int64)
            if "lengths" in there:
                lengths = file.get_tensor("lengths")
            kind = lengths.dtype
            whole = not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
            lengths = lengths.to(torch.int64) if whole else lengths
            fits = whole and lengths.ndim == 1 and bool((lengths > 0).all()) and int(lengths.sum()) == rows
            came = f"{[*lengths.shape]} of {kind}, {lengths.sum().item():g} in all"
            require(fits, f"lengths above 0, whole numbers, of {rows} rows in all", path, came)
            for name, of_state in slices.items():
                dtype = of_state.get_dtype()
                require(dtype in FLOATS, f"{name} in float16, bfloat16 or float32", path, dtype)
                ends = torch.aminmax(file.get_tensor(name)) if rows * width else ()  # both pass NaN on
                finite = all(math.isfinite(float(end)) for end in ends)
                require(finite, f"finite numbers as {name}", path, "NaN or infinity")
    except (OSError, SafetensorError) as error:
        raise BadInput(
            f"wanted a safetensors file as {path}, got {error}; write it again ({PAGE})"
        ) from error
    return Shard(path, rows, width, lengths.numpy().astype(np.int64))
