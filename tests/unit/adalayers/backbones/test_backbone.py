"""Backbones: names, files, frozen states, token ids. Tiny random models of every family, no network."""

import dataclasses
import hashlib
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from adalayers.backbones import pretrained, sources
from adalayers.backbones.loading import count_parameters, fitting_dtype, load
from adalayers.backbones.objectives import objective
from adalayers.backbones.sources import ALIASES, BackboneName, canonical, resolve
from adalayers.backbones.tokens import load_tokenizer
from adalayers.states import State
from adalayers.storage import hub
from tests.helpers.refusing import refused
from tests.helpers.tiny import batch, says, tiny_backbone

SAVED = {"roberta": "RobertaForMaskedLM", "bart": "BartForConditionalGeneration", "t5": "T5EncoderModel"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folders(tiny_of) -> dict[str, Path]:
    return {family: tiny_of(family, layers=3) for family in (*SAVED, "bert")}


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


def states_of(backbone, *inputs):
    return list(backbone(*inputs).values())


def states_at(name, *lengths):
    """Return the hidden states of a batch that a backbone gives as it is loaded."""
    return states_of(load(resolve(str(name))), *batch([*lengths]))


# Names and places


def test_names(tmp_path, monkeypatch, bert):
    for alias, hub_id in ALIASES.items():
        assert canonical(alias) == canonical(hub_id) == canonical(hub_id.lower())
        assert canonical(f"random:{alias}") == canonical(f"random:{hub_id}")
    assert canonical("FacebookAI/roberta-large").name == "roberta-large"
    other = BackboneName("my.model_2", "Some-Org/My.Model_2", "refs/pr/3", None)
    assert canonical("Some-Org/My.Model_2@refs/pr/3") == other
    assert canonical("random:roberta-large@abc").revision == "abc"
    (folder := tmp_path / "My Model (2)").mkdir()
    assert canonical(str(folder)) == BackboneName("my-model-2", "My Model (2)", None, folder)
    (tmp_path / "minilm").mkdir()
    monkeypatch.chdir(tmp_path)
    assert canonical("minilm").folder is None, "a folder without a model hides no alias"
    shutil.copy(bert / "config.json", tmp_path / "minilm")
    assert canonical("minilm").folder == tmp_path / "minilm"


def test_unknown_names_are_bad_input():
    for name, said in {
        "robeta-large": "did you mean 'roberta-large'",
        **dict.fromkeys(("", "/no/such/folder", "org/name/more", "org/na me"), "unknown backbone"),
        "random:robeta-large": "unknown backbone 'robeta-large'.*did you mean 'roberta-large'",
        "random:random:minilm": "say random: once",
    }.items():
        refused(said, canonical, name)


def test_the_data_dir_goes_before_the_hubs_cache_and_files_are_the_same_anywhere(folders, tmp_path, no_hub):
    given = resolve(str(folders["roberta"])).fingerprint
    refused(r"FacebookAI/roberta-large.*--data-dir", resolve, "roberta-large")
    repository = no_hub / "models--FacebookAI--roberta-large"
    snapshot = repository / "snapshots" / COMMIT
    shutil.copytree(folders["roberta"], snapshot, ignore=shutil.ignore_patterns("*.safetensors"))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    assert resolve("random:roberta-large").folder == snapshot
    refused("out of reach", resolve, "roberta-large")  # its weights are not there
    shutil.copy(folders["roberta"] / "model.safetensors", snapshot)
    source = resolve("roberta-large")
    assert (source.folder, source.revision, source.id) == (snapshot, COMMIT, "FacebookAI/roberta-large")
    assert source.fingerprint == given
    for name, copy in (("roberta-large", "roberta-large"), ("org/My-Model", "My-Model")):
        shutil.copytree(folders["roberta"], tmp_path / copy)
        source = resolve(name, data_dir=tmp_path)
        assert (source.name, source.folder, source.fingerprint) == (copy.lower(), tmp_path / copy, given)
    random = resolve("random:roberta-large", data_dir=tmp_path)
    assert (random.name, random.id) == ("random-roberta-large", "random:FacebookAI/roberta-large")


def test_only_what_is_read_is_fetched_and_a_refusal_names_the_way_out(folders, no_hub, monkeypatch):
    import huggingface_hub
    from huggingface_hub.errors import GatedRepoError
    from huggingface_hub.utils import filter_repo_objects

    asked = {}

    def fetch(repo_id, *, revision, allow_patterns, local_files_only):
        if local_files_only:
            raise FileNotFoundError
        asked.update(id=repo_id, revision=revision, patterns=allow_patterns)
        if "gated" in repo_id:
            raise GatedRepoError.__new__(GatedRepoError)
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
    said = r"org/gated.*GatedRepoError: .*\(v9\); .* licence on its page, then set HF_TOKEN"
    refused(said, resolve, "org/gated@v9")


def test_minilm_comes_from_its_package_if_its_weights_are_known(folders, tmp_path, no_hub, monkeypatch):
    model = tmp_path / sources.MINILM_PACKAGE / "model"
    shutil.copytree(folders["bert"], model)
    (model.parent / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    refused("wanted MiniLM weights of sha256 53aa51172d14", resolve, "minilm")
    weights = (model / "model.safetensors").read_bytes()
    monkeypatch.setattr(sources, "MINILM_SHA256", hashlib.sha256(weights).hexdigest())
    source = resolve("minilm")
    assert (source.name, source.folder, source.revision) == ("minilm", model, None)
    refused("out of reach", resolve, "minilm@some-revision")  # the package is of no named revision


def test_fingerprint_sees_every_file_that_matters(bert):
    prints = {resolve(str(bert)).fingerprint}
    for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        with (bert / file).open("a") as opened:
            opened.write(" ")
        prints.add(resolve(str(bert)).fingerprint)
    assert len(prints) == 5


def test_sharded_weights(bert):
    import transformers

    whole, states = resolve(str(bert)), states_at(bert, 4)
    model = transformers.AutoModel.from_pretrained(bert)
    (bert / "model.safetensors").unlink()
    model.save_pretrained(bert, max_shard_size="50KB")
    assert resolve(str(bert)).fingerprint != whole.fingerprint
    torch.testing.assert_close(states_at(bert, 4), states, rtol=0, atol=0)
    next(bert.glob("model-00002-of-*")).unlink()
    refused("complete", resolve, str(bert))
    source = resolve(str(bert), weights=False)  # enough to plan with
    assert (source.has_weights, count_parameters(source)[0] > 0) == (False, True)


def test_max_length_by_family(folders, tmp_path):
    assert {resolve(str(folder)).max_length for folder in folders.values()} == {512}
    unlimited = shutil.copytree(folders["t5"], tmp_path / "t5")
    (unlimited / "tokenizer_config.json").unlink()
    assert resolve(str(unlimited)).max_length == pretrained.UNLIMITED_TOKENS


# Random weights


def test_random_weights_need_no_files_of_weights_and_are_the_same_each_time(bert):
    checkpoint, fingerprint = states_at(bert, 6, 3), resolve(str(bert)).fingerprint
    (bert / "model.safetensors").unlink()
    source = resolve(f"random:{bert}")
    assert (source.name, source.id, source.random) == ("random-bert", "random:bert", True)
    assert (source.layers, source.width, source.family) == (3, 32, "bert")
    state = torch.random.get_rng_state()
    first = states_at(f"random:{bert}", 6, 3)
    assert torch.equal(torch.random.get_rng_state(), state), "the global random state is left as it was"
    torch.testing.assert_close(states_at(f"random:{bert}", 6, 3), first, rtol=0, atol=0)
    assert not any(torch.allclose(a, b, atol=1e-3) for a, b in zip(checkpoint, first, strict=True))
    assert source.fingerprint != fingerprint
    (bert / "model.safetensors").write_bytes(b"others")
    assert resolve(f"random:{bert}").fingerprint == source.fingerprint
    (bert / "config.json").write_bytes((bert / "config.json").read_bytes() + b" ")
    assert resolve(f"random:{bert}").fingerprint != source.fingerprint


# Weights as the hub has them


def test_half_precision_weights_compute_in_float32_or_as_asked(bert):
    import transformers

    model, exact = transformers.AutoModel.from_pretrained(bert), states_at(bert, 6, 3)
    model.to(torch.float16).save_pretrained(bert)
    source = resolve(str(bert))
    rounded = states_of(load(source), *batch([6, 3]))
    assert {state.dtype for state in rounded} == {torch.float32}
    for a, b in zip(exact, rounded, strict=True):
        torch.testing.assert_close(a[:, :3], b[:, :3], rtol=0, atol=0.1)
    half = load(dataclasses.replace(source, dtype="bfloat16"))
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    assert {state.dtype for state in states_of(half, *batch([6, 3]))} == {torch.bfloat16}


def test_float32_where_it_fits_else_bfloat16_and_what_no_memory_holds_is_bad_input(folders, monkeypatch):
    source = resolve(str(folders["bert"]))
    needed = 4 * count_parameters(source)[0]
    assert fitting_dtype(source, int(needed / 0.69)) == "float32"
    assert fitting_dtype(source, int(needed / 0.71)) == "bfloat16"
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=needed - 1))
    refused(r"memory for bert in float32, .*layers:1,6.*dtype bfloat16", load, source)
    load(dataclasses.replace(source, dtype="bfloat16"))
    load(source.reads([State("encoder", 0)]))  # fewer layers take less


