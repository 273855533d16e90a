"""Hidden states at random, for tests of fusions that mix them token by token."""

import torch

from tests.helpers.states import encoder

L, WIDTH, K, TOKENS = 5, 12, 8, 7
STATES = encoder(*range(1, L + 1))
LENGTHS = torch.tensor([TOKENS])


def inputs(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {state: torch.randn(TOKENS, WIDTH, generator=generator) for state in STATES}
