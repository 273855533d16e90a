"""How much do alpha and lambda matter, for quality, convergence speed and the final mix? (Open question 2.)

Question    How large is the influence of alpha, and of the entropy weight lambda, on quality, on convergence speed
            and on the final mix weights?
Scientific  alpha, entropy_weight (lambda)
Nuisance    lr
Fixed       mix_lr at 1e-3, for it is one axis with alpha; all else at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      search: --trials configurations, pruned; confirmation: every arm x --seeds, unpruned
Command     python studies/alpha_lambda.py --backbone roberta-large --dataset cola
Result      so far (docs/answers.md): no alpha and no lambda is shown to beat alpha 1 without lambda, with MPNet or
            MiniLM, in the thesis's regime neither; with MiniLM on CoLA a large alpha loses at the larger rate, on these
            test examples. On whole CoNLL-2003 alpha 8, 64 and equal weights make no difference larger than 0.01 F1,
            and the last layer alone is worse by 0.093. None yet at the thesis's size

The model:
    Hidden states of a frozen backbone are projected, and the layer mix adds them up with the weights p̃ = softmax(α
    p), p learned. The loss is cross-entropy plus λ times the entropy of p̃.

One axis:
    Under Adam a step moves a logit of the mix by about α × `mix_lr`: what is found about α holds for that product.
"""

from adalayers.command.main import main
from adalayers.presets import logit_travel
from adalayers.states import Settings
from adalayers.study import FACTORS, LAST, UNIFORM, Arm, Design, Page, Setting, Study, crossed

PUBLISHED, AT_ITS_TRAVEL = "published-mix", "published-mix at its travel"
TWIN = 64.0
"""The alpha whose trial is run again with alpha 1 and that many times the rate of p: the same, if both are one axis."""


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the factorial core, control first; the published mix at its own rate of p and at one that makes its
    logits travel as far as in the published run; the uniform mix, the last layer, and the twin.
    """
    from search_spaces.alpha_lambda import LEVELS

    mix_lr = setting.own_settings("mix_lr")["mix_lr"]
    rate = TWIN * float(mix_lr or 0)
    learned: Settings = {"mix": "learned"}
    theirs, travel = setting.published, setting.setup.travel
    whose = f"for {theirs.source}{'' if theirs.source == setting.dataset else ', having none for these data'}"
    published = {**learned, **theirs.values}
    at_its_travel = {**published, "mix_lr": _rate_at_its_travel(setting)}
    twin = {**learned, "alpha": 1.0, "entropy_weight": 0.0, "mix_lr": rate}
    return [
        *crossed(setting, LEVELS, learned),
        Arm(PUBLISHED, "published", published, words="thesis's mix"),
        Arm(AT_ITS_TRAVEL, "published", at_its_travel, words="thesis's mix at its own travel"),
        UNIFORM,
        LAST,
        Arm(f"alpha=1 mix_lr={rate:g}", "twin", twin, against=(f"alpha={TWIN:g} entropy_weight=0",)),
    ], [
        f"Thesis's mix (Dremov 2024, {whose}): {theirs.words}, α times that rate. At its own travel: p "
        f"learns at the rate at which logits move as far in all as in the thesis's run, {travel:.3g}."
    ]


def first(setting: Setting) -> list[Settings]:
    """Return the pair published for the dataset, at default rates, and the control."""
    pair = {name: setting.published.values[name] for name in ("alpha", "entropy_weight")}
    return [{**pair, "lr": 1e-3}, {"alpha": 1.0, "entropy_weight": 0.0, "lr": 1e-3}]


def _rate_at_its_travel(setting: Setting) -> float:
    """Return the mix_lr with which logits can travel as far in all epochs here as in the published run."""
    base = setting.base
    how = {"batch_size": base.batch_size, "epochs": base.epochs}
    examples = base.train_examples or setting.train_examples
    at_rate_1 = logit_travel(setting.published.values["alpha"], mix_lr=1.0, train_examples=examples, **how)
    return float(f"{setting.setup.travel / at_rate_1:.3g}")


STUDY = Study(
    name="alpha_lambda",
    about=__doc__,
    design=Design(arms=arms, factors=(FACTORS["alpha"], FACTORS["entropy_weight"]), first=first),
    page=Page(title="α and λ of the layer mix"),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
