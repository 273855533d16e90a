"""Pages of the website that are made of other files: its start, the example notebook, the API from docstrings."""

import json
import re
from pathlib import Path
from typing import Any

import adalayers

FOR_AUTHORS = (
    "adalayers.results.frames",
    "adalayers.study",
    "adalayers.fusion.fusion",
    "adalayers.tasks.kind",
    "adalayers.tuning.trainable.trainable",
)
ROOT = Path(__file__).parent


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie in no file of docs/ (a hook of MkDocs)."""
    from mkdocs.structure.files import File

    pages = {"index.md": start(), "example.md": notebook(ROOT / "docs" / "example.ipynb"), "api.md": api()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def start() -> str:
    """Return the README with its links as seen from docs/."""
    return re.sub(r"\]\(docs/", "](", (ROOT / "README.md").read_text())


def notebook(path: Path) -> str:
    """Return a notebook's cells as Markdown, code fenced."""
    cells = (
        (cell["cell_type"], "".join(cell["source"]))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    )
    return "\n\n".join(f"```python\n{source}\n```" if kind == "code" else source for kind, source in cells)


def api() -> str:
    """Return what `import adalayers` offers and what a study or fusion is written with, as their docstrings say."""
    offered = [f"{module}.{name}" for name, module in adalayers._LAZY.items()]
    return "\n\n".join(["# API", *(f"::: {path}" for path in (*offered, *FOR_AUTHORS))])
