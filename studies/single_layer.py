"""How good is each layer alone, against their mix, with its projection trained or not? (Thesis figures 10, 14, 18.)

Question    How good is each layer alone, with its projection trained and, as in the released code, untrained, against
            the learned mix of all layers?
Scientific  layer, train_projections
Nuisance    lr, in a search that --trials adds; none otherwise
Fixed       all else at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      the mix, the uniform mix and each layer, trained and untrained, x --seeds, unpruned; a search with --trials
Command     python studies/single_layer.py --backbone minilm --dataset conll2003
Result      so far (docs/answers.md): the last layer alone is worse than the mix, by 0.238 Matthews with MPNet on CoLA,
            by 0.242 in the thesis's regime; no layer is shown to be better. With MiniLM on whole
            CoNLL-2003 the mix is better than every layer, by 0.039 F1 or more; untrained projections cost 0.191 with
            MPNet on CoLA, at own rates

The arms:
    Every arm is the same network: hidden states of a frozen backbone are projected, mixed with weights, and read by a
    head. The mix learns its weights over all layers; a single layer has all the weight; an untrained arm leaves the
    projections at their random start, as the released code did to its baselines.
"""

import functools
from collections.abc import Sequence
from typing import Any

from adalayers.command.main import main
from adalayers.comparisons import At, Change, Comparison, PlannedArm, pair
from adalayers.errors import BadInput
from adalayers.study import UNIFORM, Arm, Defaults, Design, Factor, Page, Setting, Study

UNTRAINED = " untrained"


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the learned mix, control first, then each layer alone: its projection trained, and at its random start."""
    there = setting.layers
    if missing := {*(layers := setting.levels("layer", there))} - {*there}:
        raise BadInput(f"wanted --set layer to be one of {there}, got {missing.pop()}; change layer")
    alone = [Arm(f"layer={n}", "single", {"mix": "single", "layer": n}) for n in layers]
    trained = [Arm("mix", "mix", {"mix": "learned"}), UNIFORM, *alone]
    frozen = [
        Arm(f"{arm.name}{UNTRAINED}", "untrained", {**arm.overrides, "train_projections": False})
        for arm in trained
    ]
    return [*trained, *frozen], []


def comparisons(arms: Sequence[PlannedArm], factors: Sequence[str], control: str) -> list[Comparison]:
    """Return uniform, a search's best and each layer against the mix; then untrained against trained, all and each."""
    untrained = {_read(arm): arm.name for arm in arms if arm.role == "untrained"}
    alone = [arm for arm in arms if arm.role == "single"]
    both = [arm for arm in alone if _read(arm) in untrained]
    by_layer = {arm.config["layer"]: {arm.name: -1.0, untrained[_read(arm)]: 1.0} for arm in both}
    effect = functools.partial(Comparison, changes=(Change("train_projections", False, True),))
    mean = {name: sign / len(both) for weights in by_layer.values() for name, sign in weights.items()}
    mix = [untrained[_read(arm)] for arm in arms if arm.name == control and _read(arm) in untrained]
    return [
        *(pair(arm.name, control) for arm in arms if arm.role in ("uniform", "best")),
        *(pair(arm.name, control) for arm in alone),
        *([effect(weights=mean)] if both else []),
        *(pair(name, control) for name in mix),
        *(effect(at=At("layer", n), weights=own, primary=False) for n, own in by_layer.items()),
    ]


def _read(arm: PlannedArm) -> tuple[Any, Any]:
    """Return which states an arm reads."""
    return arm.config["mix"], arm.config.get("layer")


STUDY = Study(
    name="single_layer",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(
            Factor("layer", "layer", "the only hidden state that is read"),
            Factor("train_projections", "projections trained", scale="choice"),
        ),
        comparisons=comparisons,
    ),
    page=Page(parts=("single_layers",), headline=("single", "uniform")),
    defaults=Defaults(sizes={"trials": 0}),
    measures=("variability",),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
