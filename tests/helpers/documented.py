"""What pages show of code, and docs/files.md against what a study has left."""

import json
import re
from pathlib import Path

import pandas as pd
import pyarrow.parquet

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
KEPT = sorted(path.parent for path in RESULTS.glob("*/*/study.json"))
"""Folders of the published studies."""


def snippet(name: str, page: str = "CONTRIBUTING.md") -> str:
    """Return the code of this name on a page."""
    (code,) = re.findall(rf"```\w+ {name}\n(.*?)```", (ROOT / page).read_text(), re.S)
    return str(code)


def fenced(page: Path, language: str) -> list[str]:
    """Return the code of a page in one language, block by block."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


def patterns(section: str) -> re.Pattern[str]:
    """Return what matches the names in the first cells of a section's table; `<...>` stands for anything."""
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert names, section
    return re.compile("|".join(re.sub("<.*?>", ".+", re.escape(name)) for name in names))


def undocumented(folder: Path) -> list[str]:
    """Return the files of a results folder, and their columns and fields, that docs/files.md does not have."""
    files, *sections = (ROOT / "docs" / "files.md").read_text().split("\n## ")
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    missing = [path for path in paths if not patterns(files).fullmatch(path)]
    for section in sections:
        for name in re.findall(r"`([^`]+)`", section.splitlines()[0]):
            known = patterns(section)
            names = columns(folder / name) if (folder / name).exists() else []
            missing += [f"{name}: {column}" for column in names if not known.fullmatch(column)]
    return missing


def columns(path: Path) -> list[str]:
    if path.suffix == ".csv":
        return list(pd.read_csv(path, nrows=0))
    if path.suffix == ".parquet":
        return [name for name in pyarrow.parquet.read_schema(path).names if name != "__index_level_0__"]
    document = json.loads(path.read_text())
    rows = document if isinstance(document, list) else [document]
    return list({name: None for row in rows for name in row})
