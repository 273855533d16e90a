"""Rows that their own predictions contradict, or that two ids claim: not believed, and their comparisons withheld."""

import pandas as pd
import pytest

from adalayers.results.files import PREDICTIONS, TRIALS
from reports.evidence.claims import OPEN
from reports.evidence.evidence import Evidence
from reports.reading.frames import numbers
from reports.reading.load import load
from tests.helpers.made_up import MadeUp
from tests.helpers.pages import both_pages, page

ARM, EXAMPLES = "uniform", 300


@pytest.fixture
def made() -> MadeUp:
    """An arm that is better than the control on each of six seeds; scores follow from predictions."""
    return MadeUp(seeds=6, search=0, evaluations=2, examples=EXAMPLES, effects={ARM: 0.5})


def edited(place, change) -> None:
    """Change the frame of `trials.csv` as text, as someone at a spreadsheet does."""
    path = place.path() / TRIALS
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    change(frame, frame.index[frame["arm"] == ARM][0])
    frame.to_csv(path, index=False)


def setting(column: str, value: str):
    return lambda frame, row: frame.__setitem__(column, frame[column].where(frame.index != row, value))


def appended(**changes):
    def change(frame, row):
        frame.loc[len(frame)] = frame.loc[row].to_dict() | changes

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (setting("test/matthews", "0.876543"), "test/matthews is 0.876543, its predictions give"),
        (setting("test/matthews", "0,5"), "test/matthews is 0,5, its predictions give"),
        (setting("test/accuracy", "0.1"), "test/accuracy is 0.1, its predictions give"),
        (
            setting("predictions", "pforged"),
            "its predictions of test are not those that its row was written for",
        ),
        (appended(trial_id="another"), "is one of several of arm uniform, seed 1"),
        (setting("test/matthews", ""), "1 completed trial without a `test/matthews`"),
        (setting("test/matthews", "nan"), "1 completed trial without a `test/matthews`"),
    ],
    ids=["a digit", "a comma", "another score", "the hash", "two ids", "no score", "NaN"],
)
def test_a_row_that_was_edited_withholds_its_comparisons_alone(made, tmp_path, change, why):
    place = made.write(tmp_path / "study")
    before = {claim.names: claim for claim in Evidence(load(place)).claims}
    edited(place, change)
    assert_withheld(place, before, why)


def assert_withheld(place, before, why: str) -> None:
    evidence = Evidence(load(place))
    text = page(evidence).replace("\\", "").replace("`", "")
    assert why.replace("`", "") in text
    for claim in evidence.claims:
        if ARM in claim.weights:
            assert before[claim.names].decided
            assert (claim.verdict, claim.withheld) == (OPEN, True)
        else:  # a withheld comparison keeps its place in Holm's steps, so that the others' levels are stricter
            was = before[claim.names]
            now, then = ((c.verdict, c.difference, c.p_value) for c in (claim, was))
            assert now == then


@pytest.mark.parametrize("column", ["val/matthews", "test/matthews", "seconds", "mix/entropy", "epochs"])
def test_a_text_among_numbers_is_none_of_them(tmp_path, column):
    """The page is made, and the other rows have their numbers."""
    place = MadeUp(seeds=6, search=0, evaluations=2).write(tmp_path / "study")
    before = load(place).trials
    edited(place, setting(column, "much"))
    after = Evidence(load(place))
    assert both_pages(after)
    kept = before["trial_id"] != before.loc[before["arm"] == ARM, "trial_id"].iloc[0]
    assert numbers(after.trials, column)[kept].tolist() == before[column][kept].tolist()


def other_predictions(place, change) -> None:
    frame = pd.read_parquet(place.path() / PREDICTIONS)
    trials = pd.read_csv(place.path() / TRIALS, dtype=str)
    own = frame["trial_id"] == trials.loc[trials["arm"] == ARM, "trial_id"].iloc[0]
    pd.concat([frame[~own], change(frame[own])]).to_parquet(place.path() / PREDICTIONS)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows.assign(prediction=rows["label"]), "its predictions give 1.000000"),
        (lambda rows: rows[:200], "predictions.parquet has 200 rows of test, the study 300 examples"),
        (
            lambda rows: pd.concat([rows, rows]),
            "predictions.parquet has 600 rows of test, the study 300 examples",
        ),
        (lambda rows: pd.concat([rows[1:], rows[-1:]]), "predictions.parquet has 300 rows of test"),
    ],
    ids=["other predictions", "fewer", "doubled", "one twice"],
)
def test_predictions_that_are_not_the_rows_withhold_its_comparisons_alone(made, tmp_path, change, why):
    place = made.write(tmp_path / "study")
    before = {claim.names: claim for claim in Evidence(load(place)).claims}
    other_predictions(place, change)
    assert_withheld(place, before, why)


def test_rows_of_another_test_split_are_not_on_the_page(made, tmp_path):
    """A study of 300 test sentences that went on with 400: what study.json now says counts, the others do not."""
    later = MadeUp(seeds=6, search=0, evaluations=2, examples=400, effects={ARM: 0.5})
    for rows in (later.trials, later.predictions):
        for row in rows:
            row["trial_id"] = f"new{row['trial_id']}"
    alone = load(later.write(tmp_path / "alone"))
    later.trials += made.trials
    later.predictions += made.predictions
    both = load(later.write(tmp_path / "both"))
    assert set(both.withheld) == {row["trial_id"] for row in made.trials}
    assert Evidence(both).claims == Evidence(alone).claims


@pytest.mark.parametrize("tokens", [True, False])
def test_predictions_that_are_missing_contradict_nothing(tmp_path, tokens):
    place = MadeUp(seeds=6, search=0, evaluations=2, examples=20, tokens=tokens).write(tmp_path / "study")
    whole = load(place)
    other_predictions(place, lambda rows: rows[:0])
    assert not whole.withheld
    assert not load(place).withheld


def test_tags_that_do_not_fit_their_words_are_named(tmp_path):
    made = MadeUp(seeds=6, search=0, evaluations=2, examples=20, tokens=True)
    made.predictions[0]["prediction"] = ["O"]
    (why,) = load(made.write(tmp_path)).withheld.values()
    assert why == (
        "its predictions of test cannot be scored (sentence 0: wanted 4 predictions, one per label, got 1)"
    )
