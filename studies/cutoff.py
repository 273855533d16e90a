"""Does removing nearly dead layers help, and when? What does it save at use? (Spec: the cutoff.)

Question    Does it help to remove nearly dead layers by a cutoff of their mix weights, during training or only after
            it, and what does it save at use?
Scientific  cutoff, alpha, cutoff_when
Nuisance    lr, in a search that --trials adds; none otherwise
Fixed       mix_lr at 1e-3, for it is one axis with alpha; all else at the script's defaults or --set
Metric      the dataset's selection metric, or --metric; chosen on validation, published on test
Budget      factorial: every arm x --seeds, unpruned; no search unless --trials is given
Command     python studies/cutoff.py --backbone minilm --dataset conll2003
Result      so far, MiniLM on 2,000 sentences of CoNLL-2003 (docs/answers.md): over alpha = 8, 64 and 512 cutoffs of
            0.042 and 0.083 in training make no difference from none, nor does cutting after it; 0.12 is open

The cutoff:
    The layer mix adds up projections of a frozen backbone's hidden states with the weights p̃ = softmax(α p), p
    learned. Weights at or below the cutoff become 0 and the rest is renormalised. At work always, a layer that is cut
    gets no gradient from the loss, and seldom returns: only where others lose weight. After training alone, the best
    model is cut and scored.
"""

from dataclasses import replace

from adalayers.command.main import main
from adalayers.study import FACTORS, UNIFORM, Arm, Defaults, Design, Page, Setting, Study, Variant, crossed

AFTER = "after-training"


def cutoffs(setting: Setting) -> list[float]:
    """Return the levels of the cutoff: shares of the uniform weight 1/l, so that no level cuts all layers."""
    from search_spaces.cutoff import CUTOFF_SHARES

    return [float(f"{share / len(setting.layers):.2g}") for share in CUTOFF_SHARES]


def arms(setting: Setting) -> tuple[list[Arm], list[str]]:
    """Return cutoff x alpha, without a cutoff first, at work always and only after training; then the uniform mix."""
    from search_spaces.cutoff import ALPHA

    levels = {"cutoff": cutoffs(setting), "alpha": ALPHA}
    whens = setting.levels("cutoff_when", ["always", AFTER])
    core = [
        replace(arm, name=f"{arm.name} after training") if when == AFTER and arm.overrides["cutoff"] else arm
        for when in whens
        for arm in crossed(setting, levels, {"mix": "learned", "cutoff_when": when})
        if arm.overrides["cutoff"] or when == whens[0]  # without one, the same whenever it is at work
    ]
    return [*core, UNIFORM], []


def variants(setting: Setting) -> list[Variant]:
    """Return a finer scale of cutoffs, tried on trained models."""
    return [Variant(cutoff=float(f"{share / 10 / len(setting.layers):.3g}")) for share in range(1, 10)]


STUDY = Study(
    name="cutoff",
    about=__doc__,
    design=Design(
        arms=arms,
        factors=(FACTORS["cutoff"], FACTORS["alpha"], FACTORS["cutoff_when"]),
        variants=variants,
    ),
    page=Page(parts=("factor", "costs")),
    defaults=Defaults(sizes={"trials": 0}),
)

if __name__ == "__main__":
    raise SystemExit(main(STUDY))
