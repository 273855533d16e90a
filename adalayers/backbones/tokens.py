"""Token ids: the tokeniser of a backbone, and a split's texts, pairs of texts or words in its tokens."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from adalayers.backbones import pretrained
from adalayers.backbones.sources import BackboneSource, require_base_model
from adalayers.errors import BadInput
from adalayers.storage import hub
from adalayers.tensors.ragged import ragged_index

if TYPE_CHECKING:  # importing transformers takes seconds; only what loads something pays for it
    from transformers import PreTrainedTokenizerFast

_ENCODE_CHUNK = 1024  # inputs tokenised at a time: bounds the memory of the tokeniser's own bookkeeping


def load_tokenizer(source: BackboneSource) -> PreTrainedTokenizerFast:
    """Load the tokeniser of `source`.

    Raises:
        BadInput: Where there is none, or only a slow one, which does not know which word a token is of.
    """
    require_base_model(source, "for its tokeniser")
    from transformers import AutoTokenizer

    if not pretrained.has_vocabulary(source.folder):
        raise BadInput(
            f"wanted a tokeniser of {source.id!r}, {str(source.folder)!r} holds none of "
            f"{', '.join(pretrained.VOCABULARIES)}; save it there with the tokeniser's save_pretrained"
        )
    wanted = f"wanted the tokeniser of {source.id!r} in {str(source.folder)!r}, it cannot be loaded"
    advice = "where a package is missing, install adalayers[tokenizers]"
    with hub.quiet(), hub.refusing(wanted, advice), pretrained.staged(source.folder) as place:
        tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise BadInput(
            f"wanted a fast tokeniser of {source.id!r}, {type(tokenizer).__name__} is a slow one, which does "
            "not say which word a token is of; choose a backbone that has a tokenizer.json"
        )
    return cast("PreTrainedTokenizerFast", tokenizer)


@dataclass(frozen=True)
class Encoded:
    """The token ids of a split, ragged: all examples end to end, special tokens included, no padding.

    Attributes:
        input_ids: int32 [tokens].
        offsets: int64 [n + 1]; example i owns the tokens offsets[i]..offsets[i + 1].
        word_starts: int64 [words], pre-split inputs only: the position of each word's first token in its example,
            special tokens counted; -1 for words truncated away or without tokens.
        word_offsets: int64 [n + 1] into word_starts.
        cut: int64 [n], whether the maximum length cut an example (0 or 1). None where nobody counted.
        lost_words: int64 [n], how many of its words lost all their tokens by that, pre-split inputs only.
        special: bool [tokens], whether the tokeniser added a token that is no part of the text; None where unknown.
        word_ends: int64 [words], as word_starts: the position of each word's last token. None where unknown.
        token_types: int8 [tokens], 0 for the first text of a pair and 1 for the second; None where the tokeniser tells
            no such apart.
    """

    input_ids: np.ndarray
    offsets: np.ndarray
    word_starts: np.ndarray | None = None
    word_offsets: np.ndarray | None = None
    cut: np.ndarray | None = None
    lost_words: np.ndarray | None = None
    special: np.ndarray | None = None
    word_ends: np.ndarray | None = None
    token_types: np.ndarray | None = None

    def digest(self) -> hashlib._Hash:
        """Return a SHA-256 of the token ids, their types where there are any, and where each example ends."""
        digest = hashlib.sha256(np.ascontiguousarray(self.input_ids, dtype="<i4").tobytes())
        if self.token_types is not None:
            digest.update(np.ascontiguousarray(self.token_types, dtype="<i1").tobytes())
        digest.update(np.ascontiguousarray(self.offsets, dtype="<i8").tobytes())
        return digest

    def truncated(self) -> dict[str, int]:
        """Return how many examples the maximum length cut, and of pre-split inputs how many words it took."""
        counts = {"examples": self.cut, "words": self.lost_words}
        return {name: int(count.sum()) for name, count in counts.items() if count is not None}

    def take(self, examples: np.ndarray) -> Encoded:
        """Return the token ids of `examples` [m], in that order."""
        tokens = ragged_index(self.offsets, examples)
        index = dict.fromkeys(("input_ids", "special", "token_types"), tokens)
        index |= dict.fromkeys(("cut", "lost_words"), examples)
        ends: dict[str, Any] = {"offsets": _ends(np.diff(self.offsets)[examples])}
        if self.word_offsets is not None:
            words = ragged_index(self.word_offsets, examples)
            index |= dict.fromkeys(("word_starts", "word_ends"), words)
            ends["word_offsets"] = _ends(np.diff(self.word_offsets)[examples])
        columns = {name: getattr(self, name) for name in index}
        taken = {name: column[index[name]] for name, column in columns.items() if column is not None}
        return replace(self, **ends, **taken)


def encode(
    tokenizer: PreTrainedTokenizerFast,
    inputs: list[str] | list[tuple[str, str]] | list[list[str]],
    max_length: int,
    *,
    place: Callable[[int], str] = lambda i: f"input {i}",
) -> Encoded:
    """Tokenise texts, pairs of texts, or lists of words, cut to `max_length` tokens, special ones included.

    Texts are read as the model was pretrained on them; each word of a pre-split input is read as one that follows a
    space, the first one too. Of a pair the longer text is cut first; a tokeniser that would put nothing between the two
    (GPT-2's) is given them as one text, a new line between them.

    Args:
        tokenizer: As `load_tokenizer` gives it.
        inputs: n of them.
        max_length: Tokens of each at most.
        place: Returns what messages call an input.

    Raises:
        BadInput: For an input of which no token at all is made.
    """
    paired = bool(inputs) and isinstance(inputs[0], tuple)
    presplit = bool(inputs) and isinstance(inputs[0], list)
    typed = paired and "token_type_ids" in tokenizer.model_input_names
    if paired and not tokenizer.num_special_tokens_to_add(pair=True):
        inputs, typed = ["\n".join(pair) for pair in inputs], False
    made: dict[str, list[np.ndarray]] = defaultdict(list)
    for i, encoding in enumerate(encodings(tokenizer, inputs, max_length)):
        if not encoding.ids:
            raise BadInput(
                f"wanted at least one token of every input, {place(i)} gives none; drop it from the data"
            )
        made["input_ids"].append(np.array(encoding.ids, dtype=np.int32))
        made["special"].append(np.array(encoding.special_tokens_mask, dtype=np.bool_))
        made["cut"].append(np.array([len(encoding.overflowing) > 0], dtype=np.int64))
        if typed:
            made["token_types"].append(np.array(encoding.type_ids, dtype=np.int8))
        if presplit:
            made["lost_words"].append(np.array([_lost_words(encoding)], dtype=np.int64))
            starts, ends = word_tokens(encoding.word_ids, len(inputs[i]))
            made["word_starts"].append(starts)
            made["word_ends"].append(ends)
    columns = {name: np.concatenate(rows) for name, rows in made.items()}
    if typed and not columns["token_types"].any():
        del columns["token_types"]
    return Encoded(
        offsets=_ends([len(row) for row in made["input_ids"]]),
        word_offsets=_ends([len(row) for row in made["word_starts"]]) if presplit else None,
        **columns,
    )


def encodings(tokenizer: PreTrainedTokenizerFast, inputs: Sequence[Any], max_length: int) -> Iterator[Any]:
    """Yield what the tokeniser makes of each input, as it does itself, some at a time."""
    paired, presplit = (bool(inputs) and isinstance(inputs[0], kind) for kind in (tuple, list))
    spaced = presplit and _wants_space(tokenizer)
    for first in range(0, len(inputs), _ENCODE_CHUNK):
        chunk = inputs[first : first + _ENCODE_CHUNK]
        if spaced:
            chunk = [[f" {word}" if word[:1] not in ("", " ") else word for word in words] for words in chunk]
        batch: Any = tokenizer(
            [text for text, _ in chunk] if paired else list(chunk),
            [second for _, second in chunk] if paired else None,
            is_split_into_words=presplit,
            truncation=True,
            max_length=max_length,
            return_special_tokens_mask=True,
        )
        yield from batch.encodings


def word_tokens(word_ids: list[int | None], n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of each word's first and last token, -1 for words without."""
    starts, ends = np.full(n_words, -1, dtype=np.int64), np.full(n_words, -1, dtype=np.int64)
    for position, word in enumerate(word_ids):
        if word is not None:
            starts[word] = position if starts[word] < 0 else starts[word]
            ends[word] = position
    return starts, ends


def _lost_words(encoding: Any) -> int:
    """Return how many words have tokens in what was cut off, and none in what was kept."""
    beyond = {word for part in encoding.overflowing for word in part.word_ids}
    return len(beyond - set(encoding.word_ids) - {None})


def _ends(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _wants_space(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Say whether a pre-split word is read as one within a text only with a space in front of it.

    Without it byte-level tokenisers would make the pieces of "inLondon" out of ["in", "London"].
    """

    def tokens(words: str | list[str]) -> Any:
        presplit = not isinstance(words, str)
        return tokenizer(words, is_split_into_words=presplit, add_special_tokens=False)

    def second(words: list[str]) -> list[int]:
        batch = tokens(words)
        return [token for token, word in zip(batch["input_ids"], batch.word_ids(), strict=True) if word == 1]

    alone = len(tokens("cat")["input_ids"])
    in_text = list(tokens("cat cat")["input_ids"])[alone:]
    return second(["cat", "cat"]) != in_text and second([" cat", " cat"]) == in_text
