"""A study of thousands of labels, trials or columns has a page within bounds, which says what it leaves out."""

import numpy as np

from adalayers.tasks.metrics import class_scores
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import both_pages, evidence_of

MANY = 3000


def test_thousands_of_labels_are_not_all_shown(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    names = [f"label {place}" for place in range(MANY)]
    counts = dict.fromkeys(names, 3)
    made.study["environment"]["dataset"] |= {"labels": names, "distribution": {"train": counts}}
    trials = [row["trial_id"] for row in made.trials]
    made.predictions = [
        {"trial_id": trial, "split": "test", "index": place, "label": names[place], "score": 0.9}
        | {"prediction": names[place + place % 3]}
        for trial in trials
        for place in range(MANY - 2)
    ]
    places = np.arange(MANY - 2)
    for row in made.trials:
        row["test/matthews"] = class_scores(places, places + places % 3, MANY)["matthews"]
    text = both_pages(evidence_of(made, tmp_path))
    assert len(text) < 100_000
    assert "2,900 more in `study.json`" in text
    assert "are too many to draw from" in text


def test_a_page_of_long_names_is_short(tmp_path):
    made = MadeUp(seeds=2, search=0, evaluations=2)
    for row in (arm for arm in made.study["request"]["arms"] if arm["name"] == "uniform"):
        row["name"] = "x" * 5000
    for row in made.of("uniform"):
        row["arm"] = "x" * 5000
    text = both_pages(evidence_of(made, tmp_path))
    assert "x" * 250 in text
    assert "x" * 400 not in text
