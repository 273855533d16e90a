"""Backbones: names, files, frozen states, token ids. Tiny random models of every family, no network."""

import dataclasses
import hashlib
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from adalayers.backbones import pretrained, sources
from adalayers.backbones import tokens as tk
from adalayers.backbones.loading import count_parameters, fitting_dtype, load
from adalayers.backbones.objectives import objective
from adalayers.backbones.sources import ALIASES, BackboneName, canonical, resolve
from adalayers.backbones.tokens import Encoded, encode, load_tokenizer
from adalayers.errors import BadInput
from adalayers.states import State
from adalayers.storage import hub
from tests.helpers.tiny import FAMILIES, batch, tiny_backbone

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("backbones")
    return {family: tiny_backbone(root / family, family, layers=3) for family in FAMILIES}


@pytest.fixture
def bert(folders, tmp_path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(folders["bert"], tmp_path / "bert"))


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    """No hub to reach, and an empty hub cache; returns the cache's folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def cached(cache: Path, hub_id: str, files: Path, *, only: str = "*") -> Path:
    """Lay files out as the hub's cache does."""
    repository = cache / f"models--{hub_id.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for file in files.glob(only):
        shutil.copy(file, snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    return snapshot


# Names


def test_alias_and_full_id_are_the_same():
    for alias, hub_id in ALIASES.items():
        assert canonical(alias) == canonical(hub_id) == canonical(hub_id.lower())


def test_canonical_names(tmp_path):
    assert canonical("FacebookAI/roberta-large").name == "roberta-large"
    other = BackboneName("my.model_2", "Some-Org/My.Model_2", "refs/pr/3", None)
    assert canonical("Some-Org/My.Model_2@refs/pr/3") == other
    (folder := tmp_path / "My Model (2)").mkdir()
    assert canonical(str(folder)) == BackboneName("my-model-2", "My Model (2)", None, folder)


def test_a_folder_without_a_model_hides_no_alias(tmp_path, monkeypatch, bert):
    (tmp_path / "minilm").mkdir()
    monkeypatch.chdir(tmp_path)
    assert canonical("minilm").folder is None
    shutil.copy(bert / "config.json", tmp_path / "minilm")
    assert canonical("minilm").folder == tmp_path / "minilm"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("robeta-large", "did you mean 'roberta-large'"),
        *((name, "unknown backbone") for name in ("", "/no/such/folder", "org/name/more", "org/na me")),
        ("random:robeta-large", "unknown backbone 'robeta-large'.*did you mean 'roberta-large'"),
        ("random:random:minilm", "say random: once"),
    ],
)
def test_unknown_names_are_bad_input(name, says):
    with pytest.raises(BadInput, match=says):
        canonical(name)


# Where files come from


@pytest.mark.parametrize(
    ("name", "folder"), [("roberta-large", "roberta-large"), ("org/My-Model", "My-Model")]
)
def test_mirror_goes_before_the_hub(folders, tmp_path, no_hub, name, folder):
    shutil.copytree(folders["roberta"], tmp_path / folder)
    source = resolve(name, data_dir=tmp_path)
    assert (source.name, source.folder) == (folder.lower(), tmp_path / folder)


def test_hub_cache_goes_before_the_hub(folders, no_hub):
    snapshot = cached(no_hub, "FacebookAI/roberta-large", folders["roberta"])
    source = resolve("roberta-large")
    assert (source.folder, source.revision, source.id) == (snapshot, COMMIT, "FacebookAI/roberta-large")


def test_unreachable_hub_names_the_way_out(no_hub):
    with pytest.raises(BadInput, match=r"FacebookAI/roberta-large.*--data-dir"):
        resolve("roberta-large")


@pytest.mark.parametrize("error", ["RepositoryNotFoundError", "GatedRepoError", "LocalEntryNotFoundError"])
def test_what_the_hub_refuses_is_bad_input(no_hub, monkeypatch, error):
    import huggingface_hub
    from huggingface_hub import errors

    def fetch(*_, local_files_only, **__):
        kind = errors.LocalEntryNotFoundError if local_files_only else getattr(errors, error)
        raise kind.__new__(kind)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    monkeypatch.setattr(hub, "require_hub", lambda what: None)
    said = rf"failed \({error}: .*revision \(v9\); .* licence at https://huggingface\.co/org/model, then set HF_TOKEN"
    with pytest.raises(BadInput, match=said):
        resolve("org/model@v9")


