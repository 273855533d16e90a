"""Answers to texts: those that the study gave, tasks of one base model on one pass; the commands around them."""

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
from adalayers.deploy.predictions import TextPrediction, prediction_of
from adalayers.deploy.predictor import Predictor
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.saved import CONFIG, WEIGHTS
from tests.helpers.made_tasks import SMALL, made_task
from tests.helpers.refusing import refused
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


def same_as_the_study(of, backbone):
    """Check that a predictor says of the study's own examples what the study did."""
    texts = [text if isinstance(text, str) else " ".join(text) for text in of.inputs]
    asked = Predictor({"task": adalayers.load(of.best, backbone=backbone)}, resolve(backbone), apart=True)
    answers = [answer["task"] for answer in asked.predict(texts)]
    if isinstance(answers[0], TextPrediction):
        assert sum(answers[0].probabilities.values()) == pytest.approx(1, abs=1e-5)
        sure = [answer.probability for answer in answers]
        assert sure == pytest.approx(of.predicted["score"].tolist(), abs=1e-5)
    found = [answer.label if isinstance(answer, TextPrediction) else answer.tags for answer in answers]
    assert found == of.predicted["prediction"].tolist()
    return found


@pytest.mark.parametrize("name", ["text", "word"])
def test_examples_get_the_answers_of_the_study(name, made, backbone):
    assert len(set(same_as_the_study(made[name], backbone))) > 1


def test_tasks_of_one_base_model_share_a_pass(made, backbone):
    asked, passes = predictor(made, backbone, "text", "word"), []
    asked._base.model.register_forward_hook(lambda *_: passes.append(1))
    texts = made["text"].inputs[:5]
    together = asked.predict(texts)
    assert len(passes) == 1
    # BERT's tokeniser parts words as we do, so a text read whole has the same tokens as its words.
    alone, words = (predictor(made, backbone, name).predict(texts) for name in ("text", "word"))
    for both, text, word in zip(together, alone, words, strict=True):
        assert list(both) == ["text", "word"]
        assert both["text"].probability == pytest.approx(text["text"].probability, abs=1e-6)
        assert both["word"].tags == word["word"].tags


def test_a_task_that_changed_its_base_model_runs_its_own(backbone, tmp_path):
    config = LayerMixConfig(**SMALL, base_model="adapters", adapter_width=4)
    made = made_task(tmp_path / "tuned", backbone, "acceptability-demo", config)
    same_as_the_study(made, backbone)


def test_entities_have_spans_and_probabilities(made, backbone):
    text = "Anna Smith slept in London."
    asked = predictor(made, backbone, "word")
    task, (read,) = asked.tasks["word"], asked.tokenize([text])
    names = task.about["labels"]
    outputs = torch.zeros(len(read.ids), len(names))
    for token, tag in zip(read.first, ["B-PER", "I-PER", "O", "O", "B-LOC", "O"], strict=True):
        outputs[token, names.index(tag)] = 3.0
    outputs[read.first[1], names.index("I-PER")] = 5.0
    person, place = prediction_of(task, text, read, outputs).entities
    assert (person.label, person.text, person.start, person.end) == ("PER", "Anna Smith", 0, 10)
    assert (place.label, place.text, place.start, place.end) == ("LOC", "London", 20, 26)
    sure = outputs.softmax(-1).max(-1).values[read.first]
    assert person.probability == pytest.approx(float(sure[:2].mean()))
    assert place.probability == pytest.approx(float(sure[4]))


def test_the_command_prints_text_and_lines_of_json(made, predict, tmp_path):
    file = tmp_path / "texts.txt"
    texts = made["text"].inputs[:3]
    file.write_text("\n".join([texts[0], "", texts[1], texts[2]]) + "\n")
    ran = predict(made["text"].best, made["word"].best, "--file", file, "--format", "jsonl")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["line"] for line in found] == [1, 3, 4]
    assert [line["text"] for line in found] == texts
    assert set(found[0]["tasks"]) == {"acceptability-demo", "entities-demo"}
    label = found[0]["tasks"]["acceptability-demo"]
    assert label["label"] in label["probabilities"]
    assert "lines without a word, left out: 1" in ran.err
    said = predict(made["text"].best, "--text", texts[0]).out.splitlines()
    assert said[0] == f"1: {texts[0]}"
    assert said[1].split() == ["acceptability-demo:", label["label"], f"{label['probability']:.3f}"]


def test_tasks_of_one_name_are_numbered(made, predict, tmp_path):
    folders = [shutil.copytree(made["text"].best, tmp_path / name) for name in ("x-3", "x", "other/x")]
    said = predict(*folders, "--text", "a", "--format", "jsonl").out
    assert [*json.loads(said)["tasks"]] == ["x-3", "x", "x-3-3"]


