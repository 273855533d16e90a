"""Texts as tasks read them: token ids, and the first and last token of each word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalayers.backbones.tokens import encodings, word_tokens
from adalayers.errors import BadInput

Span = tuple[int, int]
"""Start and end (exclusive) in a text, in characters."""

_MARKS = "".join(mark for mark in map(chr, range(0x300, 0x20000)) if unicodedata.category(mark)[0] == "M")
"""Accents and vowel signs that stand behind their letter, and are no letters of `\\w`."""
_INNER = rf"\w[\w{_MARKS}]*"
_WORD = re.compile(rf"['’]s\b|{_INNER}(?:(?!['’]s\b)[^\w\s]{_INNER})*|[^\w\s][{_MARKS}]*")
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
    spans = [word_spans(text, apart=apart) for text in texts]
    words = [[text[a:b] for a, b in own] for text, own in zip(texts, spans, strict=True)]
    read = encodings(tokenizer, words, max_length)
    return _tokenized(texts, spans, read, lambda each, own: word_tokens(each.word_ids, len(own)))


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
    read = tokenizer(list(texts), truncation=True, max_length=max_length).encodings
    return _tokenized(texts, map(word_spans, texts), read, _overlapping)


def tokenized_inputs(texts: Sequence[str], inputs: Any) -> list[TokenizedText]:
    """Return texts that a fast tokeniser of transformers has read whole, padding included in their tokens.

    Args:
        texts:  What it was given, one text each.
        inputs: What it returned.

    Raises:
        BadInput: It is of other texts, of words or pairs, or of a slow tokeniser, or a text has no token.
    """
    read = getattr(inputs, "encodings", None)
    if not read or len(read) != len(texts) or isinstance(texts, str):
        came = type(inputs).__name__ if not read else f"those of {len(read)} texts"
        raise BadInput(
            f"wanted what a fast tokeniser returned for {len(texts)} texts in a list, got {came}; give it as it was"
        )
    for text, each in zip(texts, read, strict=True):
        if not isinstance(text, str) or not all(
            _stands(text, *token) for token in zip(each.tokens, each.offsets, strict=True)
        ):
            raise BadInput(
                f"wanted what a tokeniser returned for whole texts, its tokens are not those of {text!r}; give it "
                "each text as one string (no words, no pairs), and here the same ones in the same order"
            )
    return _tokenized(texts, map(word_spans, texts), read, _overlapping)


def _tokenized(
    texts: Sequence[str],
    spans: Iterable[tuple[Span, ...]],
    read: Iterable[Any],
    tokens_of: Callable[[Any, tuple[Span, ...]], tuple[np.ndarray, np.ndarray]],
) -> list[TokenizedText]:
    """Return texts as a tokeniser encoded them, with the first and the last token of each word."""
    tokenized = []
    for text, words, encoding in zip(texts, spans, read, strict=True):
        if not encoding.ids:
            raise BadInput(f"wanted at least one token of every text, {text!r} gives none; leave it out")
        tokens = tokens_of(encoding, words)
        tokenized.append(TokenizedText(np.array(encoding.ids), words, *tokens, bool(encoding.overflowing)))
    return tokenized


def _stands(text: str, token: str, span: Span) -> bool:
    """Return whether a token can be what stands there; of plain letters alone one can say, and where it is as long."""
    token, there = token.strip("▁Ġ#").lower(), text[slice(*span)].strip().lower()
    return token == there or not ((token + there).isascii() and token.isalnum() and len(token) == len(there))


def _overlapping(encoding: Any, words: Sequence[Span]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last token whose span overlaps each word, -1 for words without."""
    tokens = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    indices = np.flatnonzero(tokens[:, 1] > tokens[:, 0])
    starts, ends = tokens[indices].T
    begins, stops = np.array(words, dtype=np.int64).reshape(-1, 2).T
    first = np.searchsorted(ends, begins, side="right")
    last = np.searchsorted(starts, stops, side="left") - 1
    none = first > last
    indices = np.append(indices, -1)
    return np.where(none, -1, indices[first]), np.where(none, -1, indices[last])
