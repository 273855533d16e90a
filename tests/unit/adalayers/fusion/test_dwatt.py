"""DWAtt against NumPy, its counts, and what becomes of layers that are taken away."""

import numpy as np
import pytest
import torch

from adalayers.fusion.dwatt import NEGLIGIBLE, DWAttConfig
from tests.helpers import formulas
from tests.helpers.formulas import array
from tests.helpers.mixing import SHAPE, STATES, WIDTH, K, assert_agrees, inputs, read_at
from tests.helpers.states import made_shape

WIDTHS = pytest.mark.parametrize("k", [None, K], ids=["own width", "matched"])


def dwatt(k=None):
    """DWAtt whose norms' scales and shifts are not 1 and 0."""
    torch.manual_seed(1)
    made = DWAttConfig(**read_at(k)).build(SHAPE)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn_like(parameter)
            assert parameter.ndim == 2 or "values" in name or name.startswith("query.norm")
    return made


def bottleneck(module, x):
    """f(x) = W LN(gelu(U x)) of equation 6."""
    inner = formulas.normalised(formulas.gelu(x @ array(module.down.weight).T), module.norm)
    return inner @ array(module.up.weight).T


def numpy_dwatt(made, read, gone=(), *, renormalise=True):
    """h of equations 3 to 11, in float64; `gone`: places taken away."""
    left = [place for place in range(len(read)) if place not in gone]
    last = read[left[-1]]
    inner = last + bottleneck(made.query, last)
    query = 1 + np.where(inner > 0, inner, np.exp(np.minimum(inner, 0)) - 1)
    keys = array(made.embeddings) @ array(made.keys.weight).T
    scores = query @ keys.T
    if renormalise:
        scores[:, list(gone)] = -np.inf
    attention = formulas.softmax(scores)
    attention[:, list(gone)] = 0
    values = [
        formulas.normalised(bottleneck(value[0], x), value[1])
        for value, x in zip(made.values, read, strict=True)
    ]
    return last + sum(attention[:, [place]] * values[place] for place in left)


@WIDTHS
@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize("gone", [(), (0,), (1, 2), (2, 4)], ids=str)
def test_agrees_with_numpy_and_states_taken_away_have_neither_key_nor_value(k, gone, renormalise):
    """Without the last, the deepest that is left takes its place."""
    made, states = dwatt(k), inputs()
    read = formulas.read(made.projected, [states[state] for state in STATES])
    expected = numpy_dwatt(made, read, gone, renormalise=renormalise)
    assert made.width == expected.shape[1] == (k or WIDTH)
    assert_agrees(made, lambda places: expected, *gone, renormalise=renormalise)


def test_texts_attend_by_their_means():
    states, lengths = inputs(), torch.tensor([4, 3])
    torch.manual_seed(1)
    of_texts = DWAttConfig(k=K, attends="texts", read_out="mean").build(SHAPE)
    means = {state: torch.stack([values[:4].mean(0), values[4:].mean(0)]) for state, values in states.items()}
    read = formulas.read(of_texts.projected, [means[state] for state in STATES])
    given = array(of_texts(states, lengths))
    np.testing.assert_allclose(given, numpy_dwatt(of_texts, read), atol=1e-5)
    assert DWAttConfig(attends="texts", read_out="mean", heads=2).pooling(made_shape()) == "mean"


def test_shares_that_float32_cannot_tell_from_none_are_none():
    """Next to the rest: the token's shares differ by less than rounding, and no product of theirs is denormal."""
    made = dwatt()
    query = 40 * torch.rand(200, WIDTH, generator=torch.Generator().manual_seed(2))
    exact = torch.softmax((query @ made.keys(made.embeddings).T).double(), -1)
    shares = made.attention(query)
    assert 0 < exact.min() < 1e-30
    assert shares[shares > 0].min() > 0.1 * np.exp(-NEGLIGIBLE)
    torch.testing.assert_close(shares.double(), exact, atol=1e-12, rtol=1e-3)


def test_a_layers_start_depends_on_no_other():
    def start(numbers):
        torch.manual_seed(0)
        config = DWAttConfig(k=K, hidden_states=f"layers:{','.join(map(str, numbers))}")
        made = config.build(made_shape(layers=9, width=WIDTH))
        place = list(numbers).index(3)
        own = (*made.values[place].parameters(), *made.projected.project[place].parameters())
        return [made.embeddings[place], *own]

    for a, b in zip(start([1, 2, 3]), start([0, 3, 7, 9]), strict=True):
        assert torch.equal(a, b)


def test_counts_on_roberta_large():
    """Table 2 prints 26.33M. A value's map: W and U 1024 x 512, LN 512 and LN_n 1024 with scale and shift."""
    made = DWAttConfig(own_width=True).build(made_shape(layers=24, width=1024))
    count = sum(p.numel() for p in made.parameters())
    bottleneck = 2 * 1024 * 512 + 2 * 512
    assert count == 24 * (bottleneck + 2 * 1024) + bottleneck + 24 * 1024 == 26_313_728
    assert abs(count / 26.33e6 - 1) < 0.002
    assert made.weights_at_use() == count + 24 * 24  # the embeddings, which are not trained
    assert made.kept_at_use(1024) == 24 * 1024
