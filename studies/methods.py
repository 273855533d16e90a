"""Which method makes the most of a pretrained model, and at what price? The rivals, each tuned with an equal budget.

Question    How good is each method of fusing hidden states, or of tuning the base model, and what does it cost?
Scientific  the method: fusions as published (own width and read-out) and matched (projected to k, the same head), and
            methods that change the base model
Nuisance    the method's learning rate, and what it alone has (mix_lr; layer; fraction and lasso of Head2Toe)
Fixed       all else at the script's defaults or --set; warm-up and linear decay where the base model is tuned
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      a search of --trials for each method; then each as its search found it best x --seeds, unpruned
Command     python studies/methods.py --backbone minilm --dataset conll2003
Result      so far, MiniLM on CoNLL-2003 (2,000 examples, 5 epochs, 5 seeds; docs/results/methods/minilm-conll2003):
            fine-tuning beats the layer mix by 0.130 [0.100, 0.159] F1; no frozen fusion is shown to; the last layer and
            extra layers lose 0.07 to 0.16. CoLA (1,500 examples, 3 seeds) decides nothing: all are near 0.
            None yet on a base model of the thesis's size
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import reports
from adalayers.command.main import main
from adalayers.comparisons import Comparison, PlannedArm, pair
from adalayers.errors import BadInput
from adalayers.presets import logit_travel
from adalayers.study import Arm, Defaults, Design, Page, Setting, Space, Study, Tuning

CONTROL = "layer mix"
MATCHED, PUBLISHED, OWN = " matched", " as published", " at own width"
SELECTED, TOP = "up to the selected layer", "of as many top layers"


def spaces() -> dict[str, Space]:
    """Return what is tuned instead, by the name that `methods` gives it."""
    from search_spaces import methods as of

    return {
        "adapters": Space({}, of.ADAPTERS, of.ADAPTERS_GRID),
        "fine-tuned": Space({}, of.FINE_TUNED, of.FINE_TUNED_GRID),
        "fused": Space({}, of.FUSED_AND_FINE_TUNED, of.GRID),
        "head2toe": Space({}, of.HEAD2TOE, of.GRID),
        "mix": Space({}, of.MIX, of.GRID),
        "single": Space({}, of.SINGLE, of.GRID),
    }


def fusions(setting: Setting) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the methods that leave the base model frozen: name -> what it is, and the space that it is tuned over."""
    own = {"own_width": True, "read_out": "linear"}
    found: dict[str, tuple[dict[str, Any], str]] = {
        CONTROL: ({"mix": "learned", **setting.published.values}, "mix"),
        f"last layer{MATCHED}": ({"mix": "last"}, ""),
        f"last layer{PUBLISHED}": ({"fusion": "scalar-mix", "mix": "last", **own}, ""),
        f"single layer{MATCHED}": ({"mix": "single", "layer": _middle(setting)}, "single"),
        f"uniform mix{MATCHED}": ({"mix": "uniform"}, ""),
        f"uniform mix{PUBLISHED}": ({"fusion": "scalar-mix", "mix": "uniform", **own}, ""),
    }
    for name, fusion in (
        ("scalar mix", "scalar-mix"),
        ("concat", "concat"),
        ("DWAtt", "dwatt"),
        ("extra layers", "extra-layers"),
    ):
        found[f"{name}{MATCHED}"] = ({"fusion": fusion}, "")
        found[f"{name}{PUBLISHED}"] = ({"fusion": fusion, **own}, "")
    # Xie et al. train the layers up to the chosen one: that is among the methods that change the base model.
    found[f"variability{MATCHED}"] = ({"fusion": "variability"}, "")
    found[f"variability{OWN}"] = ({"fusion": "variability", **own}, "")
    found[f"routing{MATCHED}"] = ({"fusion": "routing"}, "")
    hidden = {"hidden_vectors": 64} if setting.shape.head == "sequence" else {}
    found[f"routing{PUBLISHED}"] = ({"fusion": "routing", "own_width": True, **hidden}, "")
    found[f"head2toe{PUBLISHED}"] = ({"fusion": "head2toe", "weight_decay": 0.0}, "head2toe")
    return found


