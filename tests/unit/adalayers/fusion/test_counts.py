"""What fusions of RoBERTa-large's 24 layers of width 1,024 count and give: counts by hand, some of them published."""

import pytest

from adalayers.fusion.concat import ConcatConfig
from adalayers.fusion.depth_convolution import DepthConvolutionConfig
from adalayers.fusion.extra_layers import ExtraLayersConfig
from adalayers.fusion.layer_attention import LayerAttentionConfig
from adalayers.fusion.layer_graph import LayerGraphConfig
from adalayers.fusion.layer_set import LayerSetConfig
from adalayers.fusion.scalar_mix import ScalarMixConfig
from adalayers.fusion.tokens_first import TokensFirstConfig
from tests.helpers.mixing import counted

WIDTH = 1024
PROJECTIONS = 24 * 64 * WIDTH
"""Of every layer to k = 64."""
INTO, SQUARE = WIDTH * 256 + 256, 256 * 256 + 256
ROUND = SQUARE + 2 * 256 + 1
COUNTS = [
    (ConcatConfig(own_width=True), 24 * WIDTH**2, WIDTH),  # table 2 prints 25.18M
    (ConcatConfig(k=64), PROJECTIONS, 64),
    (ScalarMixConfig(own_width=True), 24 + 1, WIDTH),  # w and gamma alone
    (ScalarMixConfig(k=64), PROJECTIONS + 24 + 1, 64),
    (ScalarMixConfig(k=64, mix="last"), 64 * WIDTH, 64),
    (LayerAttentionConfig(own_width=True), WIDTH, WIDTH + 2),
    (LayerAttentionConfig(k=64), PROJECTIONS + 64, 64 + 2),
    (ExtraLayersConfig(own_width=True), 2 * (12 * WIDTH**2 + 13 * WIDTH), WIDTH),  # table 2: 25.19M
    (ExtraLayersConfig(k=64, added_layers=3), 64 * WIDTH + 3 * (12 * 64**2 + 13 * 64), 64),
    # Two convolutions, 24 -> 8 -> 3 places: 1,024 channels, then 342 (published: 341, and a width of 1,023).
    (DepthConvolutionConfig(own_width=True), (WIDTH + 342) * (5 * WIDTH + 1), 24 * WIDTH),
    (DepthConvolutionConfig(k=64), PROJECTIONS + (64 + 22) * (5 * 64 + 1), None),
    # (L + 2) d and (L + 2) 4 d d_inner of L layers and the embeddings; here without them.
    (TokensFirstConfig(aggregate="gate", hidden_states="with-embeddings"), 26 * WIDTH, None),
    (TokensFirstConfig(aggregate="mean", k=64), 0, None),
    (TokensFirstConfig(aggregate="gate", k=64), 25 * WIDTH, None),
    (TokensFirstConfig(aggregate="attention", k=64), 25 * 4 * WIDTH * 64, None),
    # At the published width of 256, without the linear layer that reads the vector.
    (LayerSetConfig(k=256), INTO + SQUARE, None),
    (LayerGraphConfig(k=256), INTO + 2 * ROUND, None),
    (LayerGraphConfig(k=256, rounds=1), INTO + ROUND, None),
]


@pytest.mark.parametrize(("config", "parameters", "kept"), COUNTS)
def test_counts_on_roberta_large(config, parameters, kept):
    count, numbers = counted(config)
    assert count == parameters
    assert kept in (None, numbers)
