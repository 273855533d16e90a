"""One layer under several projections against NumPy, and its counts against those of a mix."""

import numpy as np
import torch

from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.fusion.wide_layer import WideLayerConfig
from tests.helpers import formulas
from tests.helpers.mixing import LENGTHS, SHAPE, STATES, L, counted, inputs


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


def test_it_has_the_parameters_of_a_mix_of_all():
    assert counted(WideLayerConfig(k=64)) == counted(LayerMixConfig(k=64))
    assert WideLayerConfig().resolved(SHAPE)["layer"] == STATES[-1].number
    assert WideLayerConfig().resolved(SHAPE)["projections"] == L
