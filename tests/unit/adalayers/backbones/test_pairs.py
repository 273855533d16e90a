"""Pairs of texts in a backbone's tokens, and the last tokens of words."""

import numpy as np
import pytest
import torch

from adalayers.backbones import loading, sources
from adalayers.backbones.tokens import encode, load_tokenizer
from adalayers.features.extract import hidden_states
from adalayers.models.trainable_base.base import Base
from tests.helpers.tiny import tiny_backbone

PAIRS = [("the cat", "he sleeps"), ("she walked", "the old dog is not very big"), ("a", "an house")]
SIZE = {"layers": 2, "width": 16, "heads": 2}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("pairs")
    families = ("bert", "roberta", "deberta-v2", "bart", "t5", "distilbert")
    return {family: tiny_backbone(root / family, family, **SIZE) for family in families}


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2", "bart", "t5", "distilbert"])
def test_a_pair_has_the_tokens_and_the_states_that_the_model_s_own_tokeniser_and_call_give(folders, family):
    source = sources.resolve(str(folders[family]))
    tokenizer, backbone = load_tokenizer(source), loading.load(source)
    encoded = encode(tokenizer, PAIRS, 64)
    assert (encoded.token_types is not None) == (family in ("bert", "deberta-v2", "distilbert"))
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


def test_a_copy_of_the_base_model_reads_types_as_the_frozen_one_does(folders):
    source = sources.resolve(str(folders["bert"]))
    backbone = loading.load(source)
    encoded = encode(load_tokenizer(source), PAIRS, 64)
    states = [state for state in backbone.stream.states() if state.number]
    base = Base(backbone).eval()
    with torch.no_grad():
        ours = base(
            torch.from_numpy(encoded.input_ids.astype(np.int64)),
            torch.from_numpy(np.diff(encoded.offsets)),
            states,
            torch.from_numpy(encoded.token_types.astype(np.int64)),
        )
    theirs = hidden_states(backbone, encoded, np.arange(3), torch.device("cpu"))
    for state in states:
        torch.testing.assert_close(ours[state], theirs[state], atol=1e-5, rtol=1e-4)


def test_of_a_pair_that_is_too_long_the_longer_text_is_cut(folders):
    tokenizer = load_tokenizer(sources.resolve(str(folders["bert"])))
    encoded = encode(tokenizer, PAIRS, 7)
    assert np.diff(encoded.offsets).tolist() == [7, 7, 6]
    assert encoded.truncated() == {"examples": 1}
    assert encoded.token_types[7:14].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert encoded.take(np.array([1])).token_types.tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_a_tokeniser_that_separates_nothing_is_given_one_text(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone(tmp_path / "gpt2", "gpt2", **SIZE))
    ours, theirs = encode(tokenizer, PAIRS, 64), encode(tokenizer, ["\n".join(pair) for pair in PAIRS], 64)
    np.testing.assert_array_equal(ours.input_ids, theirs.input_ids)
    assert ours.token_types is None


def test_the_last_token_of_a_word(folders):
    tokenizer = load_tokenizer(sources.resolve(str(folders["bert"])))
    encoded = encode(tokenizer, [["the", "xyz", "cat"], ["qu"], ["cat", "abcdefgh", "dog"]], 7)
    # [CLS] the x ##y ##z cat [SEP]; [CLS] q ##u [SEP]; [CLS] cat a ##b ##c ##d [SEP], the rest is cut away
    assert encoded.word_starts.tolist() == [1, 2, 5, 1, 1, 2, -1]
    assert encoded.word_ends.tolist() == [1, 4, 5, 2, 1, 5, -1]
    assert encoded.take(np.array([1, 0])).word_ends.tolist() == [2, 1, 4, 5]
