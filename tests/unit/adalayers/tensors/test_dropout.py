"""Dropout by counting: what is dropped follows from its place alone, and looks drawn."""

import numpy as np
import pytest
import torch

from adalayers.tensors.dropout import factors, hashed, row_keys

EXAMPLES, STEP = np.arange(500), (1, 2, 3)


def dropped(step=STEP, where="head", examples=EXAMPLES, p=0.3, shape=(64,), tokens=0):
    return masks(row_keys(step, where, examples, tokens), [p], shape)[0] == 0


def masks(keys, ps, shape):
    """Return the factors of rows that members with these probabilities share."""
    return factors(hashed(torch.from_numpy(keys)[None], shape), ps)


def test_a_share_of_p_is_dropped_and_the_rest_scaled():
    given = masks(row_keys(STEP, "head", EXAMPLES), [0.0, 0.1, 0.5], (64,))
    for p, own in zip((0.0, 0.1, 0.5), given, strict=True):
        assert float((own == 0).float().mean()) == pytest.approx(p, abs=4 * 0.5 / 32000**0.5)
        assert float(own.max()) == pytest.approx(1 / (1 - p), rel=1e-4)
    assert not ((given[1] == 0) & (given[2] != 0)).any(), "the same draws, whatever the probability"


def test_neither_order_nor_padding_nor_other_examples_change_what_is_dropped():
    order = EXAMPLES[::-3]
    whole = dropped(shape=(20, 8))
    assert torch.equal(dropped(examples=order, shape=(12, 8)), whole[order.tolist()][:, :12])


@pytest.mark.parametrize("shape", [(64,), (8, 16, 16)])
def test_neighbours_are_not_correlated(shape):
    steps = [STEP, (2, 2, 3), (1, 3, 3), (1, 2, 4), (1, 3, 2)]
    masks = [dropped(step, p=0.5, shape=shape) for step in steps]
    masks += [dropped(where="mix/1", p=0.5, shape=shape), dropped(p=0.5, shape=shape, tokens=1)]
    flat = torch.stack([mask.flatten().float() for mask in masks])
    flat = torch.cat([flat, *(flat[:1].roll(away, 1) for away in (1, 2, 8, 16, 64, 2048))])
    apart = torch.corrcoef(flat).fill_diagonal_(0)
    assert apart.abs().max() < 4.5 / flat.shape[1] ** 0.5
