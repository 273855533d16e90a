"""Pages of the website that are made of other files: its start, the example notebook, the API from docstrings."""

import json
import posixpath
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


PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "search_spaces/README.md": "own-study.md",
    "AGENTS.md": "agents.md",
}
"""Pages of the website by the file at the repository's root, or below it, that they are."""
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie in no file of docs/ (a hook of MkDocs)."""
    from mkdocs.structure.files import File

    pages = {page: linked((ROOT / path).read_text(), path, page) for path, page in PAGES.items()}
    pages |= {"example.md": notebook(ROOT / "docs" / "example.ipynb"), "api.md": api()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page of docs/ with links that hold on the website (a hook of MkDocs)."""
    place = page.file.src_uri
    return markdown if place in PAGES.values() else linked(markdown, f"docs/{place}", place)


def linked(text: str, path: str, page: str) -> str:
    """Return Markdown with links that hold on the website: those to code, which is not there, are words alone.

    Args:
        text: Of the file `path` of the repository.
        path: The file.
        page: Where it is on the website.
    """

    def link(match: re.Match[str]) -> str:
        words, target, anchor = match.groups()
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if not (there in PAGES or there.startswith("docs/")):
            return str(words)
        place = posixpath.relpath(
            PAGES.get(there, there.removeprefix("docs/")), posixpath.dirname(page) or "."
        )
        return f"[{words}]({place}{anchor or ''})"

    return LINK.sub(link, text)


def notebook(path: Path) -> str:
    """Return a notebook's cells as Markdown, code fenced."""
    cells = (
        (cell["cell_type"], "".join(cell["source"]))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    )
    return "\n\n".join(f"```python\n{source}\n```" if kind == "code" else source for kind, source in cells)


def api() -> str:
    """Return what `import adalayers` offers and what a study or fusion is written with, as their docstrings say."""
    objects = (getattr(adalayers, name) for name in adalayers._LAZY)
    offered = [f"{each.__module__}.{each.__qualname__}" for each in objects]
    return "\n\n".join(["# API", *(f"::: {path}" for path in (*offered, *FOR_AUTHORS))])
