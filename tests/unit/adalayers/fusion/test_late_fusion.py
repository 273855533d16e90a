"""Late fusion against NumPy, its counts, and its weights."""

import functools

import numpy as np
import pytest
import torch

from adalayers.fusion.late_fusion import LateFusionConfig
from tests.helpers import formulas
from tests.helpers.formulas import array
from tests.helpers.mixing import STATES, TOKENS, WIDTH, L, assert_agrees, inputs
from tests.helpers.states import encoder, made_shape

LENGTHS = torch.tensor([4, TOKENS - 4])


def ensemble(labels, *, of_texts, learned=True):
    torch.manual_seed(1)
    config = LateFusionConfig(ensemble="learned" if learned else "uniform")
    made = config.build(made_shape("sequence" if of_texts else "token", labels, layers=L, width=WIDTH))
    with torch.no_grad():
        made.biases.normal_()
        if learned:
            made.w.copy_(torch.tensor([0.3, -1.0, 0.5, 2.0, 0.0]))
    return made


def numpy_ensemble(made, states, places, *, renormalise=True):
    read = [array(states[STATES[place]]) for place in places]
    if made.of_texts:
        read = [np.stack([x[:4].mean(0), x[4:].mean(0)]) for x in read]
    outputs = [
        x @ array(made.probes[i].weight).T + array(made.biases)[i] for i, x in zip(places, read, strict=True)
    ]
    logits = array(made.w)
    weights = formulas.softmax(logits[places]) if renormalise else formulas.softmax(logits)[places]
    if made.width == 1:
        return sum(a * o for a, o in zip(weights, outputs, strict=True))
    return np.log(sum(a * formulas.softmax(o) for a, o in zip(weights, outputs, strict=True)))


@pytest.mark.parametrize("of_texts", [True, False], ids=["texts", "words"])
@pytest.mark.parametrize(("labels", "learned"), [(3, True), (3, False), (1, True)])
def test_agrees_with_numpy_with_all_states_and_without_some(labels, learned, of_texts):
    made, states = ensemble(labels, of_texts=of_texts, learned=learned), inputs()
    assert_agrees(made, functools.partial(numpy_ensemble, made, states), lengths=LENGTHS)
    for renormalise in (True, False):
        formula = functools.partial(numpy_ensemble, made, states, renormalise=renormalise)
        assert_agrees(made, formula, 0, 3, lengths=LENGTHS, renormalise=renormalise)
        with made.without(encoder(1, 4), renormalise=renormalise):
            assert made.diagnostics()["late_fusion/weight_04"] == 0


def test_counts_on_roberta_large():
    """A probe with bias for each layer, and a weight of each where it is learned."""
    shape = made_shape(n_outputs=2, layers=24, width=1024)
    made = [LateFusionConfig(ensemble=ensemble).build(shape) for ensemble in ("learned", "uniform")]
    counts = [sum(p.numel() for p in fusion.parameters() if p.requires_grad) for fusion in made]
    assert counts == [24 * (1024 * 2 + 2) + 24, 24 * (1024 * 2 + 2)]
    assert counts[0] == 49_224
