"""Answers to texts: those that the study gave, tasks of one base model on one pass; the commands around them."""

import functools
import io
import json
import math
import os
import re
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

import adalayers
from adalayers.__main__ import main
from adalayers.backbones.sources import resolve
from adalayers.deploy.model_card import model_card
from adalayers.deploy.predictions import Tags, TextPrediction, prediction_of
from adalayers.deploy.predictor import Predictor
from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape, Stream
from tests.helpers.made_tasks import SMALL, made_task
from tests.helpers.tiny import tiny_backbone


@pytest.fixture
def predict(backbone, capsys):
    """Run the command and return what it printed."""

    def run(*argv, code=0):
        capsys.readouterr()
        assert main(["predict", *map(str, argv), "--backbone", backbone]) == code
        return capsys.readouterr()

    return run


def predictor(made, backbone, *names, **given):
    tasks = {name: adalayers.load(made[name].best) for name in names}
    return Predictor(tasks, resolve(backbone), **given)


def said(of, backbone):
    """Return what a predictor says of the study's own examples, with probabilities, and what the study did."""
    texts = [text if isinstance(text, str) else " ".join(text) for text in of.inputs]
    asked = Predictor({"task": adalayers.load(of.best, backbone=backbone)}, resolve(backbone), apart=True)
    answers = [answer["task"] for answer in asked.predict(texts)]
    if isinstance(answers[0], TextPrediction):
        assert sum(answers[0].probabilities.values()) == pytest.approx(1, abs=1e-5)
        sure = [answer.probability for answer in answers]
        assert sure == pytest.approx(of.predicted["score"].tolist(), abs=1e-5)
    found = [answer.label if isinstance(answer, TextPrediction) else answer.tags for answer in answers]
    return found, of.predicted["prediction"].tolist()


@pytest.mark.parametrize("name", ["text", "word"])
def test_examples_get_the_answers_of_the_study(name, made, backbone):
    found, expected = said(made[name], backbone)
    assert found == expected
    assert len(set(found)) > 1


def test_tasks_of_one_base_model_share_a_pass(made, backbone, monkeypatch):
    asked = predictor(made, backbone, "text", "word")
    passes = []
    asked._base.model.register_forward_hook(lambda *_: passes.append(1))
    texts = made["text"].inputs[:5]
    together = asked.predict(texts)
    assert len(passes) == 1
    alone = predictor(made, backbone, "text").predict(texts)
    for one, other in zip(together, alone, strict=True):
        assert list(one) == ["text", "word"]
        assert one["text"].probability == pytest.approx(other["text"].probability, abs=1e-6)
        assert isinstance(one["text"], TextPrediction)
        assert isinstance(one["word"], Tags)
    # BERT's tokeniser parts words as we do, so a text read whole has the same tokens as its words.
    words = predictor(made, backbone, "word").predict(texts)
    assert [answer["word"].tags for answer in words] == [answer["word"].tags for answer in together]


def test_a_task_that_changed_its_base_model_runs_its_own(backbone, tmp_path):
    config = LayerMixConfig(**SMALL, base_model="adapters", adapter_width=4)
    made = made_task(tmp_path / "tuned", backbone, "acceptability-demo", config)
    found, expected = said(made, backbone)
    assert found == expected


def test_entities_have_spans_and_probabilities(made, backbone):
    text = "Anna Smith slept in London."
    asked = predictor(made, backbone, "word")
    task = asked.tasks["word"]
    names = task.about["labels"]
    wanted = dict(enumerate(["B-PER", "I-PER", "O", "O", "B-LOC", "O"]))
    read = asked.tokenize([text])[0]
    outputs = torch.zeros(len(read.ids), len(names))
    for word, tag in wanted.items():
        outputs[read.first[word], names.index(tag)] = 3.0
    given = prediction_of(task, text, read, outputs)
    assert [(e.label, e.text, text[e.start : e.end]) for e in given.entities] == [
        ("PER", "Anna Smith", "Anna Smith"),
        ("LOC", "London", "London"),
    ]
    share = float(outputs.softmax(-1).max())
    assert [e.probability for e in given.entities] == pytest.approx([share, share])
    assert given.lost == 0


