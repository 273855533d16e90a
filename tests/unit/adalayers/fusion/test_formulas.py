"""Methods against their formulas in NumPy and float64: with all hidden states, and without some."""

import math

import numpy as np
import pytest
import torch

from tests.helpers.formulas import array, gelu, normalised, read, softmax
from tests.helpers.mixing import LENGTHS, TOKENS, WIDTH, K, of
from tests.helpers.states import made_shape, made_states, moved

HEADS = 2


def of_texts(x):
    """The mean of the rows of each text."""
    return np.stack([part.mean(0) for part in np.split(x, [4])])


def concat(made, states, places, renormalise):
    return sum(array(states[place]) @ array(made.maps[place].weight).T for place in places)


def scalar_mix(made, states, places, renormalise):
    weights, x = softmax(array(made.w)), read(made.projected, states)
    total = array(made.gamma) * sum(weights[place] * x[place] for place in places)
    return total / weights[places].sum() if renormalise else total


def layer_attention(made, states, places, renormalise):
    x = np.stack(read(made.projected, states))[places]
    keys = x
    if made.keys == "static":
        keys = np.repeat(array(made.static)[places][:, None], TOKENS, axis=1)
    elif made.keys == "texts":
        keys = np.stack([np.repeat(of_texts(own), LENGTHS, axis=0) for own in x])
    normal = keys / np.sqrt((keys**2).mean(-1, keepdims=True))
    weights = softmax((normal @ array(made.w)).T).T
    return (weights[..., None] * x).sum(0)


def attended(joint, heads):
    """Self-attention of one sequence: queries, keys and values side by side [time, 3 width]."""
    parts = [np.split(part, heads, axis=1) for part in np.split(joint, 3, axis=1)]
    mixed = [softmax(q @ k.T / math.sqrt(q.shape[1])) @ v for q, k, v in zip(*parts, strict=True)]
    return np.concatenate(mixed, axis=1)


def aggregated(module, x):
    """A of the rows of x [rows, K]."""
    if module is None:
        return x.mean(0)
    if hasattr(module, "w"):
        return softmax(np.tanh(x @ array(module.w))) @ x
    return (attended(x @ array(module.into.weight).T, HEADS) @ array(module.out.weight).T).mean(0)


def tokens_first(made, states, places, renormalise):
    over_tokens = made.over_tokens or [None] * len(states)
    by_text = zip(*[np.split(array(state), [4]) for state in states], strict=True)
    of_layers = [np.stack([aggregated(over_tokens[i], text[i]) for i in places]) for text in by_text]
    return np.stack([aggregated(made.over_layers, x) for x in of_layers])


