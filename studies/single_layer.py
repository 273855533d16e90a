"""How good is each layer alone, against their mix, with its projection trained or not? (Thesis figures 10, 14, 18.)

Question    How good is each layer alone, with its projection trained and as released (untrained), against the mix?
Scientific  layer, train_projections
Nuisance    lr, in a search that --trials adds; none otherwise
Fixed       all else at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      one-factor design: the mix and two arms per layer x --seeds, unpruned; no search unless --trials is given
Command     python studies/single_layer.py --backbone minilm --dataset conll2003
Result      so far, MiniLM (docs/answers.md): untrained projections cost single layers 0.154 F1 on
            CoNLL-2003 and 0.111 Matthews on CoLA, on average; with trained ones the best layer is not shown
            to differ from the mix. None yet on a model of the thesis's size
"""

import functools
import sys
from collections.abc import Sequence

import reports
from adalayers.command.main import main
from adalayers.comparisons import Comparison, PlannedArm
from adalayers.study import Arm, Factor, Setting, Space, Study

UNTRAINED = " untrained"


def space() -> Space:
    """Return what a search would go over."""
    from search_spaces.single_layer import GRID, NUISANCE, SCIENTIFIC

    return Space(SCIENTIFIC, NUISANCE, GRID)


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the learned mix, control first, then each layer alone: its projection trained, and at its random start."""
    layers = [state.number for state in setting.base.states(setting.shape)]
    alone = [Arm(f"layer={n}", "single", {"mix": "single", "layer": n}) for n in layers]
    mixes = [Arm("mix", "mix", {"mix": "learned"}), Arm("uniform", "uniform", {"mix": "uniform"})]
    trained = [*mixes, *alone]
    frozen = [
        Arm(f"{arm.name}{UNTRAINED}", "untrained", {**arm.overrides, "train_projections": False})
        for arm in trained
    ]
    return [*trained, *frozen], []


def comparisons(arms: Sequence[PlannedArm], factors: Sequence[str], control: str) -> list[Comparison]:
    """Return each layer, trained, against the mix; then untrained against trained, over all layers and for each."""
    alone = [arm.name for arm in arms if arm.group == "single"]
    names = {arm.name for arm in arms}
    against = [
        Comparison(arm=name, control=control, weights={name: 1.0, control: -1.0})
        for name in ["uniform", *alone]
        if name in names
    ]
    pairs = {name: f"{name}{UNTRAINED}" for name in alone if f"{name}{UNTRAINED}" in names}
    effect = functools.partial(Comparison, arm="train_projections=False", control="train_projections=True")
    weights = {
        name: sign / len(pairs)
        for pair in pairs.items()
        for name, sign in zip(pair, (-1.0, 1.0), strict=True)
    }
    averaged = [effect(kind="factor", weights=weights)] if pairs else []
    each = [
        effect(kind="simple", at=name, weights={name: -1.0, other: 1.0}, primary=False)
        for name, other in pairs.items()
    ]
    mix = f"{control}{UNTRAINED}"
    frozen = [Comparison(arm=mix, control=control, weights={mix: 1.0, control: -1.0})] if mix in names else []
    return [*against, *averaged, *frozen, *each]


STUDY = Study(
    name="single_layer",
    question=(
        "How good is each layer alone, with its projection trained and, as in the released code, untrained, against "
        "the learned mix of all layers?"
    ),
    space=space,
    arms=arms,
    factors=(
        Factor("layer", "layer", "the only hidden state that is read"),
        Factor("train_projections", "projections trained", scale="choice"),
    ),
    method={
        "The arms": (
            "Every arm is the same network: hidden states of a frozen backbone are projected, mixed with weights, and "
            "read by a head. The mix learns its weights over all layers; a single layer has all the weight; "
            "an untrained arm leaves the projections at their random start, as the released code did to its baselines."
        ),
    },
    comparisons=comparisons,
    parts=("single_layers",),
    defaults={"trials": 0},
    measures=("variability",),
)

if __name__ == "__main__":
    sys.exit(main(STUDY, reports))
