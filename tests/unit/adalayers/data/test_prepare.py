"""From names to data: what a request adds up to, over a tiny backbone and datasets on disk."""

import json
from dataclasses import replace

import pytest

from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.request import DataRequest
from tests.helpers.tiny import tiny_backbone

SHORT, LONG = ["Anna", "sleeps"], ["the", "cat", "and", "the", "dog"]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return str(tiny_backbone(tmp_path_factory.mktemp("backbone") / "tiny", layers=1, width=8, heads=2))


def asked(backbone, folder, **splits):
    """Write sentences, in which Anna is a person, and return the request for them."""
    folder.mkdir()
    for split, sentences in splits.items():
        rows = [{"words": words, "tags": ["OP"[word == "Anna"] for word in words]} for words in sentences]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return DataRequest(backbone, str(folder), text_column="words", label_column="tags")


def test_data_without_any_labelled_word_are_refused_with_the_count(backbone, tmp_path):
    blank = [["", "\u200b"], [""], ["", ""], []]
    with pytest.raises(BadInput, match="labelled words in validation of blank, got none in 4 sentences"):
        prepare(asked(backbone, tmp_path / "blank", train=[SHORT] * 3, validation=blank))
    prepare(asked(backbone, tmp_path / "some", train=[SHORT, *blank], validation=[SHORT]))


def test_a_text_without_tokens_is_named_by_its_line_in_the_file(tmp_path):
    decoder = str(tiny_backbone(tmp_path / "gpt2", "gpt2", layers=1, width=8, heads=2))  # no special tokens
    (tmp_path / "mine").mkdir()
    rows = [{"text": f"row {i}" if i != 50 else "", "label": i % 2} for i in range(60)]
    (tmp_path / "mine" / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(BadInput, match=r"one token of every input, line 51 of train.jsonl gives none"):
        prepare(DataRequest(decoder, str(tmp_path / "mine"), text_column="text", label_column="label"))


def test_a_metric_of_ones_own_is_part_of_what_determines_a_trial(backbone, tmp_path):
    request = asked(backbone, tmp_path / "words", train=[SHORT, LONG], validation=[SHORT, LONG])
    default, same, other = (prepare(replace(request, metric=metric)) for metric in (None, "f1", "recall"))
    assert default.provenance == same.provenance
    assert other.provenance == replace(default.provenance, metric="recall")
    assert other.data("live").metric == "recall"
