"""A page as one HTML file that needs no other: to send, or to open without a viewer of Markdown."""

from __future__ import annotations

import base64
import html
import mimetypes
from collections.abc import Callable, Mapping

from markdown_it import MarkdownIt
from markdown_it.token import Token

from reports.render import environment
from reports.render import markdown as safe


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
        heading = tokens[1].children if len(tokens) > 1 else []
        title = title or "".join(child.content for child in heading or ()) or name
        for token in (*tokens, *(child for block in tokens for child in block.children or ())):
            if token.type == "image":
                _embed(token, read)
            elif token.type == "link_open" and str(token.attrs.get("href")).partition("#")[0] in pages:
                token.attrs["href"] = "#" + str(token.attrs["href"]).partition("#")[0]
        body = markdown.renderer.render(tokens, markdown.options, {})
        parts.append(f'<section id="{html.escape(name)}">\n{body}</section>\n')
    told = {"title": safe(html.escape(title)), "body": safe("<hr>\n".join(parts))}
    return environment().get_template("html.j2").render(told)


def _embed(image: Token, read: Callable[[str], bytes | None]) -> None:
    """Put a figure into the document; one that is not there, or not of the folder, leaves its words."""
    path = str(image.attrs.get("src"))
    kind, _ = mimetypes.guess_type(path)
    data = read(path) if kind and kind.startswith("image/") and ":" not in path and ".." not in path else None
    image.attrs["src"] = "" if data is None else f"data:{kind};base64,{base64.b64encode(data).decode()}"
