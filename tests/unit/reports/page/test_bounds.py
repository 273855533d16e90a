"""A study of thousands of labels, trials or columns has a page within bounds, which says what it leaves out."""

import numpy as np

from adalayers.tasks.metrics import class_scores
from tests.helpers.made_up import CONTROL, MadeUp
from tests.helpers.pages import both_pages, evidence_of

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
    for row in made.trials:
        row["test/matthews"] = class_scores(gold, said, MANY)["matthews"]
        about = {"trial_id": row["trial_id"], "split": "test", "score": 0.9}
        made.predictions += [
            about | {"index": place, "label": names[place], "prediction": names[said[place]]}
            for place in gold
        ]
    text = both_pages(evidence_of(made, tmp_path))
    assert len(text) < 100_000
    assert "2,900 more in `study.json`" in text
    assert "are too many to draw from" in text
    assert "x" * 250 in text
    assert "x" * 400 not in text
