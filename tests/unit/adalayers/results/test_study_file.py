"""`study.json` as records: what is there is read, what is not has its default and is named."""

import dataclasses
import json

import pytest

from adalayers.errors import BadInput
from adalayers.results.study_file import StudyFile, parse, read_study
from adalayers.storage.folder import Folder
from tests.helpers.documented import ROOT
from tests.helpers.made_published import with_published
from tests.helpers.made_up import MadeUp


def document():
    """Return a `study.json` with published scores."""
    made = with_published(MadeUp(seeds=1, search=0, evaluations=1, tokens=True))
    return parse(made.study)[0].as_json()


def test_what_is_written_is_read_back():
    kept = [json.loads(path.read_text()) for path in ROOT.glob("docs/results/*/*/study.json")]
    assert len(kept) > 10
    for written in (document(), *kept):
        study, _ = parse(written)
        assert parse(study.as_json()) == (study, [])


def test_what_is_missing_or_odd_has_its_default_and_is_named():
    whole, odd = parse(document())[0], document()
    del odd["request"]["metric"], odd["environment"]["backbone"]
    odd["request"] |= {"seeds": "five", "mode": "up"}
    odd["request"]["arms"][0]["config"] = 7
    odd["runs"]["history"] = {}
    study, missing = parse(odd)
    assert missing == [
        *("request.seeds", "request.metric", "request.mode", "request.arms[0].config"),
        *("environment.backbone", "runs.history"),
    ]
    assert (study.request.seeds, study.request.metric, study.request.mode) == (6, "", "max")
    first, *others = whole.request.arms
    assert study.request.arms == (dataclasses.replace(first, config={}), *others)
    assert study.runs.history == ()


def test_an_unknown_value_may_be_null_only_where_it_may_be_unknown():
    unknown = document()
    unknown["environment"]["git"] = {"commit": None, "dirty": None}
    unknown["request"]["question"] = None
    assert parse(unknown)[1] == ["request.question"]


def test_an_empty_object_lacks_everything_and_is_read():
    study, missing = parse({})
    assert study == StudyFile()
    assert {"request", "environment", "runs"} <= set(missing)


def test_a_field_that_came_later_is_not_missed_in_an_older_file():
    older, odd = document(), document()
    del older["environment"]["dataset"]["notes"]
    assert parse(older) == (parse(document())[0], [])
    odd["environment"]["dataset"]["notes"] = "none"
    assert parse(odd)[1] == ["environment.dataset.notes"]


def test_a_study_of_another_format_is_refused():
    with pytest.raises(BadInput, match="got format 1"):
        parse({"format": 1})


@pytest.mark.parametrize("text", ["{", "[]", None])
def test_a_file_that_is_no_object_or_not_there_is_refused_by_name(tmp_path, text):
    if text is not None:
        (tmp_path / "study.json").write_text(text)
    with pytest.raises(BadInput, match=r"study\.json"):
        read_study(Folder(tmp_path))
