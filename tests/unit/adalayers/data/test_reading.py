"""Which hidden states are computed and stored: those that the configurations of a study read."""

import numpy as np
import pytest
import torch

from adalayers.config import trial_config
from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.features.features import store_folder
from adalayers.request import DataRequest
from adalayers.states import State
from tests.helpers.refusing import refused

SMALL = {"train_examples": 12, "eval_examples": 6, "test_examples": 6, "max_length": 16}


@pytest.fixture(scope="module")
def prepared(tiny_of):
    made = {family: tiny_of(family) for family in ("bert", "t5", "gpt2")}
    return {name: prepare(DataRequest(str(at), "acceptability-demo", **SMALL)) for name, at in made.items()}


def keys(prepared, *configs):
    reading = prepared.reading([trial_config(**config) for config in configs])
    return [state.key for state in reading.source.states]


def test_a_stream_is_read_whole_unless_layers_are_named(prepared):
    every = [f"encoder_{i:02d}" for i in range(5)]
    assert keys(prepared["bert"], {}) == every
    assert keys(prepared["bert"], {"hidden_states": "layers:1,3"}) == ["encoder_01", "encoder_03"]
    two = keys(prepared["bert"], {"hidden_states": "layers:3"}, {"hidden_states": "layers:0"})
    assert two == ["encoder_00", "encoder_03"]
    assert keys(prepared["bert"], {"hidden_states": "layers:3"}, {}) == every
    decoder = ["decoder_00", "decoder_01", "decoder_02", "decoder_02_before_norm"]
    assert keys(prepared["t5"], {}) == [*every, "encoder_04_before_norm"]
    assert keys(prepared["t5"], {"stream": "decoder"}) == decoder
    assert keys(prepared["t5"], {"stream": "both"}) == [*every, "encoder_04_before_norm", *decoder]
    both = {"stream": "both", "hidden_states": "layers:2", "final_norm": False}
    assert keys(prepared["t5"], both) == ["encoder_02", "decoder_02_before_norm"]
    last = {"hidden_states": "layers:4", "final_norm": False}
    assert keys(prepared["gpt2"], last) == ["decoder_04_before_norm"]


def test_configurations_name_streams_that_there_are(prepared):
    t5, bert, gpt2 = (prepared[family].shape for family in ("t5", "bert", "gpt2"))
    both = [state.name for state in trial_config(stream="both").states(t5)]
    assert both == ["01", "02", "03", "04", "decoder_01", "decoder_02"]
    assert trial_config(stream="both").identity(t5)["stream"] == "both"
    assert "stream" not in trial_config().identity(t5) | trial_config().used(bert)
    assert trial_config(stream="decoder").identity(gpt2) == trial_config().identity(gpt2)
    trial_config(stream="decoder", base_model="fine-tuned").check(gpt2)  # its only one
    for lower in ("lower-half", "layers:1,2"):  # whose last layer is not read has no norm to be left out
        norms = [trial_config(hidden_states=lower, final_norm=norm) for norm in (True, False)]
        assert norms[0].identity(gpt2) == norms[1].identity(gpt2)
    for shape, message, config in (
        (gpt2, "has, got stream=both", {"stream": "both"}),
        (t5, "encoder where base_model=fine-tuned", {"stream": "decoder", "base_model": "fine-tuned"}),
        (t5, "the layer that is read is of one of them", {"stream": "both", "mix": "single", "layer": 2}),
    ):
        refused(message, trial_config(**config).check, shape)
    assert t5.depth([State("encoder", 3), State("decoder", 1)]) == 5


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("bert", {"hidden_states": "layers:1,3"}),
        ("gpt2", {"hidden_states": "layers:0,2"}),
        ("t5", {"stream": "both"}),
    ],
)
def test_a_store_of_some_states_holds_what_one_of_all_does(prepared, tmp_path, family, config):
    part = prepared[family].reading([trial_config(**config)])
    states = part.source.states
    some = part.data("disk", cache=tmp_path).splits["train"].features
    assert {path.name for path in some.folder.glob("*coder_*")} == {f"{s.key}.npy" for s in states}
    whole = prepared[family].reading([trial_config(**config | {"hidden_states": "layers"})])
    every = whole.data("live").splits["train"].features
    ours, theirs = (features.read(np.arange(6), states, torch.device("cpu")) for features in (some, every))
    for state in states:
        most = float(theirs[state].abs().max())
        torch.testing.assert_close(ours[state].float(), theirs[state].float(), rtol=0, atol=2e-3 * most)


def test_a_store_of_all_states_serves_who_reads_some(prepared, tmp_path):
    bert = prepared["bert"]
    part = bert.reading([trial_config(hidden_states="layers:1,3")])
    own = store_folder(tmp_path, part.source, part.encoded["train"])
    every = store_folder(tmp_path, bert.source, bert.encoded["train"])
    bert.data("disk", cache=tmp_path)
    features = part.data("disk", cache=tmp_path).splits["train"].features
    assert features.folder == every != own
    # A damaged one serves nobody: the part is computed by itself.
    (every / "encoder_00.npy").write_bytes(b"")
    features = part.data("disk", cache=tmp_path).splits["train"].features
    assert features.folder == own
    live, second = part.data("live").splits["train"].features, State("encoder", 2)
    for each in (features, live):
        with pytest.raises(BadInput, match=r"wanted the hidden state encoder_02"):
            each.read(np.arange(2), [second], torch.device("cpu"))[second]
