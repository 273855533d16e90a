"""From names to data: what a request adds up to, over a tiny backbone and datasets on disk; where states come from."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from adalayers.data import feature_choice
from adalayers.data.feature_choice import MEMORY_SHARE
from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.request import DataRequest, Resources
from tests.helpers.tiny import tiny_backbone

SHORT, LONG = ["Anna", "sleeps"], ["the", "cat", "and", "the", "dog"]


def asked(world, folder, **splits):
    """Write sentences, in which Anna is a person, and return the request for them."""
    folder.mkdir()
    for split, sentences in splits.items():
        rows = [{"words": words, "tags": ["OP"[word == "Anna"] for word in words]} for words in sentences]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return DataRequest(str(world["backbone"]), str(folder), text_column="words", label_column="tags")


def test_data_without_any_labelled_word_are_refused_with_the_count(world, tmp_path):
    blank = [["", "\u200b"], [""], ["", ""], []]
    with pytest.raises(BadInput, match="labelled words in validation of blank, got none in 4 sentences"):
        prepare(asked(world, tmp_path / "blank", train=[SHORT] * 3, validation=blank))
    prepare(asked(world, tmp_path / "some", train=[SHORT, *blank], validation=[SHORT]))


def test_a_text_without_tokens_is_named_by_its_line_in_the_file(tmp_path):
    decoder = str(tiny_backbone(tmp_path / "gpt2", "gpt2", layers=1, width=8, heads=2))  # no special tokens
    (tmp_path / "mine").mkdir()
    rows = [{"text": f"row {i}" if i != 50 else "", "label": i % 2} for i in range(60)]
    (tmp_path / "mine" / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(BadInput, match=r"one token of every input, line 51 of train.jsonl gives none"):
        prepare(DataRequest(decoder, str(tmp_path / "mine"), text_column="text", label_column="label"))


def test_a_metric_of_ones_own_is_part_of_what_determines_a_trial(world, tmp_path):
    request = asked(world, tmp_path / "words", train=[SHORT, LONG], validation=[SHORT, LONG])
    default, same, other = (prepare(replace(request, metric=metric)) for metric in (None, "f1", "recall"))
    assert default.provenance == same.provenance
    assert other.provenance == replace(default.provenance, metric="recall")
    assert other.data("live").metric == "recall"


def test_labels_are_part_of_what_determines_a_trial(world, tmp_path):
    """Else rows of a dataset whose labels have been mended would be gone on with."""
    request = asked(world, tmp_path / "words", train=[SHORT, LONG], validation=[SHORT, LONG])
    before, mended = prepare(request).provenance.splits, prepare(request)
    mended.task.splits["train"].labels[0] ^= 1
    assert [name for name, of in mended.provenance.splits.items() if of != before[name]] == ["train"]


GB = 10**9
ROOM = {"store": 2 * GB, "missing": 2 * GB, "memory": 20 * GB, "disk": 100 * GB, "gpu": None, "share": None}


@pytest.mark.parametrize(
    ("wanted", "change", "mode"),
    [
        *((mode, {"disk": 0, "memory": 0}, mode) for mode in ("memory", "disk", "live")),
        ("auto", {"store": int(MEMORY_SHARE * 20 * GB)}, "memory"),
        ("auto", {"store": int(MEMORY_SHARE * 20 * GB) + 1}, "disk"),
        ("auto", {"missing": 101 * GB}, "live"),
        # What is stored already needs no room.
        ("auto", {"store": 3 * GB, "missing": 0, "disk": 0}, "memory"),
        ("auto", {"gpu": 10 * GB}, "memory"),
        ("auto", {"gpu": 3 * GB}, "disk"),
        ("auto", {"gpu": 6 * GB, "share": 0.5}, "disk"),
    ],
)
def test_as_asked_else_by_what_there_is_room_for(wanted, change, mode, monkeypatch, tmp_path):
    room = SimpleNamespace(**ROOM | change)
    monkeypatch.setattr(feature_choice, "free_bytes", lambda cache: (room.memory, room.disk, room.gpu))
    monkeypatch.setattr(feature_choice, "missing_bytes", lambda prepared, cache: room.missing)
    prepared = SimpleNamespace(store_bytes=room.store)
    chosen, _ = feature_choice.feature_choice(
        prepared, wanted, tmp_path, Resources(gpus_per_trial=room.share)
    )
    assert chosen == mode