def test_the_command_prints_text_and_lines_of_json(made, predict, tmp_path):
    file = tmp_path / "texts.txt"
    texts = made["text"].inputs[:3]
    file.write_text("\n".join([texts[0], "", texts[1], texts[2]]) + "\n")
    folders = made["text"].best, made["word"].best
    ran = predict(*folders, "--file", file, "--format", "jsonl")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["line"] for line in found] == [1, 3, 4]
    assert [line["text"] for line in found] == texts
    assert set(found[0]["tasks"]) == {"acceptability-demo", "entities-demo"}
    label = found[0]["tasks"]["acceptability-demo"]
    assert label["label"] in label["probabilities"]
    assert "lines without a word, left out: 1" in ran.err
    said = predict(folders[0], "--text", texts[0]).out.splitlines()
    assert said[0] == f"1: {texts[0]}"
    assert said[1].split() == ["acceptability-demo:", label["label"], f"{label['probability']:.3f}"]


def test_the_command_reads_standard_input_and_several_texts_in_their_order(made, predict, monkeypatch):
    texts = [f"{text} {n}" for n in range(40) for text in made["text"].inputs[:15]]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(texts).encode())))
    typed = [word for text in texts[:2] for word in ("--text", text)]
    for some, argv in ((texts, []), (texts[:2], typed)):
        said = predict(made["text"].best, *argv, "--format", "jsonl").out
        found = [json.loads(line) for line in said.splitlines()]
        assert [(line["line"], line["text"]) for line in found] == [*enumerate(some, start=1)]


