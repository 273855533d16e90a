"""Tokens first, then layers against NumPy, its counts and its starts."""

import math

import numpy as np
import pytest
import torch

from adalayers.fusion.tokens_first import TokensFirstConfig
from tests.helpers import formulas
from tests.helpers.formulas import array
from tests.helpers.mixing import SHAPE, STATES, TOKENS, WIDTH, K, L, assert_agrees, inputs
from tests.helpers.states import made_shape

LENGTHS = torch.tensor([4, TOKENS - 4])
HEADS = 2


def built(aggregate):
    torch.manual_seed(1)
    made = TokensFirstConfig(aggregate=aggregate, k=K, heads=HEADS).build(SHAPE)
    if aggregate == "gate":
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter)
    return made


def numpy_aggregate(module, x):
    """A of the rows of x [rows, K]."""
    if module is None:
        return x.mean(0)
    if hasattr(module, "w"):
        return formulas.softmax(np.tanh(x @ array(module.w))) @ x
    q, k, v = (x @ part.T for part in array(module.into.weight).reshape(3, K, WIDTH))
    each = K // HEADS
    heads = [slice(h * each, (h + 1) * each) for h in range(HEADS)]
    mixed = [formulas.softmax(q[:, h] @ k[:, h].T / math.sqrt(each)) @ v[:, h] for h in heads]
    return (np.concatenate(mixed, axis=1) @ array(module.out.weight).T).mean(0)


@pytest.mark.parametrize("aggregate", ["mean", "gate", "attention"])
def test_agrees_with_numpy_with_all_states_and_without_some(aggregate):
    made, states = built(aggregate), inputs()
    over_tokens = made.over_tokens or [None] * L
    texts = [
        [numpy_aggregate(a, x) for a, x in zip(over_tokens, of_text, strict=True)]
        for of_text in zip(*[np.split(array(states[state]), [4]) for state in STATES], strict=True)
    ]

    def formula(places):
        return np.stack([numpy_aggregate(made.over_layers, np.stack([v[i] for i in places])) for v in texts])

    for gone in ((), (1, 2)):
        assert_agrees(made, formula, *gone, lengths=LENGTHS)


def test_a_gate_starts_as_the_mean():
    torch.manual_seed(1)
    gate, mean = TokensFirstConfig(aggregate="gate", k=K, heads=HEADS).build(SHAPE), built("mean")
    torch.testing.assert_close(gate(inputs(), LENGTHS), mean(inputs(), LENGTHS))


def test_the_inner_width_and_heads_are_the_attentions_alone():
    shape = made_shape()
    same = [TokensFirstConfig(k=k, heads=h).identity(shape) for k, h in ((64, 8), (6, 4))]
    assert same[0] == same[1]
    assert {"k", "heads"} <= TokensFirstConfig(aggregate="attention").used(shape).keys()
