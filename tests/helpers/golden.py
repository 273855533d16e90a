"""Golden pages: what the page says of a study of each kind, word for word. No other test holds its sentences.

After a change of words, rewrite them and read the difference:

    python -m tests.helpers.golden && git diff tests/golden
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from reports import write_cover
from studies.alpha_lambda import STUDY
from tests.helpers.made_layers import with_single_layers
from tests.helpers.made_up import CORE, MadeUp
from tests.helpers.pages import evidence_of, page
from tests.helpers.studying import without_figures

GOLDEN = Path(__file__).parents[1] / "golden"


def tied(made: MadeUp) -> MadeUp:
    """Give every arm the control's predictions and scores on each seed."""
    for row in made.trials:
        if row["stage"] == "confirm":
            row |= {"test/matthews": 0.4 + 0.01 * row["seed"], "predictions": "p"}
    return made


def layers() -> MadeUp:
    """Single layers of a study of entities, all decided, against the learned mix."""
    made = with_single_layers(MadeUp(seeds=6, search=0, tokens=True, examples=40, effects={"uniform": -0.2}))
    keep(made, CORE[0], "uniform", *(arm["name"] for arm in made.arms if "layer" in arm["config"]))
    for arm in made.arms[2:]:
        arm["role"] = "single"
    made.study["request"]["headline"] = ["single", "uniform"]
    return made


def keep(made: MadeUp, *arms: str) -> None:
    """Leave a study these arms alone, and no factors."""
    made.study["request"] |= {"factors": [], "scientific": []}
    kept = [arm for arm in made.arms if arm["name"] in arms]
    made.arms[:] = [arm | {"role": arm["role"].replace("core", "")} for arm in kept]
    made.trials = [row for row in made.trials if row["arm"] in arms]


def factorial() -> MadeUp:
    """A factorial study of which something is decided, whose seeds were added in two blocks."""
    effects = {CORE[4]: 0.2, CORE[5]: 0.2, "last": -0.1}
    return MadeUp(seeds=9, search=14, effects=effects, failed=(("best", 2),)).ran((6, 9), planned=(20,))


def arms_alone(**how: object) -> MadeUp:
    """A study without factors, of the control, two of its arms and the uniform mix."""
    made = MadeUp(seeds=6, search=0, **how)  # type: ignore[arg-type]
    keep(made, *CORE[:2], "uniform", "last")
    return made


def at_the_floor() -> MadeUp:
    """Scores hardly above the trivial model's, of which every trial was best at its last epoch."""
    made = arms_alone(effects={"last": 0.05})
    made.study["environment"]["dataset"]["baseline"]["test"] = 0.39
    for row in made.trials:
        row |= {"best_epoch": 5, "epochs": 5, "config/epochs": 5}
    return made


def smoke() -> MadeUp:
    """A study that is less than a finished one, with all kinds of limits."""
    made = arms_alone(failed=((CORE[1], 2), ("last", 3)))
    made.study["runs"] |= {"state": "interrupted", "smoke": True}
    environment = made.study["environment"]
    environment["git"]["dirty"] = True
    environment["dataset"] |= {"shared": {"test": 16}, "truncated": {"train": {"examples": 900}}}
    made.trials[-1]["status"] = "unfinished"
    return made


STUDIES: dict[str, Callable[[], MadeUp]] = {
    "layers": layers,
    "factorial": factorial,
    "undecided": lambda: arms_alone(noise=0.05),
    "nothing_differs": lambda: tied(arms_alone()),
    "few_seeds": lambda: MadeUp(seeds=2, search=0, noise=0.03, effects={"last": 0.8}),
    "floor": at_the_floor,
    "smoke": smoke,
}
"""Name of a golden page -> the study that it is of."""


def across_cases(folder: Path) -> str:
    for name, layers in (("minilm-cola", 6), ("roberta-large-cola", 24)):
        MadeUp(seeds=6, search=0, layers=layers, effects={"uniform": 0.3}).write(folder / name)
    with without_figures():
        return Path(write_cover(folder)).read_text()


PAGES = (*STUDIES, "across_cases")


def written(name: str, folder: Path) -> str:
    """Return a golden page, made in an empty folder."""
    if name == "across_cases":
        return across_cases(folder)
    made = STUDIES[name]()
    made.study["request"]["method"] = dict(STUDY.page.method)
    return page(evidence_of(made, folder / "minilm-cola"))


if __name__ == "__main__":
    for old in GOLDEN.glob("*.md"):
        old.unlink()
    for golden in PAGES:
        with tempfile.TemporaryDirectory() as place:
            (GOLDEN / f"{golden}.md").write_text(written(golden, Path(place)))
