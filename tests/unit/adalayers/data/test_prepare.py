"""From names to data: what a request adds up to, over a tiny backbone and datasets on disk."""

import json
from dataclasses import replace

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.request import DataRequest
from tests.helpers.tiny import tiny_backbone

TAGGED = Features({"words": List(Value("string")), "tags": List(ClassLabel(names=["O", "B-PER"]))})


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return str(tiny_backbone(tmp_path_factory.mktemp("backbone") / "tiny", layers=1, width=8, heads=2))


def save(folder, **splits):
    folder.mkdir()
    for split, sentences in splits.items():
        rows = {
            "words": sentences,
            "tags": [[int(word == "Anna") for word in words] for words in sentences],
        }
        Dataset.from_dict(rows, TAGGED).to_parquet(str(folder / f"{split}-00000-of-00001.parquet"))
    return str(folder)


def test_what_the_maximum_length_cuts_is_known_before_anything_runs(backbone, tmp_path):
    long, short = ["the", "cat", "and", "the", "dog"], ["Anna", "sleeps"]
    data = save(tmp_path / "words", train=[short, long, short], validation=[long], test=[short])
    assert prepare(DataRequest(backbone, data, max_length=5)).truncated == {
        "train": {"examples": 1, "words": 2},
        "validation": {"examples": 1, "words": 2},
        "test": {"examples": 0, "words": 0},
    }


def test_data_without_any_labelled_word_are_refused_with_the_count(backbone, tmp_path):
    sentences = [["Anna", "sleeps"]] * 3
    blank = [["", "\u200b"], [""], ["", ""], []]
    data = save(tmp_path / "blank", train=sentences, validation=blank)
    with pytest.raises(BadInput, match="labelled words in validation of blank, got none in 4 sentences"):
        prepare(DataRequest(backbone, data))
    prepare(DataRequest(backbone, save(tmp_path / "some", train=sentences + blank, validation=sentences)))


def test_a_text_without_tokens_is_named_by_its_line_in_the_file(tmp_path):
    decoder = str(tiny_backbone(tmp_path / "gpt2", "gpt2", layers=1, width=8, heads=2))  # no special tokens
    rows = [{"text": f"row {i}" if i != 50 else "", "label": i % 2} for i in range(60)]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(BadInput, match=r"one token of every input, line 51 of train.jsonl gives none"):
        prepare(DataRequest(decoder, str(tmp_path / "mine"), text_column="text", label_column="label"))


def test_a_metric_of_ones_own_is_part_of_what_determines_a_trial(backbone, tmp_path):
    sentences = [["Anna", "sleeps"], ["Anna", "eats"]]
    data = save(tmp_path / "words", train=sentences, validation=sentences)
    default, same, other = (
        prepare(DataRequest(backbone, data, metric=metric)) for metric in (None, "f1", "recall")
    )
    assert default.provenance == same.provenance
    assert other.provenance == replace(default.provenance, metric="recall")
    assert other.data("live").metric == "recall"
