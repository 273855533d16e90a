"""Data of a trial: views over one pool, and batches with token ids."""

import dataclasses
import pickle

import numpy as np
import pytest
import torch

from adalayers.backbones.tokens import Encoded
from adalayers.data.trial_data import _DRAW_STREAM, Passes
from adalayers.errors import BadInput
from adalayers.tasks.kinds.regression import Regression
from tests.helpers.made_data import made_data
from tests.helpers.states import encoder

CPU = torch.device("cpu")
KINDS = ("sequence", "token")


def drawn(data, n, draw):
    return data.view(n, draw).splits["train"].index.tolist()


def test_all_of_train_is_the_data_itself():
    data = made_data()
    assert data.view(None, 0) is data
    assert data.view(96, 0) is data
    assert data.view(1000, 3) is data


def test_a_draw_is_uniform_in_order_and_without_repetition():
    data = made_data(sizes=(12, 4, 4))
    counts = np.zeros(12)
    for draw in range(400):
        rows = drawn(data, 3, draw)
        assert rows == sorted(set(rows))
        counts[rows] += 1
    assert np.abs(counts - 100).max() < 35  # four standard deviations


def test_a_draw_follows_its_number_alone_and_a_smaller_one_is_part_of_a_larger():
    data = made_data()
    assert drawn(data, 10, 1) == drawn(made_data(), 10, 1) != drawn(data, 10, 2)
    assert set(drawn(data, 10, 1)) < set(drawn(data, 40, 1))


def test_numbers_are_scaled_by_the_examples_that_are_drawn():
    data = dataclasses.replace(made_data(), kind=Regression(0.0, 1.0))
    view = data.view(10, 1)
    labels = view.splits["train"].labels
    assert view.kind.about()["label_scale"] == {"mean": labels.mean(), "sd": labels.std()}


def test_draws_are_not_the_shuffles_of_training():
    """A small seed sets both: the examples drawn first must not be those that an epoch reads first."""
    data = made_data()
    for draw in range(5):
        for epoch in range(5):
            shuffled = np.random.default_rng([draw, epoch]).permutation(96)[:10]
            assert sorted(shuffled) != drawn(data, 10, draw)


@pytest.mark.parametrize("kind", KINDS)
def test_a_view_reads_what_the_whole_reads(kind):
    whole, view = (data := made_data(kind)).splits["train"], data.view(20, 5)
    part = pickle.loads(pickle.dumps(view)).splits["train"]
    rows = np.array([7, 0, 19])
    ours = part.batch(rows, encoder(0, 2), CPU)
    theirs = whole.batch(part.index[rows], encoder(0, 2), CPU)
    for state in encoder(0, 2):
        assert torch.equal(ours.states[state], theirs.states[state])
    assert torch.equal(ours.lengths, theirs.lengths)
    assert torch.equal(ours.labels, theirs.labels)
    if kind == "token":
        assert torch.equal(ours.words, theirs.words)
    for name in ("validation", "test"):
        assert view.splits[name] is data.splits[name]
    assert view.provenance == data.provenance


@pytest.mark.parametrize("kind", KINDS)
def test_batches_carry_token_ids_for_those_who_ask(kind):
    data = made_data(kind)
    whole = data.splits["train"]
    offsets = np.concatenate([[0], np.cumsum(whole.features.lengths)])
    ids = np.arange(offsets[-1], dtype=np.int32)
    tokens = whole.tokens or Encoded(ids, offsets)
    train = dataclasses.replace(
        whole, tokens=dataclasses.replace(tokens, input_ids=ids, special=ids % 5 == 0)
    )
    data = dataclasses.replace(data, splits={**data.splits, "train": train})
    batch = data.splits["train"].batch(np.array([4, 2]), encoder(1), CPU)
    assert batch.input_ids.tolist() == [*range(offsets[4], offsets[5]), *range(offsets[2], offsets[3])]
    assert batch.special.tolist() == [number % 5 == 0 for number in batch.input_ids.tolist()]
    part = data.view(10, 0).splits["train"]
    assert len(part.tokens.input_ids) == part.features.lengths.sum()
    first = part.index[3]
    own = part.batch(np.array([3]), encoder(1), CPU).input_ids.tolist()
    assert own == [*range(offsets[first], offsets[first + 1])]


def test_a_draw_without_any_label_is_refused():
    data = made_data("token", sizes=(20, 4, 4))
    split = data.splits["train"]
    split.word_places[split.word_offsets[1] :] = -1  # but for the first sentence
    orders = [np.random.default_rng([draw, _DRAW_STREAM]).permutation(20) for draw in range(10)]
    draw = next(draw for draw, order in enumerate(orders) if 0 not in order[:2])
    with pytest.raises(BadInput, match=rf"labelled words in the 2 examples of train that draw {draw} gives"):
        data.view(2, draw)
    assert data.view(20, 0).splits["train"].trainable.tolist() == [0]


def test_passes_over_a_split_are_alike_and_whole():
    split = made_data("token").splits["train"]
    passes = Passes(split, encoder(1, 2), CPU, 40)
    first, second = list(passes), list(passes)
    assert [len(batch.examples) for batch in first] == [40, 40, 16]
    assert np.concatenate([batch.examples for batch in first]).tolist() == list(range(96))
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a.states[encoder(2)[0]], b.states[encoder(2)[0]])


def again_together(data, batch_size, epochs):
    """Return how often two examples that share a batch share one again in the next epoch."""

    def homes(epoch):
        home = np.empty(len(data.splits["train"]), int)
        for place, batch in enumerate(data.splits["train"].shuffled(batch_size, 0, epoch)):
            home[batch] = place
        return home[:, None] == home[None, :]

    shared = total = 0
    for epoch in range(epochs):
        first, second = (np.triu(homes(e), 1) for e in (epoch, epoch + 1))
        shared, total = shared + int((first & second).sum()), total + int(first.sum())
    return shared / total


@pytest.mark.parametrize(("n", "batch_size"), [(256, 32), (600, 300)])
def test_which_examples_share_a_batch_is_uniform_at_random(n, batch_size):
    """Batches once came from an epoch sorted by length: two neighbours in length met in nearly every epoch."""
    chance = (batch_size - 1) / (n - 1)
    assert again_together(made_data(sizes=(n, 4, 4)), batch_size, 8) == pytest.approx(chance, rel=0.15)


def test_batches_hold_every_example_once_sorted_by_length():
    split = made_data().splits["train"]
    batches = split.shuffled(20, 3, 1)
    assert sorted(np.concatenate(batches)) == list(range(96))
    assert [len(batch) for batch in batches] == [20, 20, 20, 20, 16]
    assert all((np.diff(split.features.lengths[batch]) >= 0).all() for batch in batches)


def test_a_word_is_answered_for_by_its_first_or_its_last_sub_token():
    data = made_data("token")
    whole = data.splits["train"]
    assert data.at_words("first-token") is data
    assert made_data().at_words("last-token").metric  # texts have no words
    splits = {
        name: dataclasses.replace(
            split, tokens=dataclasses.replace(split.tokens, word_ends=split.word_places - 1)
        )
        for name, split in data.splits.items()
    }
    last = dataclasses.replace(data, splits=splits).at_words("last-token")
    examples = np.array([3, 5])
    ours = last.splits["train"].batch(examples, encoder(1), CPU)
    theirs = whole.batch(examples, encoder(1), CPU)
    assert torch.equal(ours.words, theirs.words - 1)
    assert torch.equal(ours.labels, theirs.labels)
    part = last.view(10, 0).splits["train"]
    np.testing.assert_array_equal(part.word_places, part.tokens.word_ends)
