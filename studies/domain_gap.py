"""How far may the data lie from what the base model knows before quality drops? (Open question 1, second part.)

Question    How far may the data lie from what the base model knows before quality drops? A reference dataset stands
            for what it knows.
Scientific  dataset: the cases, --dataset; their distance from --reference-dataset is measured, without training
Nuisance    lr, mix_lr, under --trials N alone
Fixed       everything else, at the script's defaults or --set
Metric      the dataset's selection metric, or --metric, as a share of the way from a trivial model to a perfect one
Budget      no search unless --trials is given; confirmation: every arm x --seeds in every case, unpruned
Command     python studies/domain_gap.py --backbone roberta-large --dataset imdb cola conll2003 --reference-dataset imdb
Result      none that decides yet

The model:
    A frozen backbone gives hidden states. Each is projected, and the layer mix adds the projections up: with learned
    weights, or the last state alone. Projections, mix and head are trained; the backbone is not.

Distance:
    The distance between the training texts and the reference dataset's is measured before anything is trained;
    datasets are compared with each other on the page over all cases, `report.md` one folder up.
"""

from adalayers.command.main import main
from adalayers.study import LAST, Arm, Defaults, Design, Flag, Setting, Study


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the learned mix at the defaults, the control, and the last layer alone: which of them suffers more?"""
    return [Arm("learned", "control", {"mix": "learned"}), LAST], []


def dataset_id(name: str, data_dir: str | None) -> str:
    """Return what the reference is in any spelling. Raises `BadInput` for a name that is no dataset."""
    from adalayers.tasks.task import EMBEDDED, canonical

    dataset = canonical(name, data_dir)
    return dataset.name if dataset.source == EMBEDDED else dataset.source


STUDY = Study(
    name="domain_gap",
    about=__doc__,
    design=Design(arms=arms, first=lambda setting: [setting.own_settings("lr", "mix_lr")]),
    defaults=Defaults(sizes={"trials": 0}),
    flags=(
        Flag(
            "reference-dataset",
            "the dataset that stands for what the base model knows, named like --dataset (default: the first "
            "--dataset)",
            default=lambda datasets: datasets[0],
            canonical=dataset_id,
        ),
    ),
    measures=("proxy_a",),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
