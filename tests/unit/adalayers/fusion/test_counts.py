"""What fusions of RoBERTa-large's layers count and give, by hand, some of it published; what all refuse."""

import pytest

from adalayers.config import trial_config
from tests.helpers.mixing import counted, of
from tests.helpers.refusing import refused
from tests.helpers.states import made_shape

WIDTH = 1024
PROJECTIONS = 24 * 64 * WIDTH
"""Of every layer to k = 64."""
INTO, SQUARE = WIDTH * 256 + 256, 256 * 256 + 256
ROUND = SQUARE + 2 * 256 + 1
THRICE = 2 * 25 * WIDTH + 2_491_649 + 2_441_280 + 77_635
COUNTS = [
    (of("concat", own_width=True), 24 * WIDTH**2, WIDTH),  # table 2 prints 25.18M
    (of("layer-mix", k=64), PROJECTIONS + 24, 64),
    (of("layer-mix", k=64, mix="single", layer=3), 64 * WIDTH, 64),
    # Scale and shift of each layer, and one routing; the published classifier routes thrice, through 64 vectors.
    (of("routing", own_width=True), 2 * 24 * WIDTH + 18 * WIDTH + 16, 24 * WIDTH),
    (of("routing", k=64), PROJECTIONS + 2 * 24 * 64 + 18 * 64 + 16, 24 * 64),
    (of("routing", own_width=True, hidden_vectors=64, hidden_states="with-embeddings"), THRICE, 25 * WIDTH),
    (of("variability", k=64), 64 * WIDTH, 64),
    (of("variability", own_width=True), 0, WIDTH),
    (of("wide-layer", k=64), PROJECTIONS + 24, 64),
    (of("late-fusion"), 24 * (WIDTH * 3 + 3) + 24, 0),
    (of("late-fusion", ensemble="uniform"), 24 * (WIDTH * 3 + 3), 0),
    # Table 2 prints 26.33M. A value's map: W and U 1024 x 512, LN 512 and LN_n 1024 with scale and shift.
    (of("dwatt", own_width=True), 25 * (WIDTH**2 + WIDTH) + 24 * (2 * WIDTH + WIDTH), 24 * WIDTH),
    (of("scalar-mix", own_width=True), 24 + 1, WIDTH),  # w and gamma alone
    (of("scalar-mix", k=64), PROJECTIONS + 24 + 1, 64),
    (of("layer-attention", own_width=True), WIDTH, WIDTH + 2),
    (of("layer-attention", k=64), PROJECTIONS + 64, 64 + 2),
    (of("layer-attention", k=64, keys="texts"), PROJECTIONS + 64, 24 * 64),
    (of("extra-layers", own_width=True), 2 * (12 * WIDTH**2 + 13 * WIDTH), WIDTH),  # table 2: 25.19M
    (of("extra-layers", k=64, added_layers=3), 64 * WIDTH + 3 * (12 * 64**2 + 13 * 64), 64),
    # Two convolutions, 24 -> 8 -> 3 places: 1,024 channels, then 342 (published: 341, and a width of 1,023).
    (of("depth-convolution", own_width=True), (WIDTH + 342) * (5 * WIDTH + 1), 24 * WIDTH),
    (of("depth-convolution", k=64), PROJECTIONS + (64 + 22) * (5 * 64 + 1), None),
    # (L + 2) d and (L + 2) 4 d d_inner of L layers and the embeddings; here without them.
    (of("tokens-first", aggregate="gate", hidden_states="with-embeddings"), 26 * WIDTH, None),
    (of("tokens-first", aggregate="mean", k=64), 0, None),
    (of("tokens-first", aggregate="attention", k=64), 25 * 4 * WIDTH * 64, None),
    # At the published width of 256, without the linear layer that reads the vector.
    (of("layer-set", k=256), INTO + SQUARE, 0),
    (of("layer-graph", k=256), INTO + 2 * ROUND, 0),
    (of("layer-graph", k=256, rounds=1), INTO + ROUND, 0),
]


@pytest.mark.parametrize(("config", "parameters", "kept"), COUNTS)
def test_counts_on_roberta_large(config, parameters, kept):
    count, numbers = counted(config)
    assert count == parameters
    assert kept in (None, numbers)


def test_embeddings_that_are_not_trained_act_at_use():
    own = of("dwatt", own_width=True)
    weights_at_use = own.build(made_shape(layers=24, width=WIDTH)).weights_at_use()
    assert weights_at_use == counted(own)[0] + 24 * 24


REFUSED = [
    ({"fusion": "head2toe", "lasso": -1.0}, 3, "lasso"),
    ({"fusion": "head2toe", "fraction": 0.0}, 3, "fraction"),
    ({"fusion": "routing", "hidden_vectors": 1}, 3, "hidden_vectors"),
    ({"fusion": "routing"}, 1, "takes at least 2.*got fusion=routing"),
    ({"fusion": "variability"}, 1, "takes at least 2.*got fusion=variability"),
    ({"fusion": "wide-layer", "layer": 77}, 3, "wanted layer to be one of .*, got layer=77"),
    ({"fusion": "scalar-mix", "own_width": True}, 3, "heads to be a divisor of the fusion's width, 12"),
    ({"heads": 7}, 3, "heads to be a divisor of the fusion's width, 64"),
    ({"fusion": "tokens-first", "aggregate": "attention", "k": 6}, 3, "heads to be a divisor of k = 6"),
    ({"fusion": "layer-set", "read_out": "attention"}, 3, "read_out to be mean with fusion=layer-set"),
    ({"fusion": "dwatt", "attends": "texts"}, 3, "attends to be tokens but for whole texts"),
    ({"fusion": "extra-layers", "added_layers": 0}, 3, "added_layers"),
    ({"fusion": "extra-layers", "k": 12, "read_out": "linear"}, 3, "divisor of the layers' width, 12"),
]


@pytest.mark.parametrize(("settings", "outputs", "said"), REFUSED)
def test_what_a_method_cannot_do_is_bad_input(settings, outputs, said):
    refused(said, lambda: trial_config(**settings).check(made_shape(n_outputs=outputs)))
