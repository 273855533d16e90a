"""Is what the mix gains its layers, or its parameters? One layer, as wide as the mix.

Question    Does a single layer reach the mix of all layers once it is projected as wide, or as often, as the mix is?
Scientific  layer and k of a single layer; how many projections of it are mixed
Nuisance    lr, in a search that --trials adds; none otherwise
Fixed       all else at the script's defaults or --set; --set layer is the best single one by studies/single_layer.py
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      the mix; a layer and the last at three widths; the layer projected often; x --seeds, unpruned
Command     python studies/width.py --backbone minilm --dataset conll2003 --set layer=3
Result      so far (docs/answers.md): the last layer, wider too, is worse than the mix, by 0.231 to 0.245 Matthews with
            MPNet on CoLA and 0.083 to 0.094 F1 with MiniLM on CoNLL-2003. The best layer on validation: MPNet's is
            open at each width, 12 projections of it are worse by 0.033, on these test examples; MiniLM's is worse by
            0.039 to 0.027 at k = 64 to 384, open with six projections (-0.007). None yet at the thesis's size

The arms:
    The mix projects every layer of a frozen backbone to k dimensions and adds them up with learned weights. A single
    layer has one projection, of the same width or wider. A layer with several projections has as many as the mix,
    added up with learned weights as there: its parameters are the mix's, and all that it reads is one layer.
"""

from adalayers.command.main import main
from adalayers.comparisons import Role
from adalayers.states import Settings
from adalayers.study import Arm, Defaults, Design, Factor, Page, Setting, Study


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the learned mix, control first, then a layer at several widths and projected often, and the last.

    Each is compared with the mix, and each that is wider with its layer as it is.
    """
    from search_spaces.width import K

    numbers = setting.layers
    chosen = setting.fixed.get("layer", numbers[(len(numbers) - 1) // 2])
    widths = dict.fromkeys([*K, setting.shape.width])
    wide = [k for k in setting.levels("k", [*widths]) if k % setting.base.heads == 0]

    def as_wide(name: str, role: Role, what: Settings) -> list[Arm]:
        as_it_is = tuple(f"{name} k={k}" for k in wide[:1])
        return [Arm(f"{name} k={k}", role, {**what, "k": k}, secondary=as_it_is) for k in wide]

    layer = as_wide(f"layer={chosen}", "single", {"mix": "single", "layer": chosen})
    often = {"fusion": "wide-layer", "layer": chosen, "projections": len(numbers)}
    once = tuple(arm.name for arm in layer[:1])
    notes = []
    if "layer" not in setting.fixed:
        notes.append(f"No layer was named (`--set layer`): {chosen}, in the middle, is read.")
    if alone := [name for name in ("entropy_weight", "cutoff") if setting.fixed.get(name)]:
        notes.append(f"The mix alone has {' and '.join(alone)}, the layer projected often has none.")
    return [
        Arm("mix", "mix", {"mix": "learned"}),
        *layer,
        Arm(f"layer={chosen} projections={len(numbers)}", "component", often, secondary=once),
        *(as_wide("last", "last", {"mix": "last"}) if chosen != numbers[-1] else []),
    ], notes


STUDY = Study(
    name="width",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(
            Factor("layer", "layer", "the only hidden state that is read", scale="choice"),
            Factor("k", "k", "width of the projections", scale="log"),
        ),
    ),
    page=Page(parts=("costs",), headline=("component", "single")),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
