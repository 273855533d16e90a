"""A page as one HTML file that needs no other: to send, or to open without a viewer of Markdown."""

from __future__ import annotations

import base64
import html
import itertools
import mimetypes
from collections.abc import Callable, Iterable, Mapping, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .9em }
th, td { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); padding: .2em .6em; text-align: left }
img { max-width: 100%; background: #fff }
blockquote { border-left: 4px solid #c60; margin-left: 0; padding-left: 1rem }
pre { overflow-x: auto } code { font-size: .9em }
hr { margin: 3rem 0 }
"""


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}</body>
</html>
"""


def as_html(pages: Mapping[str, str], read: Callable[[str], bytes | None]) -> str:
    """Return Markdown pages as one HTML document, its figures within it and no script.

    HTML in the pages stays text. A link from one of the pages to another leads to its part of the document.

    Args:
        pages: By name of the file, as links call it; the first one's heading is the title.
        read: Returns the bytes of a figure by its relative path, None where there is none.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    parts, title = [], ""
    for name, text in pages.items():
        tokens = markdown.parse(text)
        title = title or _heading(tokens) or name
        for token in _every(tokens):
            if token.type == "image":
                _embed(token, read)
            elif token.type == "link_open" and str(token.attrs.get("href")).partition("#")[0] in pages:
                token.attrs["href"] = "#" + str(token.attrs["href"]).partition("#")[0]
        body = markdown.renderer.render(tokens, markdown.options, {})
        parts.append(f'<section id="{html.escape(name)}">\n{body}</section>\n')
    return PAGE.format(title=html.escape(title), style=STYLE, body="<hr>\n".join(parts))


def _heading(tokens: Sequence[Token]) -> str:
    """Return the words of the first heading."""
    first = (after for token, after in itertools.pairwise(tokens) if token.type == "heading_open")
    return "".join(
        child.content for heading in itertools.islice(first, 1) for child in heading.children or ()
    )


def _every(tokens: Iterable[Token]) -> Iterable[Token]:
    for token in tokens:
        yield token
        yield from _every(token.children or ())


def _embed(image: Token, read: Callable[[str], bytes | None]) -> None:
    """Put a figure into the document; one that is not there, or not of the folder, leaves its words."""
    path = str(image.attrs.get("src"))
    kind, _ = mimetypes.guess_type(path)
    data = read(path) if kind and kind.startswith("image/") and ":" not in path and ".." not in path else None
    image.attrs["src"] = "" if data is None else f"data:{kind};base64,{base64.b64encode(data).decode()}"
