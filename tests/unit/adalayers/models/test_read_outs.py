"""How a text is pooled and which token answers for a word: by hand, and whatever the padding holds."""

import dataclasses

import pytest
import torch

from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.heads import PooledHead, build_head
from adalayers.states import Shape, Stream

ENCODER, DECODER = Stream("encoder", 4), Stream("decoder", 4)
TEXTS = Shape("sequence", 2, (ENCODER,), 16, "bert")
WORDS = dataclasses.replace(TEXTS, head="token")
CAUSAL = dataclasses.replace(WORDS, streams=(DECODER,), family="gpt2")


@pytest.mark.parametrize(
    ("pooling", "expected"), [("first-token", [1.0, 5.0]), ("last-token", [3.0, 5.0]), ("mean", [2.0, 5.0])]
)
@pytest.mark.parametrize("filled", [0.0, 1e6])
def test_what_is_pooled_and_never_padding(pooling, expected, filled):
    states = torch.tensor([[1.0, 2.0, 3.0], [5.0, filled, filled]]).unsqueeze(2)
    padding = torch.tensor([[False, False, False], [False, True, True]])
    head = PooledHead(1, 1, pooling=pooling, dropout=0.0)
    assert head.read(states, padding).flatten().tolist() == expected
    assert head.read(states[:1]).flatten().tolist() == expected[:1]


def test_a_read_out_is_a_head_and_an_identity_of_its_own():
    ids = set()
    for read_out in ("attention", "linear", "mean", "first-token", "last-token"):
        config = LayerMixConfig(read_out=read_out, k=16)
        head = build_head(config, TEXTS, 16)
        assert head(torch.randn(2, 3, 16)).shape == (2, 2)
        ids.add(str(config.identity(TEXTS)))
    assert len(ids) == 5
    for read_out in ("mean", "last-token"):
        with pytest.raises(BadInput, match=f"for {read_out} is for sequences"):
            LayerMixConfig(read_out=read_out).check(WORDS)


def test_the_word_position_renames_no_trial_of_an_encoder_and_is_the_last_of_a_decoder():
    default = LayerMixConfig()
    assert "word_position" not in default.identity(WORDS)
    assert default.identity(WORDS) == LayerMixConfig(word_position="first-token").identity(WORDS)
    assert default.used(WORDS)["word_position"] == "first-token"
    assert LayerMixConfig(word_position="last-token").identity(WORDS)["word_position"] == "last-token"
    assert default.identity(CAUSAL)["word_position"] == "last-token"
    first = LayerMixConfig(word_position="first-token")
    assert "word_position" not in first.identity(CAUSAL)
    assert first.identity(CAUSAL) != default.identity(CAUSAL)
    assert "word_position" not in LayerMixConfig(word_position="last-token").used(TEXTS)