def depth_convolution(made, states, places, renormalise):
    """Place by place; a state that is taken away is zeros."""
    along = [x * (place in places) for place, x in enumerate(read(made.projected, states))]
    for convolution in made.convolutions:
        weight, bias = array(convolution.weight), array(convolution.bias)
        near = [[(3 * j + d, d + 2) for d in range(-2, 3)] for j in range(-(-len(along) // 3))]
        sums = [sum(along[i] @ weight[:, :, d].T for i, d in own if 0 <= i < len(along)) for own in near]
        along = [np.maximum(bias + total, 0) for total in sums]
    return np.stack(along, axis=-1).reshape(TOKENS, -1)[:, : made.width]


def late_fusion(made, states, places, renormalise):
    x = [of_texts(array(state)) if made.of_texts else array(state) for state in states]
    outputs = [x[i] @ array(made.probes[i].weight).T + array(made.biases)[i] for i in places]
    logits = array(made.w)
    weights = softmax(logits[places]) if renormalise else softmax(logits)[places]
    if made.width == 1:
        return sum(a * o for a, o in zip(weights, outputs, strict=True))
    return np.log(sum(a * softmax(o) for a, o in zip(weights, outputs, strict=True)))


POOLINGS = {"mean": of_texts, "first-token": lambda x: x[[0, 4]], "last-token": lambda x: x[[3, 6]]}


def linear(made, layer, x):
    given = x @ array(layer.weight).T + array(layer.bias)
    return np.maximum(given, 0) if isinstance(made.layers.act, torch.nn.ReLU) else given


def layer_set(made, states, places, renormalise):
    x = np.stack([POOLINGS[made.layers.pooling](array(states[place])) for place in places], axis=1)
    h = linear(made, made.layers.project, x)
    return linear(made, made.after, h.sum(1) if made.layers.layer_pooling == "sum" else h.mean(1))


def layer_graph(made, states, places, renormalise):
    """Nodes one by one, neighbours from their matrices; those without a layer are zeros at first."""
    x = np.zeros((2, len(made.graph), WIDTH))
    for place in places:
        x[:, place] = POOLINGS[made.layers.pooling](array(states[place]))
    h = linear(made, made.layers.project, x)
    for eps, layer, norm in zip(made.eps.tolist(), made.rounds, made.norms, strict=True):
        gathered = (1 + eps) * h
        for i, j in np.argwhere(array(made.graph)):
            gathered[:, i] += h[:, j]
        h = normalised(linear(made, layer, gathered), norm)
    h = h[:, places]
    return h.sum(1) if made.layers.layer_pooling == "sum" else h.mean(1)


def bottleneck(module, x):
    """f(x) = W LN(gelu(U x)) of equation 6."""
    return normalised(gelu(x @ array(module.down.weight).T), module.norm) @ array(module.up.weight).T


def dwatt(made, states, places, renormalise):
    """h of equations 3 to 11; without the last state, the deepest that is left takes its place."""
    x = read(made.projected, states)
    x = [of_texts(own) for own in x] if made.of_texts and made.projected.project is None else x
    last = x[places[-1]]
    inner = last + bottleneck(made.query, last)
    query = 1 + np.where(inner > 0, inner, np.exp(np.minimum(inner, 0)) - 1)
    scores = query @ (array(made.embeddings) @ array(made.keys.weight).T).T
    attention = softmax(scores[:, places]) if renormalise else softmax(scores)[:, places]
    values = [normalised(bottleneck(made.values[i][0], x[i]), made.values[i][1]) for i in places]
    return last + sum(attention[:, [n]] * value for n, value in enumerate(values))


def wide_layer(made, states, places, renormalise):
    x = gelu(array(states[0]))
    of_copies = [normalised(x @ array(layer.weight).T) for layer in made.projections]
    assert not any(np.allclose(of_copies[0], other) for other in of_copies[1:]), "projections start alike"
    return sum(weight * own for weight, own in zip(softmax(8 * array(made.p)), of_copies, strict=True))


def post_norm_layer(layer, x):
    """A transformer encoder layer over one sequence [time, width]."""
    joint = x @ array(layer.attention.in_proj_weight).T + array(layer.attention.in_proj_bias)
    mixed = attended(joint, layer.attention.num_heads)
    out, widen, narrow = layer.attention.out_proj, layer.widen, layer.narrow
    x = normalised(x + mixed @ array(out.weight).T + array(out.bias), layer.norm1)
    inner = gelu(x @ array(widen.weight).T + array(widen.bias))
    return normalised(x + inner @ array(narrow.weight).T + array(narrow.bias), layer.norm2)


def extra_layers(made, states, places, renormalise):
    sequences = np.split(read(made.projected, states)[0], [4])
    for layer in made.layers:
        sequences = [post_norm_layer(layer, sequence) for sequence in sequences]
    return np.concatenate(sequences)


CHOICES = [
    {},
    {"token_pooling": "first-token", "layer_pooling": "sum"},
    {"token_pooling": "last-token", "activation": "none"},
]
OWN = {"own_width": True}
TEXTS = {"attends": "texts", "read_out": "mean", **OWN}
MORE = {"added_layers": 2, "heads": HEADS, "dropout": 0.0}
METHODS = [
    *((concat, of("concat", **width), {}) for width in (OWN, {"k": K})),
    *((scalar_mix, of("scalar-mix", **width), {}) for width in (OWN, {"k": K})),
    *((layer_attention, of("layer-attention", k=K, keys=keys), {}) for keys in ("tokens", "texts", "static")),
    (layer_attention, of("layer-attention", **OWN), {}),
    *(
        (tokens_first, of("tokens-first", aggregate=each, k=K, heads=HEADS), {})
        for each in ("mean", "gate", "attention")
    ),
    # Of 2, 5 and 9 layers 1, 2 and 1 places are left; width 7 is not divided by 2.
    *((depth_convolution, of("depth-convolution", k=K), {"layers": layers}) for layers in (2, 5, 9)),
    *((depth_convolution, of("depth-convolution", **width), {}) for width in (OWN, {"k": 7})),
    *((late_fusion, of("late-fusion"), own) for own in ({}, {"head": "token"}, {"n_outputs": 1})),
    (late_fusion, of("late-fusion", ensemble="uniform"), {}),
    *((layer_set, of("layer-set", k=K, **own), {}) for own in CHOICES),
    *((layer_graph, of("layer-graph", k=K, graph="cayley", **own), {}) for own in CHOICES),
    (layer_graph, of("layer-graph", k=K, graph="full"), {}),
    *((dwatt, of("dwatt", **own), {}) for own in (OWN, {"k": K}, TEXTS)),
    (wide_layer, of("wide-layer", layer=2, projections=3, k=K, alpha=8.0), {}),
    *((extra_layers, of("extra-layers", **MORE, **width), {}) for width in (OWN, {"k": K})),
]


@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize("gone", [(), (1,), (1, 4)], ids=str)
@pytest.mark.parametrize(("formula", "config", "shape"), METHODS)
def test_agrees_with_numpy(formula, config, shape, gone, renormalise):
    torch.manual_seed(1)
    made = moved(config.build(made_shape(**{"layers": 5, "width": WIDTH, **shape})))
    states = made_states(made.states, TOKENS, WIDTH)
    without = [made.states[place] for place in gone if place < len(made.states)]
    places = [place for place, state in enumerate(made.states) if state not in without]
    with made.without(without, renormalise=renormalise):
        assert made.live() == [made.states[place] for place in places]
        given = made({state: states[state] for state in made.live()}, LENGTHS)
    assert given.shape[1] == made.width
    assert given.dtype == torch.float32
    expected = formula(made, [*states.values()], places, renormalise)
    np.testing.assert_allclose(array(given), expected, atol=1e-4)
