"""Is what the mix gains its layers, or its parameters? One layer, as wide as the mix.

Question    Does a single layer reach the mix of all layers once it is projected as wide, or as often, as the mix is?
Scientific  layer and k of a single layer; how many projections of it are mixed
Nuisance    lr, in a search that --trials adds; none otherwise
Fixed       all else at the script's defaults or --set; --set layer is the best single one by studies/single_layer.py
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      the mix; a layer and the last at three widths; the layer projected often; x --seeds, unpruned
Command     python studies/width.py --backbone minilm --dataset conll2003 --set layer=3
Result      none yet

The arms:
    The mix projects every layer of a frozen backbone to k dimensions and adds them up with learned weights. A single
    layer has one projection, of the same width or wider. A layer with several projections has as many as the mix,
    added up with learned weights as there: its parameters are the mix's, and all that it reads is one layer.
"""

from collections.abc import Sequence

from adalayers.command.main import main
from adalayers.comparisons import Comparison, PlannedArm, pair
from adalayers.study import Arm, Defaults, Design, Factor, Page, Setting, Study


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the learned mix, control first, then a layer at several widths and projected often, and the last."""
    from search_spaces.width import K

    numbers = setting.layers
    chosen = setting.fixed.get("layer", numbers[(len(numbers) - 1) // 2])
    widths = dict.fromkeys([*K, setting.shape.width])
    wide = [k for k in setting.levels("k", [*widths]) if k % setting.base.heads == 0]
    last = [Arm(f"last k={k}", "last", {"mix": "last", "k": k}) for k in wide if chosen != numbers[-1]]
    often = {"fusion": "wide-layer", "layer": chosen, "projections": len(numbers)}
    notes = f"No layer was named (`--set layer`): {chosen}, in the middle, is read."
    return [
        Arm("mix", "mix", {"mix": "learned"}),
        *(Arm(f"layer={chosen} k={k}", "single", {"mix": "single", "layer": chosen, "k": k}) for k in wide),
        Arm(f"layer={chosen} projections={len(numbers)}", "component", often),
        *last,
    ], [] if "layer" in setting.fixed else [notes]


def comparisons(arms: Sequence[PlannedArm], factors: Sequence[str], control: str) -> list[Comparison]:
    """Return each arm, and a search's best, against the mix; then each that is wider against its layer as it is."""
    alone = [arm for arm in arms if arm.role in ("single", "component", "last")]
    first = {arm.role: arm.name for arm in reversed(alone)}
    first["component"] = first.get("single", "")
    wider = [(arm.name, first[arm.role]) for arm in alone]
    return [
        *(pair(arm.name, control) for arm in [*alone, *(arm for arm in arms if arm.role == "best")]),
        *(pair(*sides, primary=False) for sides in wider if sides[1] not in ("", sides[0])),
    ]


STUDY = Study(
    name="width",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(
            Factor("layer", "layer", "the only hidden state that is read", scale="choice"),
            Factor("k", "k", "width of the projections", scale="log"),
        ),
        comparisons=comparisons,
    ),
    page=Page(parts=("costs",), headline=("component", "single")),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
