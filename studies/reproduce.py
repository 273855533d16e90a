"""What do the comparisons of other papers give here, with paired seeds and intervals?

Question    Does a graph of layers beat the other ways to read one vector per text and layer, as published?
Scientific  the method: seven kinds of arm, all of the mean over a text's tokens in each layer
Nuisance    lr, dropout and layer_pooling, in a search that --trials adds; none otherwise
Fixed       as the released code trains: width 256, batch 64, lr 1e-3, weight decay 1e-4, dropout 0.1, 50 epochs
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      seven arms x 20 seeds a case, unpruned; no search unless --trials is given
Command     python studies/reproduce.py --paper ilse --backbone minilm roberta-base --dataset imdb cola inference-demo
Result      so far, MiniLM (docs/answers.md): on IMDB neither a full graph nor a set differs from the Cayley graph, the
            last layer alone is worse

The arms:
    The comparison of the paper ILSE. All read the mean over a text's tokens in each layer of a frozen base model, and
    end in dropout and a linear layer. In a graph, layers pass messages, each to all others or along a sparse Cayley
    graph (up to six layers, a ring); the sum adds layers up between two linear maps; in DWAtt the last layer attends
    to all.
"""

from collections.abc import Mapping

from adalayers.command.main import main
from adalayers.states import Settings
from adalayers.study import Arm, Defaults, Design, Flag, Setting, Study

LAST_LAYER = "layers:-1"
"""Stands for the deepest layer."""
SCALAR_MIX: Settings = {"fusion": "scalar-mix", "own_width": True}

PAPERS: Mapping[str, Mapping[str, Settings]] = {
    "ilse": {
        "graph, Cayley": {"fusion": "layer-graph", "graph": "cayley"},
        "graph, full": {"fusion": "layer-graph", "graph": "full"},
        "set": {"fusion": "layer-set"},
        "DWAtt": {"fusion": "dwatt", "attends": "texts"},
        "weighted": SCALAR_MIX,
        "MLP, last layer": {"fusion": "layer-set", "hidden_states": LAST_LAYER},
        "linear, last layer": {**SCALAR_MIX, "mix": "last"},
    },
}
"""Paper -> its arms, each with what it is here; the first is the one that it proposes."""

WORDS = {
    "graph, Cayley": "Cayley graph of layers",
    "graph, full": "full graph of layers",
    "set": "sum of layers",
    "DWAtt": "DWAtt",
    "weighted": "learned weights",
    "MLP, last layer": "MLP on the last layer",
    "linear, last layer": "linear on the last layer",
}
"""What pages call these arms."""


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the arms of the paper's table, the proposed one first: the control."""
    last = f"layers:{setting.shape.streams[0].layers}"
    table = {
        name: {key: last if value == LAST_LAYER else value for key, value in what.items()}
        for name, what in PAPERS[setting.own.get("paper", "ilse")].items()
    }
    return [Arm(name, "core", what, words=WORDS[name]) for name, what in table.items()], [
        "Of ILSE's arms, LoRA and the best single layer are left out; its tasks and base models are others: this is "
        "its comparison, not its numbers.",
        "DWAtt reads states as this project projects them, learned weights have a scale too, and dropout is before the "
        "last layer alone.",
    ]


STUDY = Study(
    name="reproduce",
    about=__doc__,
    design=Design(arms=arms),
    defaults=Defaults(sizes={"trials": 0, "seeds": 20, "epochs": 50}),
    task_kind="sequence",
    flags=(
        Flag("paper", "whose comparison: ilse (default: ilse)", lambda datasets: "ilse", choices=(*PAPERS,)),
    ),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
