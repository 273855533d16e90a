"""Texts as tasks read them: token ids, and the first and last token of each word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalayers.backbones.tokens import encode
from adalayers.errors import BadInput

Span = tuple[int, int]
"""Start and end (exclusive) in a text, in characters."""

_WORD = re.compile(r"['’]s\b|\w+(?:(?!['’]s\b)[^\w\s]\w+)*|[^\w\s]")
_BETWEEN_SPACES = re.compile(r"\S+")


@dataclass(frozen=True)
class TokenizedText:
    """A text in tokens.

    Attributes:
        ids:   int64 [tokens], special ones included
        words: spans of its words
        first: int64 [words], index of each word's first token, -1 where it was cut away or has none
        last:  int64 [words], of its last
        cut:   whether the maximum length cut the text
    """

    ids: np.ndarray
    words: tuple[Span, ...]
    first: np.ndarray
    last: np.ndarray
    cut: bool


def word_spans(text: str, *, apart: bool = False) -> tuple[Span, ...]:
    """Return the words of a text, split at white space and punctuation as in data sets of words.

    Punctuation within a word stays ("3.5", "well-known"), at its ends it is a word of its own, and so is 's.

    Args:
        text:  Any text.
        apart: Whether the text's words are separated by white space already, so that it alone separates them.
    """
    return tuple(match.span() for match in (_BETWEEN_SPACES if apart else _WORD).finditer(text))


def tokenize_words(
    tokenizer: Any, texts: Sequence[str], max_length: int, *, apart: bool = False
) -> list[TokenizedText]:
    """Return texts tokenised word by word, as tasks with a label per word are trained.

    Raises:
        BadInput: A text has no token.
    """
    words = [word_spans(text, apart=apart) for text in texts]
    inputs = [[text[a:b] for a, b in spans] for text, spans in zip(texts, words, strict=True)]
    encoded = encode(tokenizer, inputs, max_length)
    assert encoded.word_starts is not None
    assert encoded.word_ends is not None
    assert encoded.word_offsets is not None
    assert encoded.cut is not None
    ids = np.split(encoded.input_ids.astype(np.int64), encoded.offsets[1:-1])
    ends = encoded.word_offsets[1:-1]
    first, last = np.split(encoded.word_starts, ends), np.split(encoded.word_ends, ends)
    cut = (encoded.cut > 0).tolist()
    return [TokenizedText(*parts) for parts in zip(ids, words, first, last, cut, strict=True)]


def tokenize_texts(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[TokenizedText]:
    """Return texts tokenised whole, as tasks with a label per text are trained.

    Where a tokeniser reads a word otherwise after a space than after punctuation (byte-level ones), its words' tokens
    are not those of `tokenize_words`.

    Args:
        tokenizer:  A fast tokeniser of transformers.
        texts:      Any texts.
        max_length: Most tokens of a text, special ones included.

    Raises:
        BadInput: A text has no token.
    """
    return tokenized_inputs(texts, tokenizer(list(texts), truncation=True, max_length=max_length))


def tokenized_inputs(texts: Sequence[str], inputs: Any) -> list[TokenizedText]:
    """Return texts that a fast tokeniser of transformers has read whole, padding included in their tokens.

    Args:
        texts:  What it was given, one text each.
        inputs: What it returned.

    Raises:
        BadInput: It is of other texts, or of a slow tokeniser, or a text has no token.
    """
    encodings = getattr(inputs, "encodings", None)
    if not encodings or len(encodings) != len(texts) or isinstance(texts, str):
        came = type(inputs).__name__ if not encodings else f"those of {len(encodings)} texts"
        raise BadInput(
            f"wanted what a fast tokeniser returned for {len(texts)} texts in a list, got {came}; give it as it was"
        )
    if empty := [text for text, each in zip(texts, encodings, strict=True) if not each.ids]:
        raise BadInput(f"wanted at least one token of every text, {empty[0]!r} gives none; leave it out")
    spans = [word_spans(text) for text in texts]
    tokens = [
        _word_tokens(words, np.array(each.offsets)) for words, each in zip(spans, encodings, strict=True)
    ]
    return [
        TokenizedText(np.array(each.ids), words, first, last, bool(each.overflowing))
        for each, words, (first, last) in zip(encodings, spans, tokens, strict=True)
    ]


def _word_tokens(words: Sequence[Span], tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last token of tokens' spans [tokens, 2] that overlap each word, -1 for words without."""
    indices = np.flatnonzero(tokens[:, 1] > tokens[:, 0])
    starts, ends = tokens[indices].T
    begins, stops = np.array(words, dtype=np.int64).reshape(-1, 2).T
    first = np.searchsorted(ends, begins, side="right")
    last = np.searchsorted(starts, stops, side="left") - 1
    none = first > last
    indices = np.append(indices, -1)
    return np.where(none, -1, indices[first]), np.where(none, -1, indices[last])
