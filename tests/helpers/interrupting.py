"""Trials that are killed and go on, for tests that they end as if nothing had been."""

import functools

import pytest
import torch

from adalayers.training.trainer import train


class Killed(Exception):
    pass


def killed_at(epoch):
    """Return what kills a trial after its evaluation of `epoch`."""

    def kill(evaluation):
        if evaluation.metrics["epoch"] == epoch:
            raise Killed

    return kill


def interrupted(config, data, folder, *, epoch=2, seed=0, test=False):
    """Kill a trial after its evaluation of `epoch`, go on from its checkpoint and return what that leaves."""
    run = functools.partial(train, config, data, seed=seed, test=test, checkpoint=folder)
    with pytest.raises(Killed):
        run(on_evaluation=killed_at(epoch))
    torch.rand(100)  # what others draw meanwhile
    epochs = []
    continued = run(on_evaluation=lambda evaluation: epochs.append(evaluation.metrics["epoch"]))
    assert epochs[0] > 1, "it started again instead of continuing"
    return continued


def assert_same(one, other):
    """Compare outcomes of two trials bit for bit, but for the time that they took."""
    assert {**one.row, "seconds": 0} == {**other.row, "seconds": 0}
    assert one.history == other.history
    torch.testing.assert_close(dict(one.model.state_dict()), dict(other.model.state_dict()), rtol=0, atol=0)
