"""Does the fusion of layers help with a few examples, and how much of fine-tuning does it give?

Question    With a few examples and a frozen base model, does a fusion of its layers help over further layers on top
            of the last one, and how far is it from fine-tuning?
Scientific  the method (fusion); train_examples (N x C) and epochs are the conditions under which it is compared
Nuisance    lr, with --trials N tuned for each method under an equal budget, at most examples; none otherwise
Fixed       as in ElNokrashy et al. 2024: AdamW, batch 16, lr 5e-5 decaying to 0; its methods at the base model's width
Metric      the best on validation over training, as published; claims are of the test score at that epoch
Budget      46 arms x --seeds: N in {8, 32, 128} for a quarter, half and all of --epochs, and ten arms next to
            fine-tuning; 90 with --protocol whole: N of 16 and 64 and three quarters too. Examples are drawn per seed
Command     python studies/few_shot.py --backbone roberta-base roberta-large --dataset conll2003 --protocol whole
Result      none yet on a base model of the paper's size

The methods:
    All read the hidden states of a base model. `extra-layers` trains transformer layers on the last one: the deeper
    baseline of ElNokrashy et al. 2024. Its rivals there fuse all layers, at the base model's own width: `concat` adds
    up a linear map of each, in `dwatt` a token attends to its layers. `layer-mix` is AdaLayers (Dremov 2024):
    projections of all layers, mixed by learned weights, with its own head. `last-layer` is the last hidden state
    alone. Fine-tuned arms train the base model too.
"""

import math
from collections.abc import Sequence
from typing import Final

from adalayers.command.main import main
from adalayers.comparisons import Role
from adalayers.states import Settings
from adalayers.study import FACTORS, Arm, Defaults, Design, Factor, Flag, Page, Setting, Study, Tuning

PROTOCOLS = ("part", "whole")
FINE_TUNED: Final = "fine-tuned"
LAST_LAYER = "last-layer"
TRIED = 2
"""Most epochs of a study that is only tried out: fine-tuning, ten times as dear, is then at the fewest examples."""


def paper(setting: Setting) -> Settings:
    """Return how the paper's methods are read: at the base model's width, by a linear layer; of texts, of the mean."""
    return {"own_width": True, "read_out": "mean" if not setting.shape.per_token else "linear"}


def methods(setting: Setting) -> dict[str, Settings]:
    """Return what is compared, the paper's deeper baseline first; AdaLayers has the thesis's mix for the dataset."""
    by_name = {name: {"fusion": name, **paper(setting)} for name in ("extra-layers", "concat", "dwatt")}
    by_name["layer-mix"] = {"fusion": "layer-mix", **setting.published.values}
    return {name: by_name[name] for name in setting.levels("fusion", list(by_name)) if name in by_name}


def shots(setting: Setting) -> dict[int, int]:
    """Return N -> N x C examples, C the classes; of tags that mark entities, the types of entity."""
    from search_spaces.few_shot import SHOTS

    return {shot: shot * setting.classes for shot in SHOTS[setting.own.get("protocol", PROTOCOLS[0])]}


def sizes(setting: Setting) -> list[int]:
    """Return the numbers of examples that the pool holds, the most first; all of the pool where it holds none."""
    possible = [size for size in shots(setting).values() if size <= setting.train_examples]
    return sorted(setting.levels("train_examples", possible or [setting.train_examples]), reverse=True)


def lengths(setting: Setting) -> list[int]:
    """Return the numbers of epochs, the most first; two at least, for a rate to fall over, where there are as many."""
    from search_spaces.few_shot import EPOCH_SHARES

    shares = EPOCH_SHARES[setting.own.get("protocol", PROTOCOLS[0])]
    whole = {min(setting.base.epochs, max(2, round(share * setting.base.epochs))) for share in shares}
    return sorted(setting.levels("epochs", list(whole)), reverse=True)


