"""How large may the trained part be for an amount of data? (Overfitting: k and dropout; open question 3.)

Question    How do k, the width that hidden states are projected to, and dropout matter for quality, and does that
            depend on the amount of training data?
Scientific  k, dropout; train_examples is the condition under which they are compared
Nuisance    lr, in a search that --trials adds; none otherwise
Fixed       all else at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      factorial: every arm x --seeds, unpruned; no search unless --trials is given
Command     python studies/capacity.py --backbone minilm --dataset cola
Result      so far, MiniLM on CoNLL-2003, 125 to 2,000 sentences until validation stands still (docs/answers.md):
            k 256 instead of 64 is no difference, k 16 worse by 0.015 F1. None yet on a base model of the thesis's size

The model:
    Hidden states of a frozen backbone are projected to k dimensions, added up with learned weights, and read by a
    head with dropout. k decides how many parameters are trained, dropout how noisy the head is in training. Each seed
    draws its own examples from the training pool. Few examples are trained on for as many steps as many are, and
    evaluated as often.
"""

from dataclasses import replace

from adalayers.command.main import main
from adalayers.study import FACTORS, Arm, Defaults, Design, Page, Setting, Study, crossed


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return k x dropout x training examples; the control has k 64, dropout 0.1 and all examples."""
    from search_spaces.capacity import DATA_SHARES, DROPOUT, K

    return [
        replace(arm, name=f"{arm.name} train_examples={n}", label=arm.name)
        for n in setting.sizes(DATA_SHARES)
        for arm in crossed(setting, {"k": K, "dropout": DROPOUT}, setting.for_equal_steps(n))
    ], []


STUDY = Study(
    name="capacity",
    about=__doc__,
    design=Design(arms=arms, factors=(FACTORS["k"], FACTORS["dropout"], FACTORS["train_examples"])),
    page=Page(parts=("factor", "costs")),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
