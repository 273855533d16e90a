"""Texts in tokens: which words there are, and which token is a word's first."""

import pytest
import transformers

from adalayers.deploy.tokenized import tokenize_texts, tokenize_words, word_spans
from tests.helpers.refusing import refused

TEXT = "John Smith's cat, the big one, sleeps in London."


def test_words_are_what_space_and_punctuation_part():
    for text, words in (
        (TEXT, "John Smith 's cat , the big one , sleeps in London ."),
        ("It cost $3.5, i.e. well-known.", "It cost $ 3.5 , i.e . well-known ."),
        ('"Na\u00efve"  --\tso...', '" Na\u00efve " - - so . . .'),
        ("   ", ""),
        (
            "Rio\u0301 \u0926\u093f\u0932\u094d\u0932\u0940, ok \u2764\ufe0f!",
            "Rio\u0301 \u0926\u093f\u0932\u094d\u0932\u0940 , ok \u2764\ufe0f !",
        ),
    ):
        assert [text[a:b] for a, b in word_spans(text)] == words.split()
    assert [TEXT[a:b] for a, b in word_spans(TEXT, apart=True)] == TEXT.split()


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "t5"])
def test_read_whole_or_word_by_word_a_words_first_token_begins_it(family, tiny_of):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_of(family))
    for tokenize in (tokenize_texts, tokenize_words):
        (read,) = tokenize(tokenizer, [TEXT], 100)
        assert read.words == word_spans(TEXT)
        assert len(set(read.first.tolist())) == len(read.words)
        assert (read.first <= read.last).all()
        assert (read.last[:-1] < read.first[1:]).all(), "no word's last token is of the next one"
        for (begin, _), first in zip(read.words, read.first, strict=True):
            token = tokenizer.convert_ids_to_tokens(int(read.ids[first]))
            piece = tokenizer.convert_tokens_to_string([token]).strip()  # of sentencepiece a space, maybe
            assert TEXT[begin:].startswith(piece)
        assert not read.cut
        (short,) = tokenize(tokenizer, [TEXT], 8)
        assert (len(short.ids), short.cut, short.first[-1]) == (8, True, -1)
        assert short.first[0] >= 0


def test_a_text_without_a_token_is_bad_input(tiny_of):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_of("gpt2"))
    refused("at least one token of every text, '' gives none", tokenize_texts, tokenizer, ["cat", ""], 100)
