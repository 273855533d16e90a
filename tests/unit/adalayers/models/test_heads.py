"""The heads' own attention, encoder layer and dropout against PyTorch's."""

import pytest
import torch
from torch import nn

from adalayers.models.heads import EncoderLayer
from adalayers.tensors.attention import SelfAttention
from adalayers.tensors.dropout import Dropout

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