def tuned(setting: Setting) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the methods that change the base model, likewise; each trains a copy of it."""
    read_out = "first-token" if setting.shape.head == "sequence" else "linear"
    decay = {"schedule": "linear", "warmup": 0.1, "optimiser": "adamw"}
    top = {"fusion": "scalar-mix", "mix": "last", "own_width": True, "read_out": read_out, **decay}
    adapters = {**top, "base_model": "adapters", "lr": 3e-4}
    fine = {**top, "base_model": "fine-tuned", "lr": 5e-5}
    two = {"adapter_sharing": "none", "adapter_norms": True}
    if setting.shape.head == "sequence":
        two["classifier_layers"] = 2
    chosen = {"fusion": "variability", "own_width": True, "read_out": read_out, **decay}
    select = {"base_layers": "selected", **chosen}
    as_many = {"base_layers": "as-many-top", "read": "last", **chosen}
    return {
        "adapters, one a layer": (adapters, "adapters"),
        "adapters, two a layer": ({**adapters, **two}, "adapters"),
        "adapters, one for three layers": ({**adapters, "adapter_sharing": "three"}, "adapters"),
        "fine-tuning": (fine, "fine-tuned"),
        "fine-tuning, layer mix": (
            {
                "mix": "learned",
                **setting.published.values,
                **decay,
                "base_model": "fine-tuned",
                "base_lr": 5e-5,
            },
            "fused",
        ),
        f"fine-tuning, {SELECTED}": ({**select, "base_model": "fine-tuned", "lr": 5e-5}, "fine-tuned"),
        f"fine-tuning, {TOP}": ({**as_many, "base_model": "fine-tuned", "lr": 5e-5}, "fine-tuned"),
        f"adapters, {SELECTED}": ({**select, "base_model": "adapters", "lr": 3e-4}, "adapters"),
        f"adapters, {TOP}": ({**as_many, "base_model": "adapters", "lr": 3e-4}, "adapters"),
    }


def _middle(setting: Setting) -> int:
    layers = [state.number for state in setting.base.states(setting.shape)]
    return layers[len(layers) // 2]


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return every method as it is before a search tunes it, the layer mix first: the control."""
    frozen = [Arm(name, "frozen", overrides) for name, (overrides, _) in fusions(setting).items()]
    changed = [Arm(name, "changed", overrides) for name, (overrides, _) in tuned(setting).items()]
    published, rates = setting.published, setting.own_settings("mix_lr", "batch_size")
    if "mix_lr" not in rates:
        raise BadInput(f"wanted all methods, got --set fusion={setting.base.fusion}; leave it out")
    travel = logit_travel(published.source, **rates, train_examples=setting.train_examples)
    return [*frozen, *changed], [
        f"`{CONTROL}` is AdaLayers with the thesis's values for {published.source} ({published.words}). "
        f"Untuned, at mix_lr {rates['mix_lr']:g}, a logit of its mix can travel {travel:.3g} times as far in an epoch "
        "as in the thesis's runs; its search tunes mix_lr, and the details say what it chose."
    ]


def tunings(setting: Setting) -> list[Tuning]:
    """Return the same, each to be tuned over the space of its kind."""
    own = spaces()
    every = {**fusions(setting), **tuned(setting)}
    return [Tuning(name, overrides, own.get(kind)) for name, (overrides, kind) in every.items()]


def comparisons(arms: Sequence[PlannedArm], factors: Sequence[str], control: str) -> list[Comparison]:
    """Return each method against the layer mix; then those up to the selected layer against as many top layers."""
    names: Mapping[str, str] = {alias: arm.name for arm in arms for alias in (arm.name, *arm.aliases)}
    pairs = [(arm.name, control) for arm in arms] if control in names else []
    for method in ("fine-tuning", "adapters"):
        pairs.append((f"{method}, {SELECTED}", f"{method}, {TOP}"))
    planned = [(names[arm], names[reference]) for arm, reference in pairs if {arm, reference} <= names.keys()]
    return [pair(arm, reference) for arm, reference in dict.fromkeys(planned) if arm != reference]


STUDY = Study(
    name="methods",
    question=(
        "How good is each method of fusing hidden states, or of tuning the base model, and what does it cost to train "
        "and to use?"
    ),
    design=Design(arms=arms, comparisons=comparisons, tunings=tunings, tuned_only=True),
    page=Page(
        parts=("methods",),
        method={
            "The methods": (
                "Fusions read the hidden states of a frozen base model. Those as published do so at the base model's "
                "own width, with a read-out of their own or a linear one; of those that are matched, hidden states "
                "are projected to k and read by the same head as AdaLayers' mix. Adapters and fine-tuning train a "
                "copy of the base model, which then serves this task alone."
            ),
        },
    ),
    defaults=Defaults(
        sizes={"trials": 6}, smoke={"trials": 0, "seeds": 1, "train_examples": 48, "eval_examples": 32}
    ),
    measures=("variability",),
)

if __name__ == "__main__":
    sys.exit(main(STUDY, reports))
