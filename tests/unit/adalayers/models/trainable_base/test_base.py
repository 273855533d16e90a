"""A trial's own copy of a base model: the backbone's hidden states, no deeper than they are read."""

import pytest
import torch

from adalayers.models.trainable_base.base import Base
from adalayers.states import State
from tests.helpers.made_tokens import made_tokens
from tests.helpers.states import encoder
from tests.helpers.tiny import FAMILIES


def frozen_states(backbone, ids, lengths):
    """Return {state: [tokens, K]}, each sequence run alone."""
    runs = [
        backbone(sequence.unsqueeze(0), torch.ones(1, len(sequence), dtype=torch.long))
        for sequence in ids.split(lengths)
    ]
    return {state: torch.cat([run[state][0] for run in runs]) for state in runs[0]}


@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_are_the_backbones_however_they_are_padded(family, backbone_of, monkeypatch):
    """And no layer beyond the deepest state is run or kept, but the one that it enters."""
    backbone, batch = backbone_of(family), made_tokens(3, 4, 9)
    expected = frozen_states(backbone, batch.input_ids, batch.lengths.tolist())
    every = backbone.stream.states()
    for states in (every, every[-1:], encoder(0), encoder(1, 2)):
        base, ran, deepest = Base(backbone).eval(), set(), max(state.number for state in states)
        for number, layer in enumerate(base.layers, start=1):
            layer.register_forward_hook(lambda *_, ran=ran, number=number: ran.add(number))
        for most in (0, 10_000):
            monkeypatch.setattr("adalayers.models.trainable_base.base.PASS_TOKENS", most)
            with torch.no_grad():
                given = base(batch.input_ids, batch.lengths, states)
            assert list(given) == states
            for state, value in given.items():
                torch.testing.assert_close(value, expected[state], atol=2e-5, rtol=1e-5)
            assert ran == {*range(1, deepest + 1)}
            base.cut(deepest)
        assert len(base.layers) == min(deepest + 1, len(every) - 1)


def test_the_last_state_before_the_final_norm_is_another_one(backbone_of):
    base, batch = Base(backbone_of("t5")).eval(), made_tokens(5)
    behind, before = State("encoder", 4), State("encoder", 4, before_norm=True)
    given = base(batch.input_ids, batch.lengths, [before, behind])
    assert not torch.allclose(given[before], given[behind])
    for state in (behind, before):
        alone = base(batch.input_ids, batch.lengths, [state])
        assert torch.equal(alone[state], given[state])