def test_a_pad_token_of_minus_one_is_none(tmp_path):
    folder, real = tiny_backbone(tmp_path / "llama", "llama", layers=2), batch([5, 3])[1].bool()
    expected = states_at(folder, 5, 3)
    says(folder, pad_token_id=-1)
    for a, b in zip(expected, states_at(folder, 5, 3), strict=True):
        assert torch.equal(a[real], b[real])


def test_the_objective_of_every_alias_is_known_and_none_is_guessed_from_the_family(folders):
    bert = resolve(str(folders["bert"]))
    for hub_id in ALIASES.values():
        assert objective(dataclasses.replace(bert, id=hub_id)), hub_id
    assert objective(bert) == ""
    assert objective(resolve(f"random:{folders['bert']}")) == "nothing: random weights"


# States


def test_frozen_and_in_eval_whatever_is_called(folders):
    backbone = load(resolve(str(folders["bert"])))
    first = states_of(backbone, *batch([6, 3]))
    assert not any(parameter.requires_grad for parameter in backbone.parameters())
    assert backbone.train(True) is backbone
    assert not any(module.training for module in backbone.modules())
    backbone.model.train()  # past our own train()
    again = states_of(backbone, *batch([6, 3]))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(module.training for module in backbone.modules())


@pytest.mark.parametrize("family", SAVED)
def test_models_saved_with_a_head_or_without_a_decoder_give_the_same_states(folders, tmp_path, family, capfd):
    """And nothing is said. On the hub are mostly masked-LM or summarisation models: prefixed names, no pooler."""
    import transformers
    from transformers.utils import logging

    folder = Path(shutil.copytree(folders[family], tmp_path / family))
    getattr(transformers, SAVED[family]).from_pretrained(folder).save_pretrained(folder)
    capfd.readouterr()
    state = torch.random.get_rng_state()
    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), list(warnings.filters)
    given = states_at(folder, 5)
    load_tokenizer(resolve(str(folder)))
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), list(warnings.filters)) == before
    assert torch.equal(torch.random.get_rng_state(), state), "a missing pooler is drawn beside trials' seeds"
    assert capfd.readouterr() == ("", "")
    torch.testing.assert_close(given, states_at(folders[family], 5), rtol=0, atol=0)
