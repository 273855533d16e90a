"""The embedded corpora: what a study may rely on, and that not one word of them moves unnoticed."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from adalayers.tasks.demo_data import ACCEPTABILITY_LABELS, ENTITY_LABELS, PAIRS, acceptability, entities

SIZES = {"train": 2000, "validation": 400, "test": 400}

# A change here changes every result on these corpora: it needs a changelog entry that says so.
ACCEPTABILITY_SHA256 = "c7e66dc41b6d24131c210a75ff98b16d2a3c47a63d1678bb0462873a9b11a6ce"
ENTITIES_SHA256 = "049970469dfbe50567d88748e067e346145c4a0deccd74e77b96811f034f49fa"


def sha256(corpus: object) -> str:
    return hashlib.sha256(json.dumps(corpus).encode()).hexdigest()


def spans(words: list[str], labels: list[int]) -> Iterator[tuple[str, str]]:
    """The (text, type) of every entity, text in lower case."""
    tags = [ENTITY_LABELS[label] for label in labels]
    starts = [place for place, tag in enumerate(tags) if tag.startswith("B-")]
    for start in starts:
        end = start + 1
        while end < len(tags) and tags[end].startswith("I-"):
            end += 1
        yield " ".join(words[start:end]).lower(), tags[start][2:]


@pytest.mark.parametrize(
    ("corpus", "expected"), [(acceptability, ACCEPTABILITY_SHA256), (entities, ENTITIES_SHA256)]
)
def test_content_is_pinned(corpus, expected):
    assert sha256(corpus()) == expected
    assert sha256(corpus()) == expected, "a second call in the same process must give the same corpus"


def test_content_does_not_depend_on_the_hash_seed():
    code = "import json; from adalayers.tasks.demo_data import *; print(json.dumps([acceptability(), entities()]))"
    expected = json.dumps([acceptability(), entities()])
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected


@pytest.mark.parametrize("corpus", [acceptability, entities])
def test_split_sizes(corpus):
    assert {split: len(examples) for split, examples in corpus().items()} == SIZES


def test_a_caller_may_change_what_it_got():
    acceptability()["train"].clear()
    entities()["train"][0][0].clear()
    assert len(acceptability()["train"]) == SIZES["train"]
    assert entities()["train"][0][0]


def test_no_sentence_occurs_twice():
    sentences = [text.lower() for examples in acceptability().values() for text, _ in examples]
    assert len(set(sentences)) == sum(SIZES.values())
    sentences = [" ".join(words).lower() for examples in entities().values() for words, _ in examples]
    assert len(set(sentences)) == sum(SIZES.values())


def test_acceptability_labels_are_valid_and_roughly_balanced():
    for split, examples in acceptability().items():
        labels = [label for _, label in examples]
        assert set(labels) == set(range(len(ACCEPTABILITY_LABELS)))
        assert 0.53 <= sum(labels) / len(labels) <= 0.63, split


def test_sentences_are_written_like_sentences():
    for examples in acceptability().values():
        for text, _ in examples:
            assert text[0].isupper()
            assert text[-1] in ".?"
            assert text == " ".join(text.split())
            assert not set(text) & set("{}~_<>|"), f"an unfilled slot: {text}"
    for examples in entities().values():
        for words, _ in examples:
            assert words[0][0].isupper() or not words[0][0].isalpha()
            assert all(word == word.strip() != "" for word in words)
            assert not set("".join(words)) & set("{}_<>|"), f"an unfilled slot: {words}"


def test_pairs_are_minimal():
    """Both sides of a pair use much the same words, so that the words alone tell little."""
    for kind, (_, lines) in PAIRS.items():
        for line in lines.strip().split("\n"):
            acceptable, unacceptable = line.strip().split(" ~ ")
            assert acceptable != unacceptable, kind
            assert abs(len(acceptable.split()) - len(unacceptable.split())) <= 1, line


def test_entity_labels_are_well_formed_iob2():
    for examples in entities().values():
        for words, labels in examples:
            assert len(words) == len(labels) > 0
            tags = [ENTITY_LABELS[label] for label in labels]
            for before, tag in zip(["O", *tags], tags, strict=False):
                assert not tag.startswith("I-") or before[1:] == tag[1:], (words, tags)


def test_every_entity_type_occurs_in_every_split():
    for split, examples in entities().items():
        used = {label for _, labels in examples for label in labels}
        assert used == set(range(len(ENTITY_LABELS))), split
        assert any(set(labels) == {0} for _, labels in examples), "sentences without an entity belong to it"


def test_most_names_of_the_test_split_are_new():
    corpus = entities()
    known = {text for example in corpus["train"] for text, _ in spans(*example)}
    names = [text for example in corpus["test"] for text, _ in spans(*example)]
    assert sum(name not in known for name in names) / len(names) >= 0.65


def test_the_same_name_is_of_several_types():
    types: dict[str, set[str]] = {}
    for example in entities()["train"]:
        for text, entity in spans(*example):
            types.setdefault(text, set()).add(entity)
    assert sum(len(several) > 1 for several in types.values()) >= 200
    assert any({"PER", "LOC", "ORG"} <= several for several in types.values())


def test_some_sentences_are_headlines_and_some_spans_look_nested():
    examples = entities()["test"]
    assert 0.02 <= sum(" ".join(words).isupper() for words, _ in examples) / len(examples) <= 0.15
    assert any("university of" in text for example in examples for text, _ in spans(*example))
