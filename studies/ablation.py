"""What does each component of the published method contribute? Leave one out, or put one fault of the release in.

Question    How much does the score change when one component of the published method is changed?
Scientific  one component at a time
Nuisance    lr, weight_decay, dropout: kept, or with --trials N tuned again for each component under an equal budget
Fixed       the thesis's method for the dataset (alpha, lambda, cutoff, mix_lr, positions); else defaults
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      every component x --seeds, unpruned; with --trials N also a search of N for each, its best x --seeds
Command     python studies/ablation.py --backbone minilm --dataset conll2003
Result      so far, MPNet on CoLA, MiniLM on whole CoNLL-2003 (docs/answers.md): untrained projections, the release's
            untrained uniform baseline and the last layer alone are worse, on CoNLL-2003 a linear head too; there the
            release's gelu after the mix is better, by 0.022 (open on CoLA). None yet on a base model of its size

The method:
    Hidden states of a frozen backbone pass through gelu, are projected and normalised, and are added up with learned
    weights p̃ = softmax(α p), cut at a cutoff; positions are added where the thesis does, and a head with attention
    reads the sum. Each arm changes one thing about it; the arms called released do what the published code does
    otherwise than the thesis (its baseline: a uniform mix, and projections not trained).
"""

from adalayers.command.main import main
from adalayers.states import Settings
from adalayers.study import Arm, Defaults, Design, Setting, Study, Tuning

WHOLE = "published"


def whole(setting: Setting) -> Settings:
    """Return the published method for the dataset, as the thesis writes it; lr and sizes are the study's own."""
    return {"mix": "learned", **setting.published.values, "positions": setting.setup.run.config["positions"]}


def components(setting: Setting) -> list[Arm]:
    """Return what is changed about the whole, one thing at a time; what would change nothing here is left out."""
    base, dropout = whole(setting), setting.base.dropout
    positions = "no positions" if base["positions"] else "with positions"
    changed: dict[str, tuple[str, Settings]] = {
        "no learned mix": ("equal weights", {"mix": "uniform"}),
        "alpha 1": ("α = 1", {"alpha": 1.0}),
        "no cutoff": ("", {"cutoff": 0.0}),
        "no entropy term": ("λ = 0", {"entropy_weight": 0.0}),
        "no normalisation": ("", {"normalise": False}),
        "no attention in the head": ("", {"read_out": "linear"}),
        "projections not trained": ("random projections", {"train_projections": False}),
        positions: ("", {"positions": not base["positions"]}),
        "last layer alone": ("last layer", {"mix": "last"}),
        "embeddings mixed too": ("input embeddings as one more layer", {"hidden_states": "with-embeddings"}),
        "cutoff only after training": ("", {"cutoff_when": "after-training"}),
        "released: hidden states": ("", {"hidden_states": "as-released"}),
        "released: lambda divided": (
            "released: λ over the number of layers",
            {"entropy_scale": "as-released"},
        ),
        "released: gelu after mixing": ("released: second gelu after the mix", {"gelu_after_mix": True}),
        "released: dropout of projections": (
            "released: dropout on projections",
            {"projection_dropout": dropout},
        ),
        "released: baseline not trained": (
            "released: equal weights of random projections",
            {"mix": "uniform", "train_projections": False},
        ),
    }
    parts = [Arm(name, "component", {**base, **what}, words=words) for name, (words, what) in changed.items()]
    return [arm for arm in parts if arm.overrides != base]


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the whole method, control first, then each changed component."""
    published = setting.published
    return [Arm(WHOLE, "control", whole(setting), words="thesis's settings"), *components(setting)], [
        f"The thesis's settings for {published.source}: {published.words}, "
        f"{'' if whole(setting)['positions'] else 'no '}positions; rates and sizes are this study's."
    ]


def tunings(setting: Setting) -> list[Tuning]:
    """Return the same again, each to be tuned by itself."""
    return [Tuning(arm.name, arm.overrides) for arm in arms(setting)[0]]


STUDY = Study(
    name="ablation",
    about=__doc__,
    design=Design(arms=arms, tunings=tunings),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
