"""Which settings are good, and which hyperparameters matter? A joint search.

Question    Which settings of the method are good, and on which hyperparameters does the score depend?
Scientific  alpha, entropy_weight (lambda), k, cutoff, dropout, lr, weight_decay
Nuisance    none: all are searched together
Fixed       mix_lr at 1e-3, for it is one axis with alpha; all else at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      search: --trials configurations, most of them pruned; confirmation: its best and four known ones x --seeds.
            Which hyperparameters matter takes 95 that are not pruned: --scheduler fifo
Command     python studies/search.py --backbone roberta-large --dataset conll2003
Result      so far, MiniLM on 2,000 sentences of CoNLL-2003, 40 trials (docs/answers.md): the best of the search beats
            the defaults by 0.019 F1. Which hyperparameters gain is open, and so is a base model of the thesis's size

The search:
    Hidden states of a frozen backbone are projected to k dimensions and added up with the weights p̃ = softmax(α p),
    p learned; λ times the entropy of p̃ is added to the loss, weights at or below the cutoff become 0. All of it is
    searched together, on one seed; the best is then confirmed on seeds of its own.
"""

from adalayers.command.main import main
from adalayers.states import Settings
from adalayers.study import FACTORS, LAST, UNIFORM, Arm, Defaults, Design, Factor, Page, Setting, Study


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return what the search's best has to beat: the defaults, control first, the published mix, and fixed mixes."""
    published = setting.published
    return [
        Arm("defaults", "control", {"mix": "learned"}),
        Arm("published-mix", "published", {"mix": "learned", **published.values}, words="thesis's mix"),
        UNIFORM,
        LAST,
    ], [
        f"The thesis's mix has its values for {published.source}: {published.words}, whatever this study's lr."
    ]


def first(setting: Setting) -> list[Settings]:
    """Return the defaults, with the published alpha, lambda and cutoff and without."""
    plain = setting.own_settings("alpha", "entropy_weight", "k", "cutoff", "dropout", "lr", "weight_decay")
    return [plain, {**plain, **setting.published.values}]


STUDY = Study(
    name="search",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(
            FACTORS["alpha"],
            FACTORS["entropy_weight"],
            FACTORS["k"],
            Factor("cutoff", "cutoff", "mix weights at or below it become 0", scale="choice"),
            FACTORS["dropout"],
            Factor("lr", "learning rate", scale="log", changes_speed=True),
            Factor("weight_decay", "weight decay", scale="log"),
        ),
        first=first,
    ),
    page=Page(parts=("importances",)),
    defaults=Defaults(sizes={"trials": 100}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
