"""Which method makes the most of a pretrained model, and at what price? The rivals, each tuned with an equal budget.

Question    How good is each method of fusing hidden states, or of tuning the base model, and what does it cost to
            train and to use?
Scientific  the method: fusions as published (own width and read-out) and matched (projected to k, the same head), and
            methods that change the base model
Nuisance    the method's learning rates (of head and base model each), and what it alone has (mix_lr; layer; fraction
            and lasso of Head2Toe)
Fixed       all else at the script's defaults or --set; AdamW, warm-up and linear decay, but for methods as published
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      a search of --trials for each method; then each as its search found it best x --seeds, unpruned
Command     python studies/methods.py --backbone minilm --dataset conll2003
Result      so far (docs/answers.md): with MiniLM on 2,000 sentences of CoNLL-2003, each at the best of four rates and
            read by the mix's head, concatenation and attention over layers beat the mix (α = 128) by 0.010 and 0.005
            test F1, and a scalar mix is no different, all on these test examples; equal weights are open; the eight
            arms with linear read-outs lose. None yet of adapters and fine-tuning

The methods:
    Fusions read the hidden states of a frozen base model: at its own width, with a read-out of their own or a linear
    one, or matched, projected to k and read by the same head as AdaLayers' mix. Adapters and fine-tuning train a copy
    of the base model, which then serves this task alone. All are trained by AdamW with warm-up and linear decay;
    those as published are by their paper's optimiser and schedule (docs/methods.md). One adapter a layer is how
    Mohebbi and Rajaee read Houlsby et al., whose own has two and trains the norms.
"""

from collections.abc import Sequence

from adalayers.command.main import main
from adalayers.comparisons import Comparison, PlannedArm, pair
from adalayers.errors import BadInput
from adalayers.states import Settings
from adalayers.study import Arm, Defaults, Design, Flag, Page, Setting, Study, Tuning, named_by

CONTROL = "layer mix"
MATCHED, PUBLISHED, AT_OWN_WIDTH = " matched", " as published", " at own width"
SELECTED, TOP = "up to the selected layer", "of as many top layers"
ELNOKRASHY = {"warmup": 0.0}
"""AdamW, decaying to 0 from the first step on; of `extra layers`, `concat`, `DWAtt`, the last layer and the average."""

ILSE: Settings = {"k": 256, "read_out": "mean"}
"""The published width of layers as a set and as a graph, and the read-out of one vector."""