def test_only_what_is_read_is_fetched(folders, no_hub, monkeypatch):
    import huggingface_hub
    from huggingface_hub.utils import filter_repo_objects

    asked = {}

    def fetch(repo_id, *, revision, allow_patterns, local_files_only):
        if local_files_only:
            raise FileNotFoundError
        asked.update(id=repo_id, revision=revision, patterns=allow_patterns)
        return str(folders["bert"])

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    monkeypatch.setattr(hub, "require_hub", lambda what: None)
    resolve("org/model@v9")
    assert (asked["id"], asked["revision"]) == ("org/model", "v9")
    read = ["config.json", "model.safetensors", "model-00001-of-00002.safetensors", "vocab.txt", "spm.model"]
    others = ["pytorch_model.bin", "README.md", "onnx/model.onnx", "modeling_x.py", "model.fp16.safetensors"]
    assert list(filter_repo_objects([*read, *others], allow_patterns=asked["patterns"])) == read
    resolve("org/model", weights=False)
    assert asked["patterns"] == pretrained.NON_WEIGHT_FILES


def test_minilm_comes_from_its_package_if_its_weights_are_known(folders, tmp_path, no_hub, monkeypatch):
    model = tmp_path / sources.MINILM_PACKAGE / "model"
    shutil.copytree(folders["bert"], model)
    (model.parent / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match="wanted MiniLM weights of sha256 53aa51172d14"):
        resolve("minilm")
    weights = (model / "model.safetensors").read_bytes()
    monkeypatch.setattr(sources, "MINILM_SHA256", hashlib.sha256(weights).hexdigest())
    source = resolve("minilm")
    assert (source.name, source.folder, source.revision) == ("minilm", model, None)
    with pytest.raises(BadInput, match="out of reach"):
        resolve("minilm@some-revision")  # the package is of no named revision


@pytest.mark.parametrize(
    ("file", "says"), [("config.json", r"no config\.json"), ("model.safetensors", "safetensors weights")]
)
def test_a_folder_that_lacks_a_file_is_bad_input(bert, file, says):
    (bert / file).rename(bert / "pytorch_model.bin")
    with pytest.raises(BadInput, match=says):
        resolve(str(bert))
    if file == "model.safetensors":  # without weights it is enough to plan with
        source = resolve(str(bert), weights=False)
        assert (source.has_weights, count_parameters(source)[0] > 0) == (False, True)


@pytest.mark.parametrize("text", ["{", "{}", '{"model_type": "of-another-library"}'])
def test_a_config_that_is_none_is_bad_input(bert, text):
    (bert / "config.json").write_text(text)
    with pytest.raises(BadInput, match=r"config\.json of 'bert'"):
        resolve(str(bert))


def test_an_encoder_set_up_as_a_decoder_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"'bert' model as it was pretrained, .* set up as a decoder"):
        resolve(str(tiny_backbone(tmp_path / "bert", is_decoder=True)))


def test_fingerprint_is_that_of_the_files_wherever_they_lie(folders, tmp_path, no_hub):
    given = resolve(str(folders["roberta"]))
    shutil.copytree(folders["roberta"], tmp_path / "data" / "roberta-large")
    (tmp_path / "data" / "roberta-large" / "README.md").write_text("about")
    (tmp_path / "data" / "roberta-large" / "pytorch_model.bin").write_bytes(b"the same again")
    (tmp_path / "data" / "roberta-large" / "adapter.safetensors").write_bytes(b"another")
    mirrored = resolve("roberta-large", data_dir=tmp_path / "data")
    cached(no_hub, "FacebookAI/roberta-large", folders["roberta"])
    assert given.fingerprint == mirrored.fingerprint == resolve("roberta-large").fingerprint


def test_fingerprint_sees_every_file_that_matters(bert):
    prints = [resolve(str(bert)).fingerprint]
    for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        content = (bert / file).read_bytes()
        (bert / file).write_bytes(content + b" ")
        prints.append(resolve(str(bert)).fingerprint)
        (bert / file).write_bytes(content)
    assert len(set(prints)) == 5
    assert resolve(str(bert)).fingerprint == prints[0]


def test_sharded_weights(bert):
    import transformers

    whole, states = resolve(str(bert)), states_at(bert, 4)
    model = transformers.AutoModel.from_pretrained(bert)
    (bert / "model.safetensors").unlink()
    model.save_pretrained(bert, max_shard_size="50KB")
    assert resolve(str(bert)).fingerprint != whole.fingerprint
    torch.testing.assert_close(states_at(bert, 4), states, rtol=0, atol=0)
    next(bert.glob("model-00002-of-*")).unlink()
    with pytest.raises(BadInput, match="complete"):
        resolve(str(bert))


