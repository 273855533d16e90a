"""How much does the quality depend on the base model, and on what it was pretrained for? (Open question 1.)

Question    How much does the quality depend on the base model, and on what it was pretrained for? A base model with
            random weights shows what is left without any pretraining.
Scientific  backbone, dataset: the cases, --backbone and --dataset
Nuisance    lr, mix_lr, under --trials N alone
Fixed       everything else, at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      no search unless --trials is given; confirmation: every arm x --seeds in every case, unpruned
Command     python studies/backbones.py --backbone roberta-large bart-large-cnn random:roberta-large --dataset cola imdb
Result      so far, MiniLM, MPNet, SmolLM2-135M and shapes with random weights on CoNLL-2003 and CoLA (docs/answers.md):
            random weights of MiniLM's shape are worse by 0.395 F1. None yet on base models of the thesis's size

The model:
    A frozen backbone gives hidden states. Each is projected, and the layer mix adds the projections up: with learned
    weights, with equal ones, or the last state alone. Projections, mix and head are
    trained; the backbone is not. Backbones are compared with each other on the page over all cases, `report.md` one
    folder up; here is one of them.

The control for pretraining:
    `random:<backbone>` has the backbone's shape and tokeniser, and weights as a training would start with, always the
    same ones (seed 0: one draw of many). What is learned from it, no pretraining gave.
"""

from adalayers.command.main import main
from adalayers.study import LAST, UNIFORM, Arm, Defaults, Design, Setting, Study


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the learned mix at the defaults, the control, and the two mixes that learn nothing."""
    return [Arm("learned", "control", {"mix": "learned"}), UNIFORM, LAST], []


STUDY = Study(
    name="backbones",
    about=__doc__,
    design=Design(arms=arms, first=lambda setting: [setting.own_settings("lr", "mix_lr")]),
    defaults=Defaults(sizes={"trials": 0}, backbones=("minilm", "random:minilm")),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