def test_what_the_command_cannot_do_is_bad_input(made, predict, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    other = str(tiny_backbone(tmp_path / "other", layers=3, width=16, heads=2, seed=5))
    foreign = made_task(tmp_path / "foreign", other, "acceptability-demo").best
    for argv, message in (
        ([tmp_path / "none", "--text", "a"], "wanted a folder of trained parts, or a hub id"),
        (["org/none", "--text", "a"], "HF_HUB_OFFLINE is set"),
        ([tmp_path, "--text", "a"], "wanted the trained parts of a study, found no config.json"),
        (["~nouser/best", "--text", "a"], "wanted a path as a folder of trained parts, got '~nouser/best'"),
        (["x" * 5000, "--text", "a"], "File name too long"),
        ([made["text"].best, "--file", tmp_path / "none"], "cannot be read"),
        ([made["text"].best, "--file", "a\0b"], "embedded null byte"),
        ([made["text"].best, "--text", "a", "--max-length", "1"], "--max-length of at least 3"),
        ([foreign, "--text", "a"], "another model, revision or tokeniser"),
    ):
        assert message in predict(*argv, code=2).err, argv
    with pytest.raises(BadInput, match="another model, revision or tokeniser"):
        adalayers.load(made["text"].best, backbone=other)


def test_cut_texts_are_counted(made, predict):
    ran = predict(made["word"].best, "--text", "Anna slept in London and Paris", "--max-length", "5")
    assert "1 texts were cut to 5 tokens" in ran.err


def test_a_word_that_was_cut_has_no_class(made, backbone):
    task = adalayers.load(made["word"].best)
    task.about["kind"] = "word"
    asked = Predictor({"word": task}, resolve(backbone), max_length=5)
    (answers,) = asked.predict(["Anna slept in London and Paris"])
    assert answers["word"].tags[-1] == "(cut)"
    assert answers["word"].tags[0] in task.about["labels"]


def test_a_task_of_pairs_is_not_asked_about_single_texts(made, backbone):
    task = adalayers.load(made["text"].best)
    task.about["pairs"] = True
    with pytest.raises(BadInput, match="reads pairs of texts"):
        Predictor({"entailment": task}, resolve(backbone))


def test_layers_that_are_one_and_the_same_answer_too(tmp_path):
    """ALBERT: hooks cannot tell its layers apart, so its states are read as extraction reads them."""
    backbone = str(tiny_backbone(tmp_path / "albert", "albert", layers=3, width=16, heads=2))
    for dataset in ("acceptability-demo", "entities-demo"):
        found, expected = said(made_task(tmp_path / dataset, backbone, dataset), backbone)
        assert found == expected


def changed(value, *keys):
    """Return what changes a value of config.json, at a path of keys."""

    def change(folder):
        document = json.loads((folder / "config.json").read_text())
        holder = functools.reduce(lambda here, key: here[key], keys[:-1], document)
        holder[keys[-1]] = value
        (folder / "config.json").write_text(json.dumps(document))

    return change


def stored(change):
    """Return what writes what `change` makes of the tensors."""

    def store(folder):
        tensors = load_file(folder / "model.safetensors")
        save_file({**tensors, **change(tensors)}, folder / "model.safetensors")

    return store


def piped(folder):
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


CLASSIFY = "head.classify.bias"
DAMAGES = {
    "no JSON": (lambda best: (best / "config.json").write_bytes(b'{"format'), "config.json cannot be read"),
    "no object": (lambda best: (best / "config.json").write_bytes(b"[]"), "config.json holds no object"),
    "another format": (changed(1, "format"), "not of format"),
    "no weights": (lambda best: (best / "model.safetensors").write_bytes(b""), "safetensors cannot be read"),
    "k beyond memory": (changed(2**16, "trial", "k"), r"projections.0.weight.*\[8, 16\].*\[65536, 16\]"),
    "width in words": (changed("wide", "shape", "width"), "shape.width: Input should be"),
    "endless layers": (changed(2 * 10**7, "shape", "streams", 0, "layers"), "has 20000000 as layers"),
    "other layers": (changed(4, "shape", "streams", 0, "layers"), r"Missing key\(s\) in state_dict: .fusion"),
    "another task": (changed("token", "kind"), "kind is token"),
    "too few labels": (changed(["only"], "labels"), "labels are 1, and shape.n_outputs 2"),
    "a label twice": (changed(["one", "one"], "labels"), "labels holds one twice"),
    "a tensor more": (
        stored(lambda tensors: {"more": torch.ones(1)}),
        r"Unexpected key\(s\) in state_dict: .more",
    ),
    "a tensor's type": (
        stored(lambda tensors: {CLASSIFY: tensors[CLASSIFY].int()}),
        "head.classify.bias of torch.int32",
    ),
    "no numbers": (stored(lambda tensors: {CLASSIFY: tensors[CLASSIFY] * math.nan}), "not finite"),
    "a pipe for weights": (piped, "model.safetensors is no file"),
}
"""Of each check of what is read one; `tests/fuzz.py` draws many more."""


@pytest.mark.parametrize(("damage", "said"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_parts_are_bad_input(damage, said, made, predict, capsys, tmp_path):
    folder = tmp_path / "best"
    shutil.copytree(made["text"].best, folder)
    damage(folder)
    first_line = predict(folder, "--text", "a", code=2).err.splitlines()[0]
    assert re.search(f"{folder}.*{said}", first_line), first_line
    assert main(["inspect", str(folder)]) == 2
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(BadInput, match=said):
        adalayers.load(folder)


def test_outputs_beyond_all_numbers_are_no_prediction(made, predict, tmp_path):
    folder = tmp_path / "best"
    shutil.copytree(made["text"].best, folder)
    stored(lambda tensors: {name: torch.full_like(tensor, 3e38) for name, tensor in tensors.items()})(folder)
    assert "wanted finite outputs of 'best'" in predict(folder, "--text", "a", code=2).err


def test_a_stray_byte_in_a_text_is_read_or_refused(made, predict):
    predict(made["text"].best, "--text", "a caf\udce9 sleeps")


def test_weights_of_two_streams_are_told_apart():
    shape = Shape("sequence", 2, (Stream("encoder", 3), Stream("decoder", 3)), 16, "bart")
    text = model_card(FusionModel(LayerMixConfig(k=8, heads=2, stream="both"), shape, seed=0).eval()).text
    bars = [line.split()[0] for line in text.splitlines() if "█" in line]
    assert bars == ["01", "02", "03", "decoder_01", "decoder_02", "decoder_03"]