def test_max_length_by_family(folders, tmp_path):
    assert {resolve(str(folder)).max_length for folder in folders.values()} == {512}
    (folders["t5"] / "tokenizer_config.json").rename(tmp_path / "kept")
    unlimited = resolve(str(folders["t5"])).max_length
    shutil.move(tmp_path / "kept", folders["t5"] / "tokenizer_config.json")
    assert unlimited == pretrained.UNLIMITED_TOKENS


# Random weights


def test_random_weights_need_no_files_of_weights_and_are_the_same_each_time(bert):
    checkpoint = states_at(bert, 6, 3)
    (bert / "model.safetensors").unlink()
    source = resolve(f"random:{bert}")
    assert (source.name, source.id, source.random) == ("random-bert", "random:bert", True)
    assert (source.layers, source.width, source.family) == (3, 32, "bert")
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = states_at(f"random:{bert}", 6, 3)
    assert torch.equal(torch.rand(3), expected), "the global random state is left as it was"
    torch.testing.assert_close(states_at(f"random:{bert}", 6, 3), first, rtol=0, atol=0)
    assert len(checkpoint) == len(first)
    assert not any(torch.allclose(a, b, atol=1e-3) for a, b in zip(checkpoint, first, strict=True))
    assert all(torch.isfinite(state).all() and state.dtype == torch.float32 for state in first)
    assert load_tokenizer(source).is_fast


def test_a_random_backbone_has_a_fingerprint_of_its_own_that_no_weights_change(bert):
    checkpoint, random = resolve(str(bert)), resolve(f"random:{bert}")
    assert checkpoint.fingerprint != random.fingerprint
    (bert / "model.safetensors").write_bytes(b"others")
    assert resolve(f"random:{bert}").fingerprint == random.fingerprint
    (bert / "config.json").write_bytes((bert / "config.json").read_bytes() + b" ")
    assert resolve(f"random:{bert}").fingerprint != random.fingerprint


def test_random_of_an_alias_and_of_its_id_are_the_same(folders, tmp_path, no_hub):
    assert canonical("random:minilm") == canonical("random:sentence-transformers/all-MiniLM-L6-v2")
    assert canonical("random:roberta-large@abc").revision == "abc"
    shutil.copytree(folders["roberta"], tmp_path / "data" / "roberta-large")
    alias = resolve("random:roberta-large", data_dir=tmp_path / "data")
    assert alias == resolve("random:FacebookAI/roberta-large", data_dir=tmp_path / "data")
    assert (alias.name, alias.id) == ("random-roberta-large", "random:FacebookAI/roberta-large")


def test_random_of_a_hub_id_reads_a_cache_without_weights(folders, no_hub):
    snapshot = cached(no_hub, "FacebookAI/roberta-large", folders["roberta"], only="*.json")
    assert resolve("random:roberta-large").folder == snapshot
    with pytest.raises(BadInput, match="out of reach"):
        resolve("roberta-large")


# Weights as the hub has them


@pytest.mark.parametrize("saved", [torch.float16, torch.bfloat16])
def test_half_precision_weights_compute_in_float32_or_as_asked(bert, saved):
    import transformers

    model, exact = transformers.AutoModel.from_pretrained(bert), states_at(bert, 6, 3)
    model.to(saved).save_pretrained(bert)
    source = resolve(str(bert))
    assert pretrained.bytes_per_parameter(bert, "bert") == 2
    rounded = load(source)
    assert {parameter.dtype for parameter in rounded.parameters()} == {torch.float32}
    for a, b in zip(exact, states_of(rounded, *batch([6, 3])), strict=True):
        torch.testing.assert_close(a[:, :3], b[:, :3], rtol=0, atol=0.1)
    half = load(dataclasses.replace(source, dtype="bfloat16"))
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    assert {state.dtype for state in states_of(half, *batch([6, 3]))} == {torch.bfloat16}


def test_float32_where_it_fits_else_bfloat16(folders):
    source = resolve(str(folders["bert"]))
    needed = 4 * count_parameters(source)[0]
    assert fitting_dtype(source, 10 * needed) == "float32"
    assert fitting_dtype(source, int(needed / 0.69)) == "float32"
    assert fitting_dtype(source, int(needed / 0.71)) == "bfloat16"
    assert fitting_dtype(resolve(f"random:{folders['bert']}"), int(needed / 0.71)) == "bfloat16"


def test_a_backbone_that_no_memory_holds_is_bad_input(folders, monkeypatch):
    source = resolve(str(folders["bert"]))
    needed = 4 * count_parameters(source)[0]
    memory = type("Memory", (), {"total": needed - 1})
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    with pytest.raises(BadInput, match=r"memory for bert in float32, .*layers:1,6.*dtype bfloat16"):
        load(source)
    load(dataclasses.replace(source, dtype="bfloat16"))
    load(source.reads([State("encoder", 0)]))  # fewer layers take less