def test_the_command_reads_standard_input_and_several_texts_in_their_order(made, predict, monkeypatch):
    texts = [f"{text} {n}" for n in range(20) for text in made["text"].inputs[:15]]
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
        ([made["text"].best, "--file", tmp_path / "none"], "cannot be read"),
        ([made["text"].best, "--file", "a\0b"], "embedded null byte"),
        ([made["text"].best, "--text", "a", "--max-length", "1"], "--max-length of at least 3"),
        ([foreign, "--text", "a"], "another model, revision or tokeniser"),
    ):
        assert message in predict(*argv, code=2).err, argv
    ran = predict(made["word"].best, "--text", "a caf\udce9 sleeps and walks", "--max-length", "5")
    assert "1 texts were cut to 5 tokens" in ran.err
    assert "lines that are no UTF-8, of which letters are lost: 1" in ran.err, "and a stray byte is read"
    other = shutil.copytree(made["word"].best, tmp_path / "bfloat16")
    damaged(lambda config, _: config["backbone"].update(dtype="bfloat16"))(other)
    assert "or dtype of it" in predict(made["word"].best, other, "--text", "a", code=2).err


def test_texts_are_as_long_as_they_were_in_the_study(made, backbone):
    task = adalayers.TrainedTask.from_pretrained(made["word"].best).model
    assert task.about["study"]["max_length"] == 256
    task.about["study"]["max_length"] = 7
    assert Predictor({"word": task}, resolve(backbone)).max_length == 7
    del task.about["study"]  # a copy of best/ alone
    assert Predictor({"word": task.train()}, resolve(backbone)).max_length == task.about["max_length"] == 256
    assert not task.training


def test_a_word_that_was_cut_has_no_class_and_a_task_of_pairs_is_not_asked_about_single_texts(made, backbone):
    word, pairs = (adalayers.load(made[name].best) for name in ("word", "text"))
    word.about["kind"] = "word"
    asked = Predictor({"word": word}, resolve(backbone), max_length=5)
    (answers,) = asked.predict(["Anna slept in London and Paris"])
    assert answers["word"].tags[-1] == "(cut)"
    assert answers["word"].tags[0] in word.about["labels"]
    pairs.about["pairs"] = True
    refused("reads pairs of texts", Predictor, {"entailment": pairs}, resolve(backbone))


def test_layers_that_are_one_and_the_same_answer_too(tmp_path):
    """ALBERT: hooks cannot tell its layers apart, so its states are read as extraction reads them."""
    backbone = str(tiny_backbone(tmp_path / "albert", "albert", layers=3, width=16, heads=2))
    same_as_the_study(made_task(tmp_path / "made", backbone, "entities-demo"), backbone)


def damaged(change):
    """Return what damages a folder by what `change` makes of its config and its tensors."""

    def damage(folder):
        config, tensors = json.loads((folder / CONFIG).read_text()), load_file(folder / WEIGHTS)
        change(config, tensors)
        (folder / CONFIG).write_text(json.dumps(config))
        save_file(tensors, folder / WEIGHTS)

    return damage


def deeper(layers):
    return damaged(lambda config, _: config["shape"]["streams"][0].update(layers=layers))


def piped(folder):
    (folder / WEIGHTS).unlink()
    os.mkfifo(folder / WEIGHTS)


DAMAGES = [
    (lambda best: (best / CONFIG).write_bytes(b'{"format'), "config.json cannot be read"),
    (lambda best: (best / CONFIG).write_bytes(b"[]"), "config.json cannot be read: .*an object"),
    (damaged(lambda config, _: config.update(format=1)), "not of format"),
    (lambda best: (best / WEIGHTS).write_bytes(b""), "safetensors cannot be read"),
    (damaged(lambda config, _: config["trial"].update(k=2**16)), r"projections.0.weight.*\[65536, 16\]"),
    (damaged(lambda config, _: config["shape"].update(width="wide")), "shape.width: Input should be"),
    (deeper(2 * 10**7), "has 20000000 as layers"),
    (deeper(4), r"Missing key\(s\) in state_dict: .fusion"),
    (damaged(lambda config, _: config.update(kind="token")), "kind is token"),
    (damaged(lambda config, _: config.update(labels=["only"])), "labels are 1, and shape.n_outputs 2"),
    (damaged(lambda config, _: config.update(labels=["one", "one"])), "labels holds one twice"),
    (damaged(lambda _, tensors: tensors.update(more=torch.ones(1))), r"Unexpected key\(s\).*: .more"),
    (damaged(lambda _, tensors: tensors["head.classify.bias"].fill_(math.nan)), "not finite"),
    (piped, "model.safetensors cannot be read: .*it is no file"),
]
"""Of each check of what is read one; `tests/fuzz.py` draws many more."""


@pytest.fixture
def best(made, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(made["text"].best, tmp_path / "best")


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_damaged_parts_are_bad_input(damage, said, best, predict, capsys):
    damage(best)
    first_line = predict(best, "--text", "a", code=2).err.splitlines()[0]
    assert re.search(f"{best}.*{said}", first_line), first_line
    assert main(["inspect", str(best)]) == 2
    assert "Traceback" not in capsys.readouterr().err
    refused(said, adalayers.load, best)


def test_outputs_beyond_all_numbers_are_no_prediction(best, predict):
    damaged(lambda _, tensors: [tensor.fill_(3e38) for tensor in tensors.values()])(best)
    assert "wanted finite outputs of 'best'" in predict(best, "--text", "a", code=2).err
