"""Rows that their own predictions contradict, or that two ids claim: not believed, and their comparisons withheld."""

import shutil

import pandas as pd
import pytest

from adalayers.results.files import PREDICTIONS, TRIALS
from adalayers.storage.folder import Folder
from reports.evidence.claims import OPEN
from reports.evidence.evidence import Evidence
from reports.reading.frames import numbers
from reports.reading.load import load
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import both_pages, page

ARM, EXAMPLES = "uniform", 60
SMALL = {"seeds": 6, "search": 0, "evaluations": 2}


def better(**how) -> MadeUp:
    """An arm that is better than the control on each of six seeds; scores follow from predictions."""
    return MadeUp(**SMALL, **{"examples": EXAMPLES, "effects": {ARM: 0.5}, **how})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder, not to be changed, and its claims."""
    place = better().write(tmp_path_factory.mktemp("whole"))
    return place, {claim.names: claim for claim in Evidence(load(place)).claims}


def edited(place, cells: dict[str, str], *, appended: bool = False) -> None:
    """Change or append a row of `trials.csv` as text, as someone at a spreadsheet does."""
    path = place.path() / TRIALS
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    row = frame.index[frame["arm"] == ARM][0]
    changed = frame.loc[row].to_dict() | cells
    frame.loc[len(frame) if appended else row] = changed
    frame.to_csv(path, index=False)


def other_predictions(place, change) -> None:
    frame = pd.read_parquet(place.path() / PREDICTIONS)
    trials = pd.read_csv(place.path() / TRIALS, dtype=str)
    own = frame["trial_id"] == trials.loc[trials["arm"] == ARM, "trial_id"].iloc[0]
    pd.concat([frame[~own], change(frame[own])]).to_parquet(place.path() / PREDICTIONS)


FAULTS = {
    "a digit": ({"test/matthews": "0.876543"}, "test/matthews is 0.876543, its predictions give"),
    "a comma": ({"test/matthews": "0,5"}, "test/matthews is 0,5, its predictions give"),
    "the hash": ({"predictions": "pforged"}, "are not those that its row was written for"),
    "two ids": ({"trial_id": "another"}, "is one of several of arm uniform, seed 1"),
    "no score": ({"test/matthews": ""}, "1 completed trial without a test/matthews"),
    "others": (lambda rows: rows.assign(prediction=rows["label"]), "its predictions give 1.000000"),
    "half a seed": ({"seed": "1.5"}, "its seed is 1.5, no whole number"),
    "an endless seed": ({"seed": "1e999"}, "it has no seed"),
    "fewer": (lambda rows: rows[:40], "predictions.parquet has 40 rows of test, the study 60 examples"),
    "twice": (lambda rows: pd.concat([rows[1:], rows[-1:]]), "predictions.parquet has 60 rows of test"),
}
"""Cells of a row of `trials.csv`, or a change of its predictions, and what is said of it."""


@pytest.mark.parametrize("fault", FAULTS)
def test_what_its_predictions_contradict_withholds_its_comparisons_alone(tmp_path, whole, fault):
    place, before = Folder(shutil.copytree(whole[0].path(), tmp_path / "study")), whole[1]
    change, why = FAULTS[fault]
    if isinstance(change, dict):
        edited(place, change, appended=fault == "two ids")
    else:
        other_predictions(place, change)
    evidence = Evidence(load(place))
    told = [*evidence.loaded.withheld.values(), *evidence.loaded.problems]
    assert why in " ".join(told).replace("`", "")
    for claim in evidence.claims:
        was = before[claim.names]
        if ARM in claim.weights:
            assert was.decided
            assert (claim.verdict, claim.withheld) == (OPEN, True)
        else:  # a withheld comparison keeps its place in Holm's steps, so that the others' levels are stricter
            now, then = ((c.verdict, c.difference, c.p_value) for c in (claim, was))
            assert now == then


def test_a_text_among_numbers_is_none_of_them(tmp_path):
    """The page is made, and the other rows have their numbers."""
    place = MadeUp(**SMALL).write(tmp_path / "study")
    before = load(place).trials
    columns = ["val/matthews", "test/matthews", "seconds", "mix/entropy", "epochs", "seed"]
    edited(place, dict.fromkeys(columns, "much"))
    after = Evidence(load(place))
    assert both_pages(after)
    kept = before["trial_id"] != before.loc[before["arm"] == ARM, "trial_id"].iloc[0]
    for column in columns:
        assert numbers(after.trials, column)[kept].tolist() == before[column][kept].tolist()


def test_rows_of_another_test_split_are_not_on_the_page(tmp_path):
    """A study of 60 test sentences that went on with 80: what study.json now says counts, the others do not."""
    made, later = better(), better(examples=80)
    for row in (*later.trials, *later.predictions):
        row["trial_id"] = f"new{row['trial_id']}"
    alone = load(later.write(tmp_path / "alone"))
    later.trials += made.trials
    later.predictions += made.predictions
    both = load(later.write(tmp_path / "both"))
    assert set(both.withheld) == {row["trial_id"] for row in made.trials}
    assert Evidence(both).claims == Evidence(alone).claims


def test_missing_predictions_contradict_nothing_and_tags_that_do_not_fit_their_words_are_named(tmp_path):
    made = MadeUp(**SMALL, examples=20, tokens=True)
    place = made.write(tmp_path / "study")
    assert not load(place).withheld
    other_predictions(place, lambda rows: rows[:0])
    assert not load(place).withheld
    made.predictions[0]["prediction"] = ["O"]
    loaded = load(made.write(tmp_path))
    (why,) = loaded.withheld.values()
    assert "cannot be scored (sentence 0: wanted 4 predictions, one per label, got 1)" in why
    assert "wanted 4 predictions, one per label, got 1" in page(Evidence(loaded))