def methods(setting: Setting) -> dict[str, tuple[str, Settings]]:
    """Return every method: name -> (the space that it is tuned over, what it is); the layer mix first."""
    texts, layers = not setting.shape.per_token, setting.layers
    mix: Settings = {"mix": "learned", **setting.published.values}
    thesis: Settings = {
        "optimiser": "adam",
        "schedule": "plateau",
        "positions": setting.setup.run.config["positions"],
    }
    # A linear read-out as papers have it: of the mean of a text's states, or of a word's.
    own: Settings = {"own_width": True, "read_out": "mean" if texts else "linear"}
    published: Settings = {**own, **ELNOKRASHY}
    vectors: Settings = {"hidden_vectors": 64} if texts else {}
    graph: Settings = {"fusion": "layer-graph", **ILSE}
    tokens_first: Settings = {"fusion": "tokens-first", "read_out": "mean"}
    read_out: Settings = {"own_width": True, "read_out": "first-token" if texts else "linear"}
    top: Settings = {"fusion": "scalar-mix", "mix": "last", **read_out}
    chosen: Settings = {"fusion": "variability", "base_layers": "selected", **read_out}
    as_many: Settings = {"fusion": "variability", "base_layers": "as-many-top", "read": "last", **read_out}
    adapters: Settings = {"base_model": "adapters", "base_lr": 3e-4}
    fine: Settings = {"base_model": "fine-tuned", "base_lr": 5e-5}
    houlsby: Settings = {**top, **adapters, "adapter_sharing": "none", "adapter_norms": True}
    return {
        CONTROL: ("mix", mix),
        f"{CONTROL}{PUBLISHED}": ("mix", {**mix, **thesis}),
        f"last layer{MATCHED}": ("frozen", {"mix": "last"}),
        f"last layer{PUBLISHED}": ("linear", {"fusion": "scalar-mix", "mix": "last", **published}),
        f"single layer{MATCHED}": ("single", {"mix": "single", "layer": layers[len(layers) // 2]}),
        f"uniform mix{MATCHED}": ("frozen", {"mix": "uniform"}),
        f"uniform mix{PUBLISHED}": ("linear", {"fusion": "scalar-mix", "mix": "uniform", **published}),
        f"scalar mix{MATCHED}": ("frozen", {"fusion": "scalar-mix"}),
        f"scalar mix{AT_OWN_WIDTH}": ("linear", {"fusion": "scalar-mix", **own}),
        f"concat{MATCHED}": ("frozen", {"fusion": "concat"}),
        f"concat{PUBLISHED}": ("linear", {"fusion": "concat", **published}),
        f"DWAtt{MATCHED}": ("frozen", {"fusion": "dwatt"}),
        f"DWAtt{PUBLISHED}": ("deep", {"fusion": "dwatt", **published}),
        f"extra layers{MATCHED}": ("frozen", {"fusion": "extra-layers"}),
        f"extra layers{PUBLISHED}": ("deep", {"fusion": "extra-layers", **published}),
        # Xie et al. train the layers up to the chosen one: that is among the methods that change the base model.
        f"variability{MATCHED}": ("frozen", {"fusion": "variability"}),
        f"variability{AT_OWN_WIDTH}": ("linear", {"fusion": "variability", **own}),
        f"routing{MATCHED}": ("frozen", {"fusion": "routing"}),
        f"routing{AT_OWN_WIDTH}": ("frozen", {"fusion": "routing", "own_width": True, **vectors}),
        f"head2toe{AT_OWN_WIDTH}": ("head2toe", {"fusion": "head2toe", "weight_decay": 0.0}),
        f"layer attention{MATCHED}": ("mix", {"fusion": "layer-attention"}),
        f"layer attention{AT_OWN_WIDTH}": ("linear", {"fusion": "layer-attention", **own}),
        f"depth convolution{MATCHED}": ("frozen", {"fusion": "depth-convolution"}),
        f"depth convolution{AT_OWN_WIDTH}": ("deep", {"fusion": "depth-convolution", **own}),
        f"late fusion{AT_OWN_WIDTH}": ("linear", {"fusion": "late-fusion"}),
        f"layer set{AT_OWN_WIDTH}": ("frozen", {"fusion": "layer-set", **ILSE}),
        f"layer graph, full{AT_OWN_WIDTH}": ("frozen", {**graph, "graph": "full"}),
        f"layer graph, Cayley{AT_OWN_WIDTH}": ("frozen", {**graph, "graph": "cayley"}),
        f"tokens first, gate{AT_OWN_WIDTH}": ("linear", {**tokens_first, "aggregate": "gate"}),
        f"tokens first, attention{AT_OWN_WIDTH}": ("frozen", {**tokens_first, "aggregate": "attention"}),
        f"adapters{PUBLISHED}": ("adapters", {**houlsby, "optimiser": "adam"}),
        **({"adapters, two classifiers": ("adapters", {**houlsby, "classifier_layers": 2})} if texts else {}),
        "adapters, one a layer": ("adapters", {**top, **adapters}),
        "adapters, one for three layers": ("adapters", {**top, **adapters, "adapter_sharing": "three"}),
        "fine-tuning": ("fine-tuned", {**top, **fine}),
        "fine-tuning, layer mix": ("fused", {**mix, **fine}),
        f"fine-tuning, {SELECTED}": ("fine-tuned", {**chosen, **fine}),
        f"fine-tuning, {TOP}": ("fine-tuned", {**as_many, **fine}),
        f"adapters, {SELECTED}": ("adapters", {**chosen, **adapters}),
        f"adapters, {TOP}": ("adapters", {**as_many, **adapters}),
    }


def chosen(setting: Setting) -> dict[str, tuple[str, Settings]]:
    """Return the methods that --methods names, the layer mix always."""
    every = methods(setting)
    named = {CONTROL, *named_by(setting.own.get("methods", ""), every, "method")}
    return {name: method for name, method in every.items() if name in named}


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the chosen methods as they are before a search tunes them, the layer mix first: the control."""
    published = setting.published
    if not setting.own_settings("mix_lr"):
        raise BadInput(f"wanted all methods, got --set fusion={setting.base.fusion}; leave it out")
    return [
        Arm(name, "changed" if "base_model" in overrides else "frozen", overrides)
        for name, (_, overrides) in chosen(setting).items()
    ], [
        "The layer mix is AdaLayers as its own search left it: what is compared is that mix, not the thesis's. The "
        f"search starts from the thesis's values for {published.source} ({published.words}) and tunes the rates.",
        "The search for the best single layer tries every layer first, at one rate, whatever `--trials` says.",
    ]


def tunings(setting: Setting) -> list[Tuning]:
    """Return the same, each to be tuned over the space of its kind; a single layer among all there are."""
    from search_spaces.methods import SPACES

    layers: list[Settings] = [{"layer": layer, "lr": setting.base.lr} for layer in setting.layers]
    return [
        Tuning(name, overrides, SPACES[kind], layers if kind == "single" else [])
        for name, (kind, overrides) in chosen(setting).items()
    ]


def comparisons(arms: Sequence[PlannedArm], factors: Sequence[str], control: str) -> list[Comparison]:
    """Return each method against the layer mix; then those up to the selected layer against as many top layers."""
    names = {alias: arm.name for arm in arms for alias in (arm.name, *arm.aliases)}
    # What searches of earlier runs found best stands behind the others, and gives way.
    names |= {method: arm.name for arm in reversed(arms) for method in arm.tunes}
    pairs = [(arm.name, control) for arm in arms]
    pairs += [(f"{method}, {SELECTED}", f"{method}, {TOP}") for method in ("fine-tuning", "adapters")]
    planned = [(names[arm], names[reference]) for arm, reference in pairs if {arm, reference} <= names.keys()]
    return [pair(arm, reference) for arm, reference in dict.fromkeys(planned) if arm != reference]


STUDY = Study(
    name="methods",
    about=__doc__,
    design=Design(arms=arms, comparisons=comparisons, tunings=tunings, tuned_only=True),
    page=Page(parts=("costs",)),
    defaults=Defaults(
        sizes={"trials": 6},
        smoke={"trials": 0, "seeds": 1, "train_examples": 48, "eval_examples": 32, "test_examples": 32},
    ),
    measures=("variability",),
    flags=(
        Flag(
            "methods",
            "which methods, next to the layer mix: names as of arms, with - for spaces, or how they begin, such as "
            "concat layer-graph fine-tuning (default: all)",
            default=lambda datasets: "",
            canonical=lambda names, data_dir: " ".join(sorted({*names.lower().split()})),
            several=True,
        ),
    ),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
