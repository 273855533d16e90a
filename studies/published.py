"""What do the thesis's published set-ups score here, and does it matter how they are read?

Question    What do the published set-ups of AdaLayers score on this backbone and dataset, and does it matter whether
            they are read as written or as released?
Scientific  the set-up (that of either base model) and its reading: the thesis's text, or the code released with it
Nuisance    none; with --trials, the learning rate of this project's own defaults, confirmed next to the set-ups
Fixed       each set-up whole (adalayers/presets.py); --set goes before it in all arms; --epochs caps its epochs, at
            76 unless asked otherwise: --epochs 256 for all that any set-up has
Metric      macro F1 for sequences (the thesis's), entity F1 for tokens, or --metric; chosen on validation
Budget      confirmation: four arms x --seeds; no search. With minilm and 2,000 training
            examples on 2 cores: about 10 minutes for CoLA, 1 hour for CoNLL-2003; IMDB's long texts take some hours
Command     python studies/published.py --backbone roberta-large --dataset cola
Result      none yet on a base model of the thesis's size

The set-ups:
    A frozen backbone gives hidden states; each is projected, and the projections are added up with learned weights.
    The thesis (Dremov 2024) trained this on RoBERTa-large and on BART, with a set-up for each. Both are run here
    whole, on the backbone of this study, and in two readings. `as-written` is what the text and its tables say;
    `as-released` is what the released code does: other hidden states, lambda divided by their number, its own
    dropout, on the projections too, and one more gelu. The entropy of a mix of more hidden states starts higher.

Not reproduced:
    The released code also drops out attention weights, positions, and 0.2 of what the logits are made of; counts a
    score as better from 0.001 on; halves its rate an evaluation later than its patience says, as PyTorch counts; and
    trains on all sub-tokens of a word, the later ones as I-. No arm here does. That texts pass through gelu and
    dropout before their mean is the code's, not the text's, and is so in all arms.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from adalayers.command.main import main
from adalayers.presets import READINGS, Published, Reading, SetUp, setups
from adalayers.states import Settings, State, chosen_states
from adalayers.study import Arm, Defaults, Design, Page, Setting, Study


def readings(setting: Setting) -> list[tuple[str, SetUp, Reading, Settings]]:
    """Return name, set-up, reading and hyperparameters of each arm, RoBERTa-large's as written first.

    What --set fixed goes before what a set-up says, and --epochs caps its epochs.
    """
    found = []
    for setup, reading in itertools.product(setups(setting.dataset, setting.shape.head), READINGS):
        wanted = setup.config(reading)
        wanted["epochs"] = min(setup.run.config["epochs"], setting.base.epochs)
        config = {name: setting.fixed.get(name, value) for name, value in wanted.items()}
        found.append((f"{setup.run.base_model}-setup {reading}", setup, reading, config))
    return found


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return both set-ups in both readings, RoBERTa-large's as written first: the control.

    Compared are the two readings of each set-up, and the two set-ups in each reading. Nothing is averaged: a reading
    changes several things at once, and not the same in each set-up.
    """
    found = readings(setting)
    made = []
    for place, (name, setup, reading, config) in enumerate(found):
        alike = [other for other, its, how, _ in found[:place] if its is setup or how == reading]
        made.append(Arm(name, "published", config, label=setup.run.base_model, against=(*alike,)))
    return made, _notes(setting)


def published(setting: Setting) -> list[Published]:
    """Return what the thesis published for each set-up, in each reading, and what that mixes here."""
    found = []
    for name, setup, reading, config in readings(setting):
        choice = str(config.get("hidden_states", setting.base.hidden_states))
        states = _states(chosen_states(choice, setting.shape))
        found.append(replace(setup.run, arm=name, states_here=states, config=setup.config(reading)))
    return found


def _states(states: Sequence[State]) -> str:
    """Return hidden states in words: "embeddings and layers 1 to 23"."""
    numbers = [state.number for state in states]
    layers = [number for number in numbers if number]
    whole = layers == list(range(1, len(layers) + 1))
    told = f"layers 1 to {len(layers)}" if whole else f"layers {', '.join(map(str, layers))}"
    return f"embeddings and {told}" if 0 in numbers else told


def _notes(setting: Setting) -> list[str]:
    found = readings(setting)
    notes, source = [], found[0][1].run.dataset
    if source != setting.dataset:
        notes.append(
            f"The thesis has no set-up for `{setting.dataset}`: these are its set-ups for `{source}`, and so are the "
            "published scores."
        )
    changed = sorted({name for *_, config in found for name in config} & {*setting.fixed})
    if changed:
        notes.append(
            f"--set fixed {', '.join(f'`{name}`' for name in changed)} in all arms, whatever the set-up says."
        )
    return notes


STUDY = Study(
    name="published",
    about=__doc__,
    design=Design(arms=arms),
    page=Page(parts=("published",), published=published),
    defaults=Defaults(sizes={"trials": 0, "epochs": 76}, metrics={"sequence": "f1_macro"}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
