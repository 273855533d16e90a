"""Data of a trial: views over one pool, and batches with token ids."""

import dataclasses
import itertools
import pickle

import numpy as np
import pytest
import torch

from adalayers.data.trial_data import _DRAW_STREAM
from adalayers.tasks.kinds.regression import Regression
from tests.helpers.made_data import made_data
from tests.helpers.refusing import refused
from tests.helpers.states import encoder

CPU = torch.device("cpu")


def drawn(data, n, draw):
    return data.view(n, draw).splits["train"].index.tolist()


def test_a_draw_follows_its_number_alone_and_a_smaller_one_is_part_of_a_larger():
    data = made_data()
    assert drawn(data, 10, 1) == drawn(made_data(), 10, 1) != drawn(data, 10, 2)
    assert set(drawn(data, 10, 1)) < set(drawn(data, 40, 1))
    assert drawn(data, 40, 1) == sorted(set(drawn(data, 40, 1)))
    for n in (None, 96, 1000):
        assert data.view(n, 3) is data  # all of train
    # A small seed sets both: the examples drawn first are not those that an epoch of training reads first.
    for draw, epoch in np.ndindex(5, 5):
        shuffled = np.random.default_rng([draw, epoch]).permutation(96)[:10]
        assert sorted(shuffled) != drawn(data, 10, draw)
    view = dataclasses.replace(data, kind=Regression(0.0, 1.0)).view(10, 1)
    labels = view.splits["train"].labels
    assert view.kind.about()["label_scale"] == {"mean": labels.mean(), "sd": labels.std()}


@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_a_view_reads_what_the_whole_reads(kind):
    whole, view = (data := made_data(kind)).splits["train"], data.view(20, 5)
    part = pickle.loads(pickle.dumps(view)).splits["train"]
    rows = np.array([7, 0, 19])
    ours = part.batch(rows, encoder(0, 2), CPU)
    theirs = whole.batch(part.index[rows], encoder(0, 2), CPU)
    torch.testing.assert_close(dict(ours.states), dict(theirs.states), rtol=0, atol=0)
    assert torch.equal(ours.lengths, theirs.lengths)
    assert torch.equal(ours.labels, theirs.labels)
    assert kind == "sequence" or torch.equal(ours.words, theirs.words)
    for name in ("validation", "test"):
        assert view.splits[name] is data.splits[name]
    assert view.provenance == data.provenance


def with_tokens(data, **columns):
    """Return data whose train has these columns of tokens."""
    train = data.splits["train"]
    train = dataclasses.replace(train, tokens=dataclasses.replace(train.tokens, **columns))
    return dataclasses.replace(data, splits={**data.splits, "train": train})


def test_batches_carry_token_ids_for_those_who_ask():
    data = made_data("token")
    offsets = data.splits["train"].tokens.offsets
    ids = np.arange(offsets[-1], dtype=np.int32)
    data = with_tokens(data, input_ids=ids, special=ids % 5 == 0)
    batch = data.splits["train"].batch(np.array([4, 2]), encoder(1), CPU)
    assert batch.input_ids.tolist() == [*range(offsets[4], offsets[5]), *range(offsets[2], offsets[3])]
    assert batch.special.tolist() == [number % 5 == 0 for number in batch.input_ids.tolist()]
    part = data.view(10, 0).splits["train"]
    own = part.batch(np.array([3]), encoder(1), CPU).input_ids.tolist()
    assert own == [*range(offsets[part.index[3]], offsets[part.index[3] + 1])]


def test_a_word_is_answered_for_by_its_first_or_its_last_sub_token():
    data = made_data("token")
    whole = data.splits["train"]
    assert data.at_words("first-token") is data
    assert made_data().at_words("last-token").metric  # texts have no words
    last = with_tokens(data, word_ends=whole.word_places - 1).at_words("last-token")
    ours, theirs = (of.batch(np.array([3, 5]), encoder(1), CPU) for of in (last.splits["train"], whole))
    assert torch.equal(ours.words, theirs.words - 1)
    assert torch.equal(ours.labels, theirs.labels)
    part = last.view(10, 0).splits["train"]
    np.testing.assert_array_equal(part.word_places, part.tokens.word_ends)


def test_a_draw_without_any_label_is_refused():
    data = made_data("token", sizes=(20, 4, 4))
    split = data.splits["train"]
    split.word_places[split.word_offsets[1] :] = -1  # but for the first sentence
    orders = [np.random.default_rng([draw, _DRAW_STREAM]).permutation(20) for draw in range(10)]
    draw = next(draw for draw, order in enumerate(orders) if 0 not in order[:2])
    refused(rf"labelled words in the 2 examples of train that draw {draw} gives", data.view, 2, draw)
    assert np.concatenate(split.shuffled(4, 0, 0)).tolist() == split.trainable.tolist() == [0]


@pytest.mark.parametrize(("n", "batch_size"), [(250, 32), (600, 300)])
def test_batches_are_sorted_by_length_and_who_shares_one_is_uniform_at_random(n, batch_size):
    """Batches once came from an epoch sorted by length: two neighbours in length met in nearly every epoch."""
    split = made_data(sizes=(n, 4, 4)).splits["train"]
    together = []
    for epoch in range(9):
        batches = split.shuffled(batch_size, 0, epoch)
        assert [len(batch) for batch in batches][-2:] == [batch_size, n % batch_size or batch_size]
        homes = np.zeros((n, n), dtype=bool)
        for batch in batches:
            assert (np.diff(split.features.lengths[batch]) >= 0).all()
            homes[np.ix_(batch, batch)] = True
        assert homes.diagonal().all()  # each example once
        together.append(np.triu(homes, 1))
    again = sum((a & b).sum() for a, b in itertools.pairwise(together))
    pairs = together[0].sum()
    assert again / (8 * pairs) == pytest.approx(pairs / (n * (n - 1) / 2), rel=0.15)
