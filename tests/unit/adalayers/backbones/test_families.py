"""Every family of the table, on a small random model of the real architecture: which tensors are its hidden states."""

import dataclasses
import itertools
import re

import pytest
import torch

from adalayers.backbones.check import found_out
from adalayers.backbones.families import FAMILIES
from adalayers.backbones.loading import count_parameters, load
from adalayers.backbones.pretrained import read_config
from adalayers.backbones.sources import resolve
from adalayers.backbones.tokens import encode, load_tokenizer
from adalayers.states import State
from tests.helpers.refusing import refused
from tests.helpers.studying import ROOT
from tests.helpers.tiny import batch, tiny_backbone

LENGTHS = [9, 5, 2]
SIZES = {"num_hidden_layers": 5, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-5 * max(1.0, float(b.abs().max())))


def outputs(model, source, ids, mask):
    """Return transformers' own states of each stream and the module that gives them, by the stream's name."""
    if source.reading.kind != "encoder-decoder":
        out = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        return {source.streams[0].name: (out.hidden_states, model)}
    if source.reading.first == "last":
        first = ids.gather(1, mask.sum(1, keepdim=True) - 1)
    else:
        first = torch.full_like(ids[:, :1], model.config.decoder_start_token_id)
    shifted = torch.cat([first, ids[:, :-1]], dim=1)
    given = {"decoder_input_ids": shifted, "decoder_attention_mask": mask, "output_hidden_states": True}
    out = model(input_ids=ids, attention_mask=mask, **given)
    return {
        "encoder": (out.encoder_hidden_states, model.get_encoder()),
        "decoder": (out.decoder_hidden_states, model.get_decoder()),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_its_states_are_those_that_transformers_gives_and_padding_and_the_batch_change_none(tiny_of, family):
    import transformers

    source = resolve(str(tiny_of(family)))
    assert [stream.layers for stream in source.streams] == (
        [4, 2] if source.reading.kind == "encoder-decoder" else [4]
    )
    names = {"encoder": ["encoder"], "decoder": ["decoder"], "encoder-decoder": ["encoder", "decoder"]}
    assert [stream.name for stream in source.streams] == names[source.reading.kind]
    ids, mask = batch(LENGTHS)
    backbone = load(source.reads([state for stream in source.streams for state in stream.states()]))
    states = backbone(ids, mask)
    assert list(states) == [state for stream in source.streams for state in stream.states()]
    real = mask.bool()
    model = transformers.AutoModel.from_pretrained(tiny_of(family)).eval()
    with torch.no_grad():
        given = outputs(model, source, ids, mask)
    for stream in source.streams:
        theirs, module = given[stream.name]
        ours = [states[State(stream.name, number)] for number in range(stream.layers + 1)]
        assert len(theirs) == len(ours)
        for a, b in zip(ours, theirs, strict=True):
            assert a.shape == (3, 9, 32)
            assert torch.isfinite(a[real]).all()
            close(a[real], b[real])
        assert all(not torch.allclose(a[real], b[real]) for a, b in itertools.pairwise(ours))
        if stream.final_norm:
            before = states[State(stream.name, stream.layers, before_norm=True)]
            with torch.no_grad():
                close(module.get_submodule(source.reading.final_norm)(before)[real], ours[-1][real])
            assert not torch.allclose(before[real], ours[-1][real])
    for i, length in enumerate(LENGTHS):
        for state, values in backbone(ids[i : i + 1, :length], mask[i : i + 1, :length]).items():
            close(states[state][i, :length], values[0])
    assert not any(values.requires_grad or values.is_inference() for values in states.values())
    total, of_layer = count_parameters(source)
    assert total == sum(parameter.numel() for parameter in model.parameters())
    assert (of_layer > 0) == (family != "albert"), "whose layers are one and the same, in no list"
    if family != "albert":
        # Found without the table: the same kind of states, the same norm, and that padding is nothing.
        found = found_out(read_config(source.folder, source.id), family)
        assert (found.kind, found.final_norm) == (source.reading.kind, source.reading.final_norm)


@pytest.mark.parametrize("family", ["bert", "gpt2", "qwen3", "gemma3_text", "modernbert", "opt"])
def test_some_layers_are_those_of_the_whole_model(tiny_of, family):
    source = resolve(str(tiny_of(family)))
    ids, mask = batch(LENGTHS)
    whole = load(source)(ids, mask)
    some = source.reads([State(source.streams[0].name, number) for number in (0, 2)])
    random = dataclasses.replace(some, id=f"random:{some.id}")
    for part, wanted in ((some, whole), (random, load(dataclasses.replace(random, chosen=None))(ids, mask))):
        backbone = load(part)
        assert sum(len(m) == 2 for m in backbone.modules() if isinstance(m, torch.nn.ModuleList)) == 1
        states = backbone(ids, mask)
        assert list(states) == part.states
        assert all(torch.equal(values, wanted[state]) for state, values in states.items())


def test_a_gemma_that_sees_both_sides_is_an_encoder(tmp_path):
    folder = tiny_backbone(tmp_path / "gemma", "gemma3_text", layers=2, use_bidirectional_attention=True)
    assert [stream.name for stream in resolve(str(folder)).streams] == ["encoder"]


# Families without an entry


def of_another(family):
    """Return what a family without an entry is found out to be."""
    from transformers import AutoConfig

    ids = {"vocab_size": 100, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    heads = {"num_key_value_heads": 2} if family in ("granite", "cohere") else {}
    return found_out(AutoConfig.for_model(family, **SIZES, **ids, **heads), family)


def test_a_family_without_an_entry_is_read_where_a_check_holds_and_named_where_not():
    kinds = {"granite": "decoder", "cohere": "decoder", "biogpt": "decoder", "splinter": "encoder"}
    assert {family: of_another(family).kind for family in kinds} == kinds
    padding = "padding or the other texts of a batch change its hidden states"
    for family, said in {"fnet": padding, "convbert": padding, "vit": "it reads no token ids"}.items():
        refused(rf"is a '{family}' model, which is none of albert, .*({said})", of_another, family)


# Words


@pytest.mark.parametrize(
    "family",
    ["bert", "roberta", "t5", "gpt2", "gpt_neox", "qwen2", "llama", "gemma", "albert", "mbart", "pegasus"],
)
def test_words_are_read_as_they_are_within_a_text(tiny_of, family):
    """But for the first one, which in a text may follow no space."""
    tokenizer = load_tokenizer(resolve(str(tiny_of(family))))
    words = ["the", "zoo", "it's", "London", "dogs", "zoo's"]
    by_words, by_text = encode(tokenizer, [words], 64), encode(tokenizer, [" ".join(words)], 64)

    pieces, as_text = (tokenizer.convert_ids_to_tokens(of.input_ids.tolist()) for of in (by_words, by_text))
    assert pieces[-6:] == as_text[-6:]
    for word, start in zip(words, by_words.word_starts, strict=True):
        assert family == "bert" or pieces[start][0] in "Ġ▁"
        assert word.startswith(pieces[start].strip("Ġ▁"))


def test_the_table_of_families_names_every_family():
    kinds = dict(re.findall(r"^\| ([a-z-]+) \|(.*)", (ROOT / "docs" / "backbones.md").read_text(), re.M))
    for family, entry in FAMILIES.items():
        assert f"`{family}`" in kinds["decoder" if callable(entry) else entry.kind]