def arm(method: str, overrides: Settings, size: int, epochs: int, role: Role = "core") -> Arm:
    """Return a method with so many examples and epochs.

    Fine-tuned, its name says so, and it is compared with the same frozen, and with fine-tuning without a fusion.
    """
    under = f"train_examples={size} epochs={epochs}"
    overrides = {**overrides, "train_examples": size, "epochs": epochs}
    if role != FINE_TUNED:
        return Arm(f"{method} {under}", role, overrides, label=method, against=())
    others = f"{method} {under}", f"{LAST_LAYER} {FINE_TUNED} {under}"
    overrides["base_model"] = FINE_TUNED
    return Arm(f"{method} {FINE_TUNED} {under}", role, overrides, label=method, against=(), secondary=others)


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return each method at each number of examples and epochs, the most first, then arms next to fine-tuning.

    These, as in the paper's figure 6, are at the fewest and the most examples for half of the epochs: the paper's
    methods fine-tuned, and the last layer without any, frozen and fine-tuned.
    """
    by_name, examples, epochs = methods(setting), sizes(setting), lengths(setting)
    half, ends = epochs[len(epochs) // 2], list(dict.fromkeys((examples[0], examples[-1])))
    if half <= TRIED:
        ends = ends[-1:]
    last = {LAST_LAYER: {"fusion": "scalar-mix", "mix": "last", **paper(setting)}}
    fine = {**last, **{name: method for name, method in by_name.items() if "own_width" in method}}
    return [
        *(arm(*method, size, most) for most in epochs for size in examples for method in by_name.items()),
        *(arm(*method, size, half, "last") for size in ends for method in last.items()),
        *(arm(*method, size, half, FINE_TUNED) for size in ends for method in fine.items()),
    ], _notes(setting, examples, epochs)


def _notes(setting: Setting, examples: Sequence[int], epochs: Sequence[int]) -> list[str]:
    batch, lr, all_shots = setting.base.batch_size, setting.base.lr, shots(setting)
    most, least = (math.ceil(examples[i] / batch) * epochs[i] for i in (0, -1))
    kept = ", ".join(f"N = {n}: {size:,}" for n, size in all_shots.items() if size in examples)
    out = ", ".join(f"{n}" for n, size in all_shots.items() if size not in examples)
    return [
        f"N shots are N examples for each of C = {setting.classes} classes, or types of entity, drawn uniformly from "
        f"all, not stratified ({kept or 'none'}). "
        "With one seed, fewer examples are part of more. The best epoch is chosen on all of validation, as published.",
        *([f"N = {out} left out: the pool has {setting.train_examples:,} examples."] if out else []),
        f"All train for {least:,} to {most:,} steps at lr {lr:g}: the paper's 5e-5 (its table 4 says 1e-5) is for "
        "models of 12 and 24 layers. A small base model may hardly learn in so few steps, and scores near 0 say little "
        "of the methods: `--set lr=...` sets another rate, `--trials` tunes one for each method.",
    ]


def tunings(setting: Setting) -> list[Tuning]:
    """Return each method with the most examples and epochs, to be tuned by itself."""
    arms_tuned = [arm(*method, sizes(setting)[0], lengths(setting)[0]) for method in methods(setting).items()]
    return [Tuning(tuned_arm.name, tuned_arm.overrides) for tuned_arm in arms_tuned]


STUDY = Study(
    name="few_shot",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(
            Factor("fusion", "method", "a fusion of all layers, or extra ones on the last", scale="choice"),
            FACTORS["train_examples"],
            Factor("epochs", "epochs", "over which the rate falls to 0", "count", "log", condition=True),
        ),
        tunings=tunings,
        first=lambda setting: [{"lr": setting.base.lr}],  # the published rate
    ),
    page=Page(parts=("factor",)),
    defaults=Defaults(
        sizes={"trials": 0, "epochs": 100}, smoke={"seeds": 1, "eval_examples": 32, "test_examples": 32}
    ),
    flags=(
        Flag(
            "protocol",
            "part: N of 8, 32 and 128, for a quarter, half and all of --epochs; whole: N of 16 and 64 and three "
            "quarters too, as published (default: part)",
            default=lambda datasets: PROTOCOLS[0],
            choices=PROTOCOLS,
        ),
    ),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
