"""How much do alpha and lambda matter, for quality, convergence speed and the final mix? (Open question 2.)

Question    How large is the influence of alpha, and of the entropy term, on quality, on convergence speed, on p~?
Scientific  alpha, entropy_weight (lambda)
Nuisance    lr, mix_lr
Fixed       everything else, at the script's defaults or --set
Metric      the dataset's selection metric; chosen on validation, published on test
Budget      search: --trials configurations, pruned; confirmation: every arm x --seeds, unpruned
Command     python studies/alpha_lambda.py --backbone roberta-large --dataset cola
Result      none yet on a base model of the thesis's size; the README's figure is the demo's
"""

import sys
from typing import Any

from adalayers.command.main import main
from adalayers.presets import published_mix
from adalayers.study import Arm, Factor, Setting, Space, Study
from reports import write_cover, write_report

ALPHAS = [1.0, 8.0, 64.0, 512.0]
LAMBDAS = [0.0, 1e-3, 1e-2]


def space() -> Space:
    """Return what is searched; imported here because its domains are Ray's, which `--help` need not wait for."""
    from search_spaces.alpha_lambda import GRID, NUISANCE, SCIENTIFIC

    return Space(SCIENTIFIC, NUISANCE, GRID)


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the factorial core, control first, then the published pair, the uniform mix and the last layer."""
    core = [
        Arm(
            f"alpha={alpha:g} entropy_weight={entropy_weight:g}",
            "core",
            {"mix": "learned", "alpha": alpha, "entropy_weight": entropy_weight},
        )
        for alpha in setting.levels("alpha", ALPHAS)
        for entropy_weight in setting.levels("entropy_weight", LAMBDAS)
    ]
    published, source = published_mix(setting.dataset, setting.shape.head)
    notes = []
    if source != setting.dataset:
        notes.append(
            f"The thesis has no values for {setting.dataset}: the arm published takes those for {source} "
            "(RoBERTa-large column)."
        )
    return [
        *core,
        Arm("published", "published", {"mix": "learned", **published}),
        Arm("uniform", "uniform", {"mix": "uniform"}),
        Arm("last", "last", {"mix": "last"}),
    ], notes


def first(setting: Setting) -> list[dict[str, Any]]:
    """Return the pair published for CoLA at default rates, and the control."""
    rates = {"lr": 1e-3, "mix_lr": 1e-3}
    return [{"alpha": 64.0, "entropy_weight": 0.0, **rates}, {"alpha": 1.0, "entropy_weight": 0.0, **rates}]


STUDY = Study(
    name="alpha_lambda",
    question=(
        "How large is the influence of alpha, and of the entropy weight lambda, on quality, on convergence speed "
        "and on the final mix weights?"
    ),
    space=space,
    arms=arms,
    first=first,
    factors=(
        Factor("alpha", "α", "scale of the mix logits", scale="log", changes_speed=True),
        Factor("entropy_weight", "λ", "entropy weight", scale="choice"),
    ),
    method={
        "The model": (
            "A frozen backbone gives hidden states. Each is projected, and the layer mix adds the projections up with "
            "the mix weights p̃ = softmax(α p). The loss is cross-entropy plus λ times the entropy of p̃ (in nats). "
            "Projections, mix and head are trained; the backbone is not."
        ),
        "One axis": (
            "Under Adam, without weight decay on p, one step moves a logit of the mix by about α × `mix_lr`: α and "
            "`mix_lr` are one axis. What is found about α here holds for that product, at the `mix_lr` used."
        ),
    },
)

if __name__ == "__main__":
    sys.exit(main(STUDY, write_report, write_cover))
