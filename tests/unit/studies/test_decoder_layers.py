"""The arms of the decoder study and what it compares, on shapes without a backbone."""

import dataclasses

import pytest

from adalayers.states import Stream
from studies.decoder_layers import STUDY
from tests.helpers.planning import planned, planned_arms, setting_of
from tests.helpers.states import made_shape

STREAMS = {
    "bert": (Stream("encoder", 6),),
    "bart": (Stream("encoder", 6), Stream("decoder", 6)),
    "gpt2": (Stream("decoder", 6),),
}


def planned_on(family: str, head: str = "sequence"):
    shape = dataclasses.replace(made_shape(head, 3, 6, 32), streams=STREAMS[family], family=family)
    return planned(STUDY, setting_of(STUDY, shape, epochs=2, pool=64)), shape


def comparisons(made, shape):
    used = {name for arm in made.arms for name in arm.config.used(shape)}
    factors = [factor.name for factor in STUDY.design.factors if factor.name in used]
    return STUDY.design.comparisons(planned_arms(made, shape), factors, made.control)


def compared(made, shape) -> set[tuple[str, str]]:
    """Return the factors' levels that are compared with their references."""
    return {pair.names[:2] for pair in comparisons(made, shape) if pair.kind == "factor"}


DEPTHS = {
    ("hidden_states=lower-half", "hidden_states=layers"),
    ("hidden_states=upper-half", "hidden_states=layers"),
}
POOLINGS = {("read_out=mean", "read_out=attention"), ("read_out=last-token", "read_out=attention")}


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_one_stream_has_depth_and_pooling(family):
    made, shape = planned_on(family)
    assert compared(made, shape) == DEPTHS | POOLINGS
    assert len([arm for arm in made.arms if arm.role == "core"]) == 9
    states = {state.stream for arm in made.arms for state in arm.config.states(shape)}
    assert states == {STREAMS[family][0].name}
    assert not made.dropped
    assert any("encoder" in note for note in made.notes)


def test_words_of_a_decoder_are_read_at_their_last_or_first_token():
    made, shape = planned_on("gpt2", "token")
    assert compared(made, shape) == DEPTHS | {("word_position=first-token", "word_position=last-token")}
    assert not any("read_out" in arm.name for arm in made.arms)


def test_an_encoder_and_a_decoder_are_compared_alone_and_together():
    made, shape = planned_on("bart")
    assert compared(made, shape) == DEPTHS | POOLINGS | {
        ("stream=decoder", "stream=encoder"),
        ("stream=both", "stream=encoder"),
    }
    assert made.control == "stream=encoder hidden_states=layers read_out=attention"
    by_name = {arm.name: arm.config for arm in made.arms}
    both = by_name["stream=both hidden_states=lower-half read_out=mean"].states(shape)
    assert [state.name for state in both] == ["01", "02", "03", "decoder_01", "decoder_02", "decoder_03"]
    assert by_name["last layer, decoder"].mix == "last"
    assert by_name["first token, decoder"].read_out == "first-token"
    assert len(made.arms) == 27 + 2 + 2


def test_a_read_out_is_compared_with_the_mix_of_its_stream():
    """The first token of an encoder is a rival, that of a decoder a floor."""
    made, shape = planned_on("bart")
    whole = "stream={} hidden_states=layers read_out=attention"
    pairs = {
        (pair.arm, pair.control): pair.primary for pair in comparisons(made, shape) if pair.kind == "arm"
    }
    assert pairs == {
        ("last layer, encoder", whole.format("encoder")): True,
        ("last layer, decoder", whole.format("decoder")): True,
        ("first token, encoder", whole.format("encoder")): True,
        ("first token, decoder", whole.format("decoder")): False,
    }
