"""Token ids: texts, pairs of texts and words in a backbone's tokens, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from adalayers.backbones import tokens as tk
from adalayers.backbones.loading import load
from adalayers.backbones.sources import resolve
from adalayers.backbones.tokens import encode, load_tokenizer
from adalayers.features.features import hidden_states
from adalayers.models.trainable_base.base import Base
from tests.helpers.refusing import refused

PAIRS = [("the cat", "he sleeps"), ("she walked", "the old dog is not very big"), ("a", "an house")]


@pytest.fixture(scope="module")
def sources(tiny_of):
    families = ("bert", "roberta", "t5", "distilbert", "gpt2")
    return {family: resolve(str(tiny_of(family, layers=2))) for family in families}


def read(source, inputs, max_length=12):
    """Return the tokens of each input, and how they are kept."""
    tokenizer = load_tokenizer(source)
    encoded = encode(tokenizer, inputs, max_length)
    rows = np.split(encoded.input_ids, encoded.offsets[1:-1])
    return [" ".join(tokenizer.convert_ids_to_tokens(row.tolist())) for row in rows], encoded


def test_texts_and_words(sources):
    rows, encoded = read(sources["bert"], ["the cat", "", "the zoo"])
    assert rows == ["[CLS] the cat [SEP]", "[CLS] [SEP]", "[CLS] the z ##o ##o [SEP]"]
    assert encoded.offsets.tolist() == [0, 4, 6, 12]
    assert (encoded.word_starts, encoded.word_offsets, encoded.token_types) == (None, None, None)
    assert encoded.special.astype(int).tolist() == [1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1]
    assert encoded.take(np.array([2, 1])).special.astype(int).tolist() == [1, 0, 0, 0, 0, 1, 1, 1]
    rows, encoded = read(sources["bert"], [["the", "zoo", "cat"], [], ["", "\u200b", "dog"]])
    assert rows[0] == "[CLS] the z ##o ##o cat [SEP]"
    assert encoded.word_starts.tolist() == [1, 2, 5, -1, -1, 1]
    assert encoded.word_ends.tolist() == [1, 4, 5, -1, -1, 1]
    assert encoded.word_offsets.tolist() == [0, 3, 3, 6]
    assert encoded.take(np.array([2, 0])).word_ends.tolist() == [-1, -1, 1, 1, 4, 5]


def test_what_truncation_cuts_is_counted(sources):
    """Words without any token are no loss of truncation; one cut within has kept its first token."""
    words = [["zoo", "the", "zoo", "the", "", "cat"], ["the", "", "cat"], ["zoo", "the", "zoo"]]
    _, encoded = read(sources["bert"], words, max_length=7)
    assert encoded.truncated() == {"examples": 2, "words": 2}
    assert (encoded.cut.tolist(), encoded.lost_words.tolist()) == ([1, 0, 1], [2, 0, 0])
    assert encoded.word_ends[[2, 3, -1]].tolist() == [5, -1, 5]
    assert encoded.take(np.array([2, 1])).truncated() == {"examples": 1, "words": 0}
    _, encoded = read(sources["t5"], ["the cat the cat", "the cat the"], max_length=4)
    assert encoded.truncated() == {"examples": 1}
    assert encoded.special.astype(int).tolist() == [0, 0, 0, 1] * 2


def test_chunks_are_invisible(sources, monkeypatch):
    inputs = [["the", "cat"], ["zoo"], [], ["Anna", "sleeps", "in", "London"], ["dog"]]
    _, whole = read(sources["roberta"], inputs)
    monkeypatch.setattr(tk, "_ENCODE_CHUNK", 2)
    _, chunked = read(sources["roberta"], inputs)
    for field in ("input_ids", "offsets", "word_starts", "word_offsets", "special"):
        np.testing.assert_array_equal(getattr(whole, field), getattr(chunked, field))


@pytest.mark.parametrize("family", ["bert", "roberta", "t5", "distilbert"])
def test_a_pair_has_the_tokens_and_the_states_that_the_model_s_own_tokeniser_and_call_give(sources, family):
    tokenizer, backbone = load_tokenizer(sources[family]), load(sources[family])
    encoded = encode(tokenizer, PAIRS, 64)
    assert (encoded.token_types is not None) == (family in ("bert", "distilbert"))
    together = hidden_states(backbone, encoded, np.arange(3), torch.device("cpu"))
    for example, (first, second) in enumerate(PAIRS):
        given = tokenizer(first, second, return_tensors="pt")
        own = slice(encoded.offsets[example], encoded.offsets[example + 1])
        assert encoded.input_ids[own].tolist() == given["input_ids"][0].tolist()
        if family == "distilbert":
            given.pop("token_type_ids", None)  # its model takes none
        with torch.no_grad():
            theirs = backbone.model(**given, output_hidden_states=True).hidden_states
        for state in (state for state in together if not state.before_norm):
            torch.testing.assert_close(together[state][own], theirs[state.number][0], atol=1e-5, rtol=1e-4)
    if family == "bert":  # a copy that is trained reads types as the frozen one does
        ids, lengths, types = encoded.input_ids, np.diff(encoded.offsets), encoded.token_types
        given = [torch.from_numpy(each.astype(np.int64)) for each in (ids, lengths, types)]
        states = [state for state in together if state.number]
        copied = Base(backbone).eval().of_sequences(*given[:2], states, given[2])
        for state in states:
            torch.testing.assert_close(copied[state], together[state], atol=1e-5, rtol=1e-4)


def test_of_a_pair_that_is_too_long_the_longer_text_is_cut(sources):
    _, encoded = read(sources["bert"], PAIRS, 7)
    assert np.diff(encoded.offsets).tolist() == [7, 7, 6]
    assert encoded.truncated() == {"examples": 1}
    assert encoded.token_types[7:14].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert encoded.take(np.array([1])).token_types.tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_a_tokeniser_that_separates_nothing_is_given_one_text(sources):
    rows, encoded = read(sources["gpt2"], PAIRS)
    assert rows == read(sources["gpt2"], ["\n".join(pair) for pair in PAIRS])[0]
    assert encoded.token_types is None


def test_an_input_without_tokens_and_a_slow_tokeniser_are_bad_input(sources, monkeypatch):
    refused("input 1 gives none", read, sources["gpt2"], ["the", ""])
    slow = SimpleNamespace(is_fast=False)
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", lambda *_, **__: slow)
    refused("is a slow one", load_tokenizer, sources["bert"])