def test_a_pad_token_of_minus_one_is_none(tmp_path):
    folder, real = tiny_backbone(tmp_path / "llama", "llama", layers=2), batch([5, 3])[1].bool()
    expected = states_at(folder, 5, 3)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pad_token_id": -1}))
    for a, b in zip(expected, states_at(folder, 5, 3), strict=True):
        assert torch.equal(a[real], b[real])


# What they were pretrained for


def test_the_objective_of_every_alias_is_known_and_none_is_guessed_from_the_family(folders):
    bert = resolve(str(folders["bert"]))
    for hub_id in ALIASES.values():
        said = objective(dataclasses.replace(bert, id=hub_id))
        assert said, hub_id
        assert "random" not in said
    assert objective(bert) == ""
    assert objective(resolve(f"random:{folders['bert']}")) == "nothing: random weights"


# States


def states_of(backbone, *inputs):
    return list(backbone(*inputs).values())


def states_at(name, *lengths):
    """Return the hidden states of a batch that a backbone gives as it is loaded."""
    return states_of(load(resolve(str(name))), *batch([*lengths]))


def test_electra_with_narrow_embeddings(tmp_path):
    source = resolve(str(tiny_backbone(tmp_path / "electra", "electra", embedding_size=16)))
    assert source.width == 32
    assert [tuple(state.shape) for state in states_of(load(source), *batch([3]))] == [(1, 3, 32)] * 5


@pytest.mark.parametrize("family", ["bert", "t5", "bart"])
def test_frozen_and_in_eval_whatever_is_called(folders, family):
    backbone = load(resolve(str(folders[family])))
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    first = states_of(backbone, *batch([6, 3]))
    assert not any(parameter.requires_grad for parameter in backbone.parameters())
    assert backbone.train(True) is backbone
    assert not any(module.training for module in backbone.modules())
    torch.nn.Sequential(backbone).train()
    assert not any(module.training for module in backbone.modules())
    backbone.model.train()  # past our own train()
    again = states_of(backbone, *batch([6, 3]))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(module.training for module in backbone.modules())

    head = torch.nn.Linear(32, 1)
    optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()], lr=1.0, weight_decay=0.1)
    head(again[-1]).sum().backward()
    optimizer.step()
    torch.testing.assert_close(dict(backbone.state_dict()), before, rtol=0, atol=0)


def test_load_says_nothing_and_leaves_the_settings(folders, capfd):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), list(warnings.filters)
    source = resolve(str(folders["bert"]))
    load(source)
    load_tokenizer(source)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), list(warnings.filters)) == before
    assert capfd.readouterr() == ("", "")


SAVED = {"roberta": "RobertaForMaskedLM", "bart": "BartForConditionalGeneration", "t5": "T5EncoderModel"}


@pytest.mark.parametrize("family", SAVED)
def test_models_saved_with_a_head_or_without_their_decoder_give_the_same_states(
    folders, tmp_path, family, capfd
):
    """Checkpoints on the hub are mostly masked-LM or summarisation models: prefixed names, no pooler."""
    import transformers

    folder = Path(shutil.copytree(folders[family], tmp_path / family))
    getattr(transformers, SAVED[family]).from_pretrained(folder).save_pretrained(folder)
    capfd.readouterr()
    state = torch.random.get_rng_state()
    given = states_at(folder, 5)
    assert torch.equal(torch.random.get_rng_state(), state), "a missing pooler is drawn beside trials' seeds"
    assert capfd.readouterr() == ("", "")
    torch.testing.assert_close(given, states_at(folders[family], 5), rtol=0, atol=0)


