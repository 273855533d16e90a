"""Which layers can a trained mix, or trained adapters, do without? Spans are taken away without retraining.

The measure is that of Mohebbi and Rajaee's report, figure 8, which has it for adapters.

Question    How much does the score drop when neighbouring layers i..j are taken away from a trained mix, without
            training it again?
Scientific  the span i..j; whether the weights of the rest sum to 1 again
Nuisance    lr, in a search that --trials adds; none otherwise
Fixed       mix_lr at 1e-3, for it is one axis with alpha; all else at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; spans on validation, as in that report, arms on test
Budget      four arms x --seeds, unpruned; every span is scored with each trained model, relative to it
Command     python studies/layer_spans.py --backbone minilm --dataset conll2003
Result      so far, MiniLM on 2,000 sentences of CoNLL-2003 (docs/answers.md): adapters beat the mix by 0.112 test
            F1. It loses 22% of its F1 on validation without its upper three layers and 42% without its lower three,
            they 53% and 63% (not judged)

The spans:
    The layer mix adds up projections of a frozen backbone's hidden states with the weights p̃ = softmax(α p), p
    learned. Once it is trained, layers i to j are taken away: their weights become 0, and the others are scaled to
    sum to 1 again, or left as they are.
"""

import itertools

from adalayers.command.main import main
from adalayers.states import Settings
from adalayers.study import FACTORS, UNIFORM, Arm, Defaults, Design, Page, Setting, Study, Variant, crossed


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return learned mixes by alpha, control first, the uniform mix, and adapters."""
    from search_spaces.layer_spans import ALPHA

    read_out = "first-token" if not setting.shape.per_token else "linear"
    last: Settings = {"fusion": "scalar-mix", "mix": "last", "own_width": True, "read_out": read_out}
    rates: Settings = {"schedule": "linear", "lr": 1e-2, "base_lr": 3e-3}
    return [
        *crossed(setting, {"alpha": ALPHA}, {"mix": "learned"}),
        UNIFORM,
        Arm("adapters", "adapters", {**last, "base_model": "adapters", **rates}),
    ], [
        "Adapters are small layers trained within a copy of the base model; those of layers i to j are taken away."
    ]


def variants(setting: Setting) -> list[Variant]:
    """Return every span of neighbouring layers, the rest renormalised and as it is (a mix of none is left out)."""
    layers = [*dict.fromkeys(setting.layers)]  # those of an encoder and of a decoder go by the same numbers
    ends = itertools.combinations(range(len(layers) + 1), 2)
    return [
        Variant(without=tuple(layers[first:end]), renormalise=renormalise)
        for renormalise, (first, end) in itertools.product((True, False), ends)
    ]


STUDY = Study(
    name="layer_spans",
    about=__doc__,
    design=Design(arms=arms, factors=(FACTORS["alpha"],), variants=variants),
    page=Page(title="Layers taken away", parts=("layer_spans",)),
    defaults=Defaults(
        sizes={"trials": 0}, smoke={"train_examples": 48, "eval_examples": 32, "test_examples": 32}
    ),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
