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
    backbone, batch = backbone_of(family), made_tokens(3, 4, 9)
    expected = frozen_states(backbone, batch.input_ids, batch.lengths.tolist())
    every = backbone.stream.states()
    for states in (every, every[-1:], encoder(2), encoder(0), encoder(1, 3)):
        base = Base(backbone).eval()
        base.cut(max(state.number for state in states))
        for most in (0, 4, 10_000):
            monkeypatch.setattr("adalayers.models.trainable_base.base.PASS_TOKENS", most)
            with torch.no_grad():
                given = base(batch.input_ids, batch.lengths, states)
            assert list(given) == states
            for state, value in given.items():
                torch.testing.assert_close(value, expected[state], atol=2e-5, rtol=1e-5)


def test_the_last_state_before_the_final_norm_is_another_one(backbone_of):
    base, batch = Base(backbone_of("t5")).eval(), made_tokens(5)
    behind, before = State("encoder", 4), State("encoder", 4, before_norm=True)
    given = base(batch.input_ids, batch.lengths, [before, behind])
    assert not torch.allclose(given[before], given[behind])
    for state in (behind, before):
        alone = base(batch.input_ids, batch.lengths, [state])
        assert torch.equal(alone[state], given[state])


@pytest.mark.parametrize("family", ["bert", "bart", "t5"])
def test_no_layer_beyond_the_deepest_state_is_run_or_kept(family, backbone_of):
    base, batch, ran = Base(backbone_of(family)).eval(), made_tokens(5), []
    for number, layer in enumerate(base.layers, start=1):
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
    base(batch.input_ids, batch.lengths, encoder(2))
    assert ran == [1, 2]
    base.cut(2)
    assert (
        len(base.layers) == 3
    )  # what enters the third is the second's output, behind whatever follows a layer
    ran.clear()
    base(batch.input_ids, batch.lengths, encoder(0, 2))
    assert ran == [1, 2]
