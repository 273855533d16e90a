"""Templates of pages: Markdown, in which all text is escaped that is not Markdown already."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from adalayers.escaping import code, escape, fenced, link, prose
from reports.words import count, estimate, interval, number, several

TEMPLATES = Path(__file__).parent / "templates"


def markdown(words: str) -> str:
    """Return text that is Markdown already: no template escapes it."""
    return Markup(words)


def shown(value: Any) -> str:
    """Return a value as a page shows it: numbers with three decimals, whole ones whole, text escaped."""
    if hasattr(value, "__html__"):
        return Markup(value)
    if value is None or isinstance(value, float):
        return Markup(number(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Markup(f"{value:,}")
    words = str(value)
    before, _, after = words.partition(words.strip(" ")) if words.strip() else ("", "", "")
    return Markup(before + escape(words, 2000) + after)


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


def sentence(words: str) -> str:
    """Return words with a capital letter in front, unless they begin with a symbol: "k = 64"."""
    clean = shown(words).strip()
    return re.sub(r"^[a-z](?=[a-z'])", lambda first: first[0].upper(), clean)


def with_article(name: str) -> str:
    """Return what an arm is called in a sentence: "the learned mix", "layer 8 with k = 64", "the arm with α = 1"."""
    clean = shown(name)
    if "=" in clean and "instead of" not in clean:
        plain, _, settings = clean.partition(", ")
        if "=" in plain or not settings:
            return f"the arm with {clean}"
        clean = f"{plain} with {settings}"
    takes_article = re.match(r"((learned|layer|shared|thesis's) )?mix|(last|Cayley|full) |thesis's", clean)
    return f"the {clean}" if takes_article else clean


def paragraph(words: str) -> str:
    """Return what macros wrote as one line."""
    return re.sub(r" +([.,;:?)])", r"\1", " ".join(words.split()))


FILTERS: dict[str, Callable[..., str]] = {
    "code": code,
    "prose": prose,
    "number": number,
    "interval": lambda ends, *how, **more: interval(*ends, *how, **more),
    "estimate": lambda row: estimate(row["mean"], row["low"], row["high"], row["n"]),
    "several": lambda names, most=4: several([shown(name) for name in names], most),
    "count": count,
    "link": link,
    "fenced": fenced,
    "sentence": sentence,
    "the": with_article,
    "paragraph": paragraph,
    "significant": lambda value: f"{value:.2g}",
    "plain": lambda value: f"{value:g}",
}
"""What templates write with besides; all of it is safe on a page whoever named what."""


def _marked(function: Callable[..., str]) -> Callable[..., str]:
    return lambda *values, **more: Markup(function(*values, **more))


def render(template: str, **values: Any) -> str:
    """Return a page, or a piece of one: paragraphs with one empty line between them."""
    text = re.sub(r"(?m)[^\S\n]+$", "", environment().get_template(template).render(values))
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
