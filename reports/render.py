"""Templates of pages: Markdown, in which all text is escaped that is not Markdown already."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from reports.words import text

TEMPLATES = Path(__file__).parent / "templates"


def markdown(words: str) -> str:
    """Return text that is Markdown already: no template escapes it."""
    return Markup(words)


def shown(value: Any) -> str:
    """Return a value as a page shows it: numbers with three decimals, whole ones whole, text escaped."""
    if hasattr(value, "__html__"):
        return Markup(value)
    if value is None or isinstance(value, float):
        return Markup(text.number(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Markup(f"{value:,}")
    return Markup(text.escape(value, 2000))


@functools.cache
def environment() -> jinja2.Environment:
    """Return Jinja's environment: what a template writes goes through `shown`, and an unknown name is an error."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {name: _marked(function) for name, function in FILTERS.items()}
    return made


FILTERS: dict[str, Callable[..., str]] = {
    "code": text.code,
    "prose": text.prose,
    "number": text.number,
    "interval": lambda ends, *how, **more: text.interval(*ends, *how, **more),
    "several": lambda names, most=4: text.several([shown(name) for name in names], most),
    "count": text.count,
    "link": text.link,
    "fenced": text.fenced,
}
"""What templates write with besides; all of it is safe on a page whoever named what."""


def _marked(function: Callable[..., str]) -> Callable[..., str]:
    return lambda *values, **more: Markup(function(*values, **more))


def render(template: str, **values: Any) -> str:
    """Return a page, or a piece of one: paragraphs with one empty line between them."""
    lines = environment().get_template(template).render(values).splitlines()
    kept = [
        line.rstrip()
        for line, before in zip(lines, ["", *lines], strict=False)
        if line.strip() or before.strip()
    ]
    return "\n".join(kept).strip("\n") + "\n"
