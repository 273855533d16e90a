"""Hidden states at random, for tests of fusions that mix them token by token."""

import torch

from adalayers.config import trial_config
from tests.helpers.states import encoder, made_shape, made_states

L, WIDTH, K = 5, 12, 8
STATES = encoder(*range(1, L + 1))
SHAPE = made_shape(layers=L, width=WIDTH)
LENGTHS = torch.tensor([4, 3])
TOKENS = int(LENGTHS.sum())


def inputs(seed=0):
    return made_states(STATES, TOKENS, WIDTH, seed)


def of(fusion, **settings):
    """Return the configuration of a method."""
    return trial_config(fusion=fusion, **settings)


def read_at(k):
    """Return the settings of a width that hidden states are projected to; None: they are read as they are."""
    return {"own_width": True} if k is None else {"k": k}


def counted(config):
    """Return what a fusion trains on RoBERTa-large's shape, and how many numbers it keeps of a token at use."""
    fusion = config.build(made_shape(layers=24, width=1024))
    trained = sum(p.numel() for p in fusion.parameters() if p.requires_grad)
    return trained - fusion.unused_parameters(), fusion.kept_at_use(1024)
