"""How do alpha, lambda and the cutoff interact with the amount of data? (Open question 3.)

Question    The method overfits with little data: how do alpha, the entropy weight lambda and the cutoff matter there,
            and from how many training examples on are all settings alike?
Scientific  alpha, entropy_weight (lambda), cutoff, mix; train_examples is the condition under which they are compared
Nuisance    lr, in a search that --trials adds; none otherwise
Fixed       mix_lr at 1e-3, for it is one axis with alpha; all else at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      one factor at a time at each number of examples: every arm x --seeds, a fresh draw of examples per seed
Command     python studies/small_data.py --backbone minilm --dataset cola
Result      none that counts yet: six epochs, at which most trials still gained, are told in docs/results/README.md

The model:
    Hidden states of a frozen backbone are projected and added up with the weights p̃ = softmax(α p), p learned; λ
    times the entropy of p̃ is added to the loss; weights at or below the cutoff become 0. Each seed draws its own
    examples from the training pool. Few examples are trained on for as many steps as many are, and evaluated as
    often.
"""

from adalayers.command.main import main
from adalayers.comparisons import named
from adalayers.states import Settings
from adalayers.study import FACTORS, Arm, Defaults, Design, Factor, Page, Setting, Study


def settings(setting: Setting) -> dict[str, Settings]:
    """Return what is compared at each number of examples, the control first."""
    from search_spaces.small_data import ALPHA, CUTOFF_SHARE, ENTROPY_WEIGHT

    cutoff = float(f"{CUTOFF_SHARE / len(setting.layers):.2g}")
    alphas = setting.levels("alpha", [1.0, *ALPHA])
    weights = setting.levels("entropy_weight", [0.0, ENTROPY_WEIGHT])
    cutoffs = setting.levels("cutoff", [0.0, cutoff])
    plain = {"mix": "learned", "alpha": alphas[0], "entropy_weight": weights[0], "cutoff": cutoffs[0]}
    first = alphas[min(1, len(alphas) - 1)]
    points = [{"alpha": alpha} for alpha in alphas]
    points += [{"alpha": first, "entropy_weight": weight} for weight in weights[1:]]
    points += [{"alpha": first, "cutoff": cut} for cut in cutoffs[1:]]
    learned = {" ".join(map(named, point, point.values())): {**plain, **point} for point in points}
    mixes = setting.levels("mix", ["learned", "uniform", "last"])
    fixed = {mix: {"mix": mix} for mix in mixes if mix != "learned"}
    return {**(learned if "learned" in mixes else {}), **fixed}


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return each setting at each number of training examples, the most examples first."""
    from search_spaces.small_data import DATA_SHARES

    return [
        Arm(f"{name} train_examples={n}", "core", {**overrides, **setting.for_equal_steps(n)}, label=name)
        for n in setting.sizes(DATA_SHARES)
        for name, overrides in settings(setting).items()
    ], []


STUDY = Study(
    name="small_data",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(
            FACTORS["alpha"],
            FACTORS["entropy_weight"],
            FACTORS["cutoff"],
            Factor("mix", "mix", "learned, uniform, or the last layer alone", scale="choice"),
            FACTORS["train_examples"],
        ),
    ),
    page=Page(parts=("factor",)),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
