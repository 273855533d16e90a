"""What does each component of the published method contribute? Leave one out, or put one fault of the release in.

Question    How much does the score change when one component of the published method is changed?
Scientific  one component at a time
Nuisance    lr, weight_decay, dropout: kept, or with --trials N tuned again for each component under an equal budget
Fixed       the thesis's method for the dataset (alpha, lambda, cutoff, mix_lr, positions); else defaults
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      every component x --seeds, unpruned; with --trials N also a search of N for each, its best x --seeds
Command     python studies/ablation.py --backbone minilm --dataset conll2003
Result      so far, MiniLM on whole CoLA and CoNLL-2003 (docs/answers.md): untrained projections, the release's
            untrained uniform baseline and the last layer alone are worse, on CoNLL-2003 a linear head too; there the
            release's gelu after the mix is better, by 0.022 (open on CoLA). None yet on a base model of its size

The method:
    Hidden states of a frozen backbone pass through gelu, are projected and normalised, and are added up with learned
    weights p̃ = softmax(α p), cut at a cutoff; positions are added where the thesis does, and a head with attention
    reads the sum. Each arm changes one thing about it; the arms called released do what the published code does
    otherwise than the thesis (its baseline: a uniform mix, and projections not trained).
"""

from collections.abc import Sequence

from adalayers.command.main import main
from adalayers.comparisons import Comparison, PlannedArm, pair
from adalayers.presets import setups
from adalayers.states import Settings
from adalayers.study import Arm, Defaults, Design, Setting, Study, Tuning

WHOLE = "published"
WORDS = {
    "no learned mix": "equal weights",
    "alpha 1": "α = 1",
    "no entropy term": "λ = 0",
    "projections not trained": "random projections",
    "last layer alone": "last layer",
    "embeddings mixed too": "input embeddings as one more layer",
    "released: lambda divided": "released: λ over the number of layers",
    "released: gelu after mixing": "released: second gelu after the mix",
    "released: dropout of projections": "released: dropout on projections",
    "released: baseline not trained": "released: equal weights of random projections",
}
"""What pages call arms whose names are older than these words."""


def whole(setting: Setting) -> Settings:
    """Return the published method for the dataset, as the thesis writes it; lr and sizes are the study's own."""
    setup = setups(setting.dataset, setting.shape.head)[0]
    return {"mix": "learned", **setting.published.values, "positions": setup.run.config["positions"]}


def components(setting: Setting) -> dict[str, Settings]:
    """Return what is changed about the whole, one thing at a time; what would change nothing here is left out."""
    base = whole(setting)
    changed: dict[str, Settings] = {
        "no learned mix": {"mix": "uniform"},
        "alpha 1": {"alpha": 1.0},
        "no cutoff": {"cutoff": 0.0},
        "no entropy term": {"entropy_weight": 0.0},
        "no normalisation": {"normalise": False},
        "no attention in the head": {"read_out": "linear"},
        "projections not trained": {"train_projections": False},
        "no positions" if base["positions"] else "with positions": {"positions": not base["positions"]},
        "last layer alone": {"mix": "last"},
        "embeddings mixed too": {"hidden_states": "with-embeddings"},
        "cutoff only after training": {"cutoff_when": "after-training"},
        "released: hidden states": {"hidden_states": "as-released"},
        "released: lambda divided": {"entropy_scale": "as-released"},
        "released: gelu after mixing": {"gelu_after_mix": True},
        "released: dropout of projections": {"projection_dropout": setting.base.dropout},
        "released: baseline not trained": {"mix": "uniform", "train_projections": False},
    }
    parts = {name: {**base, **what} for name, what in changed.items()}
    return {name: overrides for name, overrides in parts.items() if overrides != base}


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the whole method, control first, then each changed component."""
    published, parts = setting.published, components(setting)
    return [
        Arm(WHOLE, "control", whole(setting), words="thesis's settings"),
        *(Arm(name, "component", part, words=WORDS.get(name, "")) for name, part in parts.items()),
    ], [
        f"The thesis's settings for {published.source}: {published.words}, "
        f"{'' if whole(setting)['positions'] else 'no '}positions; rates and sizes are this study's."
    ]


def tunings(setting: Setting) -> list[Tuning]:
    """Return the same again, each to be tuned by itself."""
    return [Tuning(arm.name, arm.overrides) for arm in arms(setting)[0]]


def comparisons(arms: Sequence[PlannedArm], factors: Sequence[str], control: str) -> list[Comparison]:
    """Return each component against the whole, with hyperparameters kept, and where both were tuned."""
    components = [arm.name for arm in arms if arm.role == "component"]
    # What searches of earlier runs found best stands behind the others, and gives way.
    tuned = {component: arm.name for arm in reversed(arms) for component in arm.tunes}
    pairs = [(name, control) for name in components if control in {arm.name for arm in arms}]
    if control in tuned:
        pairs += [(tuned[name], tuned[control]) for name in components if name in tuned]
    return [pair(arm, reference) for arm, reference in dict.fromkeys(pairs) if arm != reference]


STUDY = Study(
    name="ablation",
    about=__doc__,
    design=Design(arms=arms, comparisons=comparisons, tunings=tunings),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
