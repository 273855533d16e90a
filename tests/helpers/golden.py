"""Golden pages: what reports say of a study of each shape, word for word.

After a change of words, rewrite them and read the difference:

    python -m tests.helpers.golden && git diff tests/golden
"""

import dataclasses
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from adalayers.results.measures import Measured, write_measures
from adalayers.results.study_file import Factor
from reports import write_cover
from reports.evidence.evidence import Evidence
from reports.page.report import short_page
from studies.alpha_lambda import STUDY
from tests.helpers.made_few_shot import with_few_shot
from tests.helpers.made_layers import with_single_layers, with_sizes
from tests.helpers.made_published import with_published
from tests.helpers.made_up import CORE, MadeUp
from tests.helpers.pages import both_pages, evidence_of
from tests.helpers.studying import without_figures

GOLDEN = Path(__file__).parents[1] / "golden"

DECIDED = {
    **{arm: 0.1 * (place // 3) + 0.05 * (place % 3) for place, arm in enumerate(CORE)},
    "uniform": -0.2,
    "last": 0.2,
    "best": 0.4,
}
"""Effects that set every level apart from its reference, and every arm outside the core from the control."""


def tied(made: MadeUp) -> MadeUp:
    """Give every arm the control's predictions and scores on each seed."""
    for row in made.trials:
        if row["stage"] == "confirm":
            row |= {"test/matthews": 0.4 + 0.01 * row["seed"], "predictions": "p"}
    return made


def doubtful(made: MadeUp) -> MadeUp:
    """Give a study all kinds of caveats."""
    made.study["runs"] |= {"state": "interrupted", "smoke": True, "test_opened": 3}
    made.study["environment"]["git"]["dirty"] = True
    made.study["environment"]["dataset"] |= {
        "shared": {"test": 16},
        "truncated": {"train": {"examples": 900}},
    }
    made.trials[-1]["status"] = "unfinished"
    return made


def some_decided() -> MadeUp:
    """A factorial study whose seeds were added in two blocks."""
    effects = {CORE[4]: 0.2, CORE[5]: 0.2, "last": -0.1}
    return MadeUp(seeds=9, search=14, effects=effects, failed=(("best", 2),)).ran((6, 9), planned=(20,))


OUTCOMES: dict[str, Callable[[], MadeUp]] = {
    "some decided": some_decided,
    "nothing decided": lambda: MadeUp(seeds=6, noise=0.05, search=14),
    "everything decided": lambda: MadeUp(seeds=6, search=14, effects=DECIDED),
    "nothing differs": lambda: tied(MadeUp(seeds=6, search=14)),
    "one cell alone": lambda: MadeUp(seeds=6, search=0, effects={CORE[4]: 0.2}),
    "no difference": lambda: MadeUp(seeds=6, search=0, noise=0.0001),
    "large differences of two seeds": lambda: MadeUp(seeds=2, search=0, noise=0.03, effects={"last": 0.8}),
    "caveats": lambda: doubtful(MadeUp(seeds=6, search=14, failed=((CORE[1], 2), ("last", 3)))),
}
"""Factorial studies of every outcome."""


def outcome(name: str, folder: Path) -> Evidence:
    """Return what is known of one of `OUTCOMES`, with the question and the method of alpha_lambda."""
    made = OUTCOMES[name]()
    made.study["request"] |= {"question": STUDY.question, "method": dict(STUDY.page.method)}
    return evidence_of(made, folder)


def methods() -> MadeUp:
    """A study of methods, tuned each, without factors."""
    fusions = ("layer-mix", "dwatt", "concat")
    made = MadeUp(seeds=6, search=0, examples=20, effects={CORE[1]: 0.1, CORE[2]: 0.2})
    made.study["request"] |= {"parts": ["methods"], "factors": [], "scientific": [], "method": {}}
    made.study["request"]["control"] = fusions[0]
    made.arms[:] = made.arms[:3]
    made.trials = [row for arm in made.arms for row in made.of(arm["name"])]
    for arm, fusion, cost in zip(made.arms, fusions, (1.0, 5.0, 900.0), strict=True):
        rows = made.of(arm["name"])
        arm |= {"name": fusion, "role": "", "aliases": [], "fusion": fusion, "config": {}}
        for row in rows:
            row |= {"arm": fusion, "fusion": fusion, "config/mix": None, "config/base_model": "frozen"}
            row |= {"cost/use": cost, "cost/training": 1e9 * cost, "cost/weights": 1e6}
            row |= {"cost/kept": 64, "cost/layers": 6}
    return made


def data_size() -> MadeUp:
    """A study of two arms at four numbers of training examples."""
    made = with_sizes(MadeUp(seeds=6, search=0))
    made.study["request"] |= {"parts": ["data_size"], "scientific": ["alpha", "train_examples"]}
    factors = (
        Factor("alpha", "α", "scale of the mix logits", scale="log"),
        Factor("train_examples", "training examples", "drawn", "count", "log", condition=True),
    )
    made.study["request"]["factors"] = [dataclasses.asdict(factor) for factor in factors]
    for arm in made.arms:
        arm["role"] = "core"
    return made


def few_examples() -> MadeUp:
    """Methods under numbers of training examples and epochs, frozen and fine-tuned."""
    return with_few_shot(MadeUp(seeds=6, search=0, evaluations=4, between=0))


def tokens(folder: Path) -> str:
    """A study of entities with single layers, published scores, and measures made without training."""
    made = with_published(with_single_layers(MadeUp(seeds=6, search=0, tokens=True, examples=20)))
    place = made.write(folder)
    by_layer = {f"{layer:02d}": 1 / layer for layer in range(1, made.layers + 1)}
    layers = Measured(title="variability", unit="number", value=6.0, by_layer=by_layer, distance=False)
    domain = Measured(title="vocabulary divergence", unit="bits, 0 to 1", value=0.1, nothing=0.0, n=7)
    write_measures(place, {}, {"variability": layers, "vocabulary": domain})
    return own(made, folder)


def without(titles: str, text: str) -> str:
    """Return a page without the sections whose titles match."""
    sections = re.split(r"\n(?=##? )", text)
    return "\n".join(section for section in sections if not re.match(f"## (?:{titles})", section))


def own(made: MadeUp, folder: Path) -> str:
    """Return the pages without what `factorial` says of a study of any shape."""
    return without(
        "Set-up|The factorial core|Convergence|The mix|Analyses", both_pages(evidence_of(made, folder))
    )


def all_outcomes(folder: Path) -> str:
    """Return what differs between outcomes: the answer, the main caveats and the next run."""
    names = [name for name in OUTCOMES if name != "some decided"]  # which `factorial` has
    pages = [short_page(outcome(name, folder / name)).text() for name in names]
    return "\n".join(without("Question|The |Quality", page) for page in pages)


def across_cases(folder: Path) -> str:
    for name, layers in (("minilm-cola", 6), ("roberta-large-cola", 24)):
        MadeUp(seeds=6, search=0, layers=layers, effects={"uniform": 0.3}).write(folder / name)
    with without_figures():
        return Path(write_cover(folder, [folder / "minilm-cola", folder / "roberta-large-cola"])).read_text()


PAGES: dict[str, Callable[[Path], str]] = {
    "factorial": lambda folder: both_pages(outcome("some decided", folder)),
    "outcomes": all_outcomes,
    "methods": lambda folder: own(methods(), folder),
    "data_size": lambda folder: own(data_size(), folder),
    "few_examples": lambda folder: own(few_examples(), folder),
    "tokens": tokens,
    "across_cases": across_cases,
}
"""Name of a golden page -> what makes it in an empty folder."""


if __name__ == "__main__":
    for page, written in PAGES.items():
        with tempfile.TemporaryDirectory() as place:
            (GOLDEN / f"{page}.md").write_text(written(Path(place)))
