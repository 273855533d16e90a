"""Texts as tasks read them: token ids, and of each word the place of its first token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalayers.backbones.tokens import encode

Span = tuple[int, int]
"""Start and end (exclusive) in a text, in characters."""

_WORD = re.compile(r"['’]s\b|\w+(?:(?!['’]s\b)[^\w\s]\w+)*|[^\w\s]")
_APART = re.compile(r"\S+")


@dataclass(frozen=True)
class Read:
    """A text in tokens.

    ids:   int64 [tokens], special ones included
    words: spans of its words; empty where nobody asked for them
    first: int64 [words], the place of each word's first token, -1 where it was cut away or has none; last: of its last
    cut:   whether the maximum length cut the text
    """

    ids: np.ndarray
    words: tuple[Span, ...]
    first: np.ndarray
    last: np.ndarray
    cut: bool


def spans(text: str, *, apart: bool = False) -> tuple[Span, ...]:
    """Return the words of a text: what white space and punctuation part, as data sets of words have them.

    Punctuation within a word stays ("3.5", "well-known"), at its ends it is a word of its own, and so is 's.
    apart: the text's words already stand apart, so that white space alone parts them
    """
    return tuple(match.span() for match in (_APART if apart else _WORD).finditer(text))


def read_words(tokenizer: Any, texts: Sequence[str], max_length: int, *, apart: bool = False) -> list[Read]:
    """Return texts read word by word, as tasks with a label per word are trained.

    Raises `BadInput` for a text without any token.
    """
    words = [spans(text, apart=apart) for text in texts]
    inputs = [[text[a:b] for a, b in found] for text, found in zip(texts, words, strict=True)]
    encoded = encode(tokenizer, inputs, max_length)
    assert encoded.word_starts is not None
    assert encoded.word_ends is not None
    assert encoded.word_offsets is not None
    assert encoded.cut is not None
    ids = np.split(encoded.input_ids.astype(np.int64), encoded.offsets[1:-1])
    first, last = (
        np.split(places, encoded.word_offsets[1:-1]) for places in (encoded.word_starts, encoded.word_ends)
    )
    cut = encoded.cut.astype(bool).tolist()
    return [Read(*one) for one in zip(ids, words, first, last, cut, strict=True)]


def read_texts(tokenizer: Any, texts: Sequence[str], max_length: int, *, words: bool = False) -> list[Read]:
    """Return texts read whole, as tasks with a label per text are trained.

    words: find the words' tokens too. Where a tokeniser reads a word otherwise after a space than after punctuation
           (byte-level ones), these are not the tokens that `read_words` gives.

    Raises `BadInput` for a text without any token.
    """
    encoded = encode(tokenizer, list(texts), max_length)
    assert encoded.cut is not None
    ids = np.split(encoded.input_ids.astype(np.int64), encoded.offsets[1:-1])
    cut = encoded.cut.astype(bool).tolist()
    if not words:
        none = np.zeros(0, dtype=np.int64)
        return [Read(one, (), none, none, short) for one, short in zip(ids, cut, strict=True)]
    batch = tokenizer(
        list(texts),
        truncation=True,
        max_length=max_length,
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        return_offsets_mapping=True,
    )
    found = [spans(text) for text in texts]
    places = [_tokens_of(*one) for one in zip(found, batch["offset_mapping"], strict=True)]
    return [
        Read(one, words, first, last, short)
        for one, words, (first, last), short in zip(ids, found, places, cut, strict=True)
    ]


def _tokens_of(words: Sequence[Span], tokens: Sequence[Span]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last token that reach into each word, -1 for words without."""
    first, last = (np.full(len(words), -1, dtype=np.int64) for _ in range(2))
    real = [(place, start, end) for place, (start, end) in enumerate(tokens) if end > start]
    at = 0
    for number, (begin, stop) in enumerate(words):
        while at < len(real) and real[at][2] <= begin:
            at += 1
        if at < len(real) and real[at][1] < stop:
            first[number] = real[at][0]
            end = at
            while end + 1 < len(real) and real[end + 1][1] < stop:
                end += 1
            last[number] = real[end][0]
    return first, last
