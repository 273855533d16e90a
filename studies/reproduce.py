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

from adalayers.command.main import main
from adalayers.states import Settings
from adalayers.study import Arm, Defaults, Design, Flag, Setting, Study

SCALAR_MIX: Settings = {"fusion": "scalar-mix", "own_width": True}


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return the arms of the paper's table, the proposed one first: the control."""
    last = f"layers:{setting.shape.streams[0].layers}"
    named: dict[str, tuple[str, Settings]] = {
        "graph, Cayley": ("Cayley graph of layers", {"fusion": "layer-graph", "graph": "cayley"}),
        "graph, full": ("full graph of layers", {"fusion": "layer-graph", "graph": "full"}),
        "set": ("sum of layers", {"fusion": "layer-set"}),
        "DWAtt": ("DWAtt", {"fusion": "dwatt", "attends": "texts"}),
        "weighted": ("learned weights", SCALAR_MIX),
        "MLP, last layer": ("MLP on the last layer", {"fusion": "layer-set", "hidden_states": last}),
        "linear, last layer": ("linear on the last layer", {**SCALAR_MIX, "mix": "last"}),
    }
    return [Arm(name, "core", what, words=words) for name, (words, what) in named.items()], [
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
        Flag("paper", "whose comparison: ilse (default: ilse)", lambda datasets: "ilse", choices=("ilse",)),
    ),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
