"""The heads' own attention, encoder layer and dropout against PyTorch's; how a text is pooled and a word is read."""

import dataclasses

import pytest
import torch
from torch import nn

from adalayers.config import HeadConfig
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.heads import EncoderLayer, PooledHead, build_head
from adalayers.states import Shape, Stream
from adalayers.tensors.dropout import Dropout
from adalayers.tensors.layers import SelfAttention
from tests.helpers.refusing import refused

K, HEADS = 16, 4


def draw(time, batch=5):
    torch.manual_seed(time)
    x = torch.randn(batch, time, K, requires_grad=True)
    lengths = torch.randint(1, time + 1, (batch,))
    lengths[0] = time
    return x, torch.arange(time) >= lengths.unsqueeze(1)


def gradients(module, out, x, real):
    towards = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)) * real.unsqueeze(-1)
    return torch.autograd.grad(out, [x, *module.parameters()], towards)


@pytest.mark.parametrize("time", [1, 17])
def test_attention_is_pytorchs(time):
    ours = SelfAttention(K, HEADS)
    theirs = nn.MultiheadAttention(K, HEADS, batch_first=True)
    theirs.load_state_dict(ours.state_dict())
    x, padding = draw(time)
    a, (b, _) = ours(x, padding), theirs(x, x, x, key_padding_mask=padding, need_weights=False)
    torch.testing.assert_close(a[~padding], b[~padding], atol=1e-6, rtol=1e-5)
    for mine, other in zip(gradients(ours, a, x, ~padding), gradients(theirs, b, x, ~padding), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-4)


def test_an_encoder_layer_is_pytorchs():
    torch.manual_seed(7)
    ours = EncoderLayer(K, HEADS, 32, dropout=0.1)
    torch.manual_seed(7)
    how = {"activation": "gelu", "batch_first": True, "norm_first": True}
    theirs = nn.TransformerEncoderLayer(K, HEADS, 32, 0.1, **how)
    torch.testing.assert_close(dict(ours.state_dict()), dict(theirs.state_dict()), rtol=0, atol=0)
    x, padding = draw(9)
    ours.eval()
    theirs.eval()
    a, b = ours(x, padding), theirs(x, src_key_padding_mask=padding)
    torch.testing.assert_close(a[~padding], b[~padding], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(ours.train()(x, padding), a), "it drops out while it trains"
    attention = SelfAttention(K, HEADS, dropout=0.5)
    assert not torch.equal(attention(x, padding), attention(x, padding))


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_drops_a_share_p_and_keeps_the_mean(p):
    torch.manual_seed(0)
    x = torch.ones(400_003, requires_grad=True)
    out = Dropout(p)(x)
    share = float((out == 0).float().mean())
    assert share == pytest.approx(p, abs=5 * (p * (1 - p) / len(x)) ** 0.5)
    kept = out[out != 0]
    assert float(kept.min().detach()) == float(kept.max().detach()) == pytest.approx(1 / (1 - p), rel=1e-4)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach()), "the gradient passes through what was kept"
    neighbours = torch.corrcoef(torch.stack([(out[:-1] == 0).float(), (out[1:] == 0).float()]))[0, 1]
    assert abs(float(neighbours)) < 5 / len(x) ** 0.5, "elements of one random number are not independent"


TEXTS = Shape("sequence", 2, (Stream("encoder", 4),), 16, "bert")
WORDS = dataclasses.replace(TEXTS, head="token")
CAUSAL = dataclasses.replace(WORDS, streams=(Stream("decoder", 4),), family="gpt2")


POOLED = [("first-token", [1.0, 5.0]), ("last-token", [3.0, 5.0]), ("mean", [2.0, 5.0])]


@pytest.mark.parametrize(("pooling", "expected"), POOLED)
@pytest.mark.parametrize("filled", [0.0, 1e6])
def test_what_is_pooled_and_never_padding(pooling, expected, filled):
    states = torch.tensor([[1.0, 2.0, 3.0], [5.0, filled, filled]]).unsqueeze(2)
    padding = torch.tensor([[False, False, False], [False, True, True]])
    head = PooledHead(HeadConfig(read_out=pooling, dropout=0.0), 1, 1)
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
        refused(f"for {read_out} is for sequences", LayerMixConfig(read_out=read_out).check, WORDS)


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