def test_missing_layers_are_bad_input_not_random_weights(bert):
    from safetensors.torch import load_file, save_file

    tensors = load_file(bert / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if "layer.2." not in name}
    save_file(kept, bert / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"lack 16 of them \(encoder\.layer\.2"):
        load(resolve(str(bert)))
    (bert / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(BadInput, match="cannot be loaded"):
        load(resolve(str(bert)))


# Token ids


def tokens(folder: Path, inputs, max_length: int = 12) -> tuple[list[list[str]], Encoded]:
    tokenizer = load_tokenizer(resolve(str(folder)))
    encoded = encode(tokenizer, inputs, max_length)
    rows = np.split(encoded.input_ids, encoded.offsets[1:-1])
    return [tokenizer.convert_ids_to_tokens(row.tolist()) for row in rows], encoded


def test_texts(folders):
    rows, encoded = tokens(folders["bert"], ["the cat", "", "the zoo"])
    said = ["[CLS] the cat [SEP]", "[CLS] [SEP]", "[CLS] the z ##o ##o [SEP]"]
    assert rows == [text.split() for text in said]
    assert encoded.offsets.tolist() == [0, 4, 6, 12]
    assert (encoded.input_ids.dtype, encoded.offsets.dtype) == (np.int32, np.int64)
    assert encoded.word_starts is None
    assert encoded.word_offsets is None


def test_words(folders):
    rows, encoded = tokens(folders["bert"], [["the", "zoo", "cat"], [], ["", "\u200b", "dog"]])
    assert rows[0] == ["[CLS]", "the", "z", "##o", "##o", "cat", "[SEP]"]
    assert encoded.word_starts.tolist() == [1, 2, 5, -1, -1, 1]
    assert encoded.word_offsets.tolist() == [0, 3, 3, 6]
    assert (encoded.word_starts.dtype, encoded.word_offsets.dtype) == (np.int64, np.int64)


def test_what_truncation_cuts_is_counted(folders):
    """Words without any token are no loss of truncation; one cut within has kept its first token."""
    words = [["zoo", "the", "zoo", "the", "", "cat"], ["the", "", "cat"], ["zoo", "the", "zoo"]]
    _, encoded = tokens(folders["bert"], words, max_length=7)
    assert encoded.truncated() == {"examples": 2, "words": 2}
    assert (encoded.cut.tolist(), encoded.lost_words.tolist()) == ([1, 0, 1], [2, 0, 0])
    assert encoded.take(np.array([2, 1])).truncated() == {"examples": 1, "words": 0}
    _, encoded = tokens(folders["t5"], ["the cat the cat the cat", "the cat"], max_length=4)
    assert encoded.truncated() == {"examples": 1}
    _, encoded = tokens(folders["t5"], ["the cat the", "the cat"], max_length=4)
    assert encoded.truncated() == {"examples": 0}


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_that_are_no_part_of_a_text_are_known(folders, family):
    first = family != "t5"  # T5 has no special token in front
    for inputs in (["the cat", "dog [MASK] zoo"], [["the", "cat"], ["zoo"]]):
        rows, encoded = tokens(folders[family], inputs, max_length=6)
        marks = np.split(encoded.special, encoded.offsets[1:-1])
        for row, marked in zip(rows, marks, strict=True):
            assert marked.tolist() == [first] + [False] * (len(row) - 2) + [True]
        assert encoded.take(np.array([1])).special.tolist() == marks[1].tolist()


def test_reading_words_leaves_the_tokenizer_as_it_was(folders):
    tokenizer = load_tokenizer(resolve(str(folders["roberta"])))
    before = encode(tokenizer, ["the cat"], 8).input_ids.tolist()
    encode(tokenizer, [["the", "cat"]], 8)
    assert encode(tokenizer, ["the cat"], 8).input_ids.tolist() == before


def test_chunks_are_invisible(folders, monkeypatch):
    inputs = [["the", "cat"], ["zoo"], [], ["Anna", "sleeps", "in", "London"], ["dog"]]
    _, whole = tokens(folders["roberta"], inputs)
    monkeypatch.setattr(tk, "_ENCODE_CHUNK", 2)
    _, chunked = tokens(folders["roberta"], inputs)
    for field in ("input_ids", "offsets", "word_starts", "word_offsets", "special"):
        np.testing.assert_array_equal(getattr(whole, field), getattr(chunked, field))


def test_an_input_without_tokens_is_bad_input(folders):
    tokenizer = load_tokenizer(resolve(str(folders["t5"])))
    from tokenizers.processors import TemplateProcessing

    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=["$A"], special_tokens=[])
    with pytest.raises(BadInput, match="input 1 gives none"):
        encode(tokenizer, ["the", ""], 8)


def test_a_missing_or_broken_tokenizer_is_bad_input(bert):
    (bert / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match="cannot be loaded"):
        load_tokenizer(resolve(str(bert)))
    (bert / "tokenizer.json").unlink()
    with pytest.raises(BadInput, match="wanted a tokeniser"):
        load_tokenizer(resolve(str(bert)))


def test_a_slow_tokenizer_is_bad_input(folders, monkeypatch):
    import transformers

    class Slow:
        is_fast = False

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *_, **__: Slow())
    with pytest.raises(BadInput, match="Slow is a slow one"):
        load_tokenizer(resolve(str(folders["bert"])))
