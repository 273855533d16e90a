"""Does it pay to let the weights of the layers depend on the token or the text? (After arXiv 2603.15031.)

Question    Does it pay to let the weights of the layers depend on the token or the text, at an equal number of
            parameters?
Scientific  keys: what the weights depend on
Nuisance    lr and mix_lr, in a search that --trials adds; none otherwise
Fixed       all else at the script's defaults or --set; projections, head, number of parameters and starts are alike
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      three arms, the uniform mix and the thesis's mix x --seeds, unpruned; no search unless --trials is given
Command     python studies/input_dependence.py --backbone minilm --dataset cola conll2003
Result      so far, MiniLM (docs/results/README.md): on CoNLL-2003 weights by text are better than static ones by
            0.015, on these examples; weights by token are not shown to be

The mixes:
    All project the hidden states of a frozen base model, add them up with weights that sum to 1, and read the sum by
    the same head. A learned query w, 0 at first, gives each layer a score w · key; the softmax of the scores is the
    weights. The key of a layer is, by token, the token's own normalised state there; by text, the mean over its text;
    in the shared mix, a random vector that is drawn once: then all tokens share the weights, as in the thesis's mix.
    All start as equal weights.
"""

from collections.abc import Sequence

from adalayers.command.main import main
from adalayers.comparisons import Comparison, PlannedArm, pair, planned_comparisons
from adalayers.study import Arm, Defaults, Design, Factor, Page, Setting, Study

MIX = "layer-mix"
WORDS = {"static": "shared mix", "texts": "mix by text", "tokens": "mix by token"}
"""Keys -> what pages call the arm."""


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return a mix by what its weights depend on, nothing first: the control; then the uniform and the thesis's mix."""
    from search_spaces.input_dependence import KEYS

    published = setting.published
    k, layers = setting.base.width(setting.shape), len(setting.layers)
    return [
        *(
            Arm(f"keys={keys}", "core", {"keys": keys}, words=WORDS[keys])
            for keys in setting.levels("keys", KEYS)
        ),
        Arm("uniform", "uniform", {"fusion": MIX, "mix": "uniform"}),
        Arm(MIX, "mix", {"fusion": MIX, "mix": "learned", **published.values}, words="thesis's mix"),
    ], [
        f"The shared mix and those by token and text train equally many parameters, {k} (w) more than equal weights; "
        f"the thesis's mix {layers} (p).",
        f"The thesis's mix has its values for {published.source}: {published.words}.",
    ]


def comparisons(arms: Sequence[PlannedArm], factors: Sequence[str], control: str) -> list[Comparison]:
    """Return what the question plans, each kind of keys against static ones; then both other mixes against these."""
    core = [arm for arm in arms if arm.role == "core"]
    others = [arm.name for arm in arms if arm.role != "core"]
    beside = [pair(name, control, primary=False) for name in others]
    return planned_comparisons(core, factors, control) + beside


STUDY = Study(
    name="input_dependence",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(Factor("keys", "keys", "what the weights of the layers depend on", scale="choice"),),
        comparisons=comparisons,
    ),
    page=Page(title="Layer weights by token or text"),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
