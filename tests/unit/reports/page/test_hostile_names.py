"""Texts of data and files are shown as they are, within bounds: no markup, no remote image, no control character."""

import re

import numpy as np
import pytest

from adalayers.tasks.metrics import class_scores
from reports import write_cover
from reports.evidence.evidence import Evidence
from reports.reading.load import load
from tests.helpers.made_layers import with_single_layers
from tests.helpers.made_published import with_published
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.pages import both_pages, details, evidence_of, page
from tests.helpers.studying import without_figures

HOSTILE = " \x1b[31m<img src=x>![r](http://x/y.png)`|\n# H\u202e"
READ = {
    *("role", "kind", "mode", "scale", "metric", "control", "fusion", "mix", "parts", "format", "split"),
    *("search", "precision", "backbone_dtype", "dtype", "space", "scientific", "nuisance", "levels"),
    *("weights", "seeds", "distribution"),
}
"""Keys of `study.json` whose values the report computes with."""


def spoilt(value, key=""):
    """Return a value of `study.json` with what a page must not hold at the end of each text."""
    if isinstance(value, dict):
        return {name: spoilt(inner, name) if name not in READ else inner for name, inner in value.items()}
    if isinstance(value, list):
        return [spoilt(inner, key) for inner in value]
    return value + HOSTILE if isinstance(value, str) and not (key == "name" and value in NAMES) else value


NAMES = ("alpha", "entropy_weight")
"""Of factors: columns of `trials.csv`."""


@pytest.mark.parametrize("tokens", [False, True])
def test_no_text_of_data_or_files_is_markup(tmp_path, tokens):
    made = MadeUp(seeds=2, search=14, evaluations=2, tokens=tokens, failed=(("best", 2),))
    made = with_published(with_single_layers(made)) if tokens else made
    made.study |= {name: spoilt(made.study[name], name) for name in made.study}
    made.study["environment"]["dataset"]["distribution"] = {"train": {f"yes{HOSTILE}": 3, "no": 5}}
    request = made.study["request"]
    request["method"] = {f"{title}{HOSTILE}": text for title, text in request["method"].items()}
    request["control"] += HOSTILE
    for row in made.trials:
        row["arm"] += HOSTILE if row["arm"] else ""
        row["error"] = f"an error{HOSTILE}"
    for row in made.predictions:
        row |= {name: f"{row[name]}{HOSTILE}" for name in ("label", "prediction")}
    evidence = Evidence(load(made.write(tmp_path / f"odd{HOSTILE.replace('/', '')}")))
    with without_figures():
        write_cover(tmp_path)
    for text in (page(evidence), details(evidence), (tmp_path / "report.md").read_text()):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
        shown = re.sub(r"(?ms)^```.*?^```$", "", text)
        shown = re.sub(r"(?<!\\)`[^`\n]*`", "", shown)
        assert re.findall(r".{,200}(?:<img|(?<!\\)\]\(http|\n# H).{,50}", shown) == []


MANY = 3000
LONG = "x" * 5000


def test_thousands_of_labels_and_long_names_are_not_all_shown(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    next(arm for arm in made.arms if arm["name"] == "uniform")["name"] = LONG
    for row in made.of("uniform"):
        row["arm"] = LONG
    made.trials = [*made.of(CONTROL), *made.of(LONG), *made.of("last")]
    names = [f"label {place}" for place in range(MANY)]
    counts = dict.fromkeys(names, 3)
    made.study["environment"]["dataset"] |= {"labels": names, "distribution": {"train": counts}}
    gold = np.arange(MANY - 2)
    said = gold + gold % 3
    answers = [{"index": i, "label": names[i], "prediction": names[said[i]]} for i in gold]
    for row in made.trials:
        row["test/matthews"] = class_scores(gold, said, MANY)["matthews"]
        about = {"trial_id": row["trial_id"], "split": "test", "score": 0.9}
        made.predictions += [about | answer for answer in answers]
    text = both_pages(evidence_of(made, tmp_path))
    assert len(text) < 100_000
    assert "2,900 more in `study.json`" in text
    assert "are too many to draw from" in text
    assert "x" * 250 in text
    assert "x" * 400 not in text
