"""One layer under several projections against NumPy."""

import numpy as np
import torch

from adalayers.fusion.wide_layer import WideLayerConfig
from tests.helpers import formulas
from tests.helpers.mixing import LENGTHS, SHAPE, STATES, L, inputs


def test_agrees_with_numpy():
    torch.manual_seed(1)
    made, states = WideLayerConfig(layer=2, projections=3, k=8).build(SHAPE), inputs()
    made.p.data = torch.tensor([0.5, -1.0, 2.0])
    (read,) = made.live()
    assert read == STATES[1]
    weights = np.exp(formulas.array(made.p)) / np.exp(formulas.array(made.p)).sum()
    hidden = torch.nn.functional.gelu(states[read])
    terms = [formulas.array(torch.nn.functional.layer_norm(w(hidden), (8,))) for w in made.projections]
    expected = sum(weight * term for weight, term in zip(weights, terms, strict=True))
    np.testing.assert_allclose(formulas.array(made({read: states[read]}, LENGTHS)), expected, atol=1e-5)
    assert not any(np.allclose(terms[0], term) for term in terms[1:]), "projections that start alike"


def test_it_reads_the_last_layer_as_often_as_there_are_layers_unless_told():
    resolved = WideLayerConfig().resolved(SHAPE)
    assert (resolved["layer"], resolved["projections"]) == (STATES[-1].number, L)
