"""`study.json` as records: what a study writes is read, and anything else is refused by its place."""

import functools
import json
import operator

import pytest

from adalayers.results.study_file import StudyFile, from_json, read_study
from adalayers.storage.folder import Folder
from tests.helpers.documented import KEPT
from tests.helpers.made_published import with_published
from tests.helpers.made_up import MadeUp
from tests.helpers.refusing import refused


def document():
    """Return a `study.json` with published scores."""
    return json.loads(json.dumps(with_published(MadeUp(seeds=1, search=0, evaluations=1, tokens=True)).study))


def test_what_is_written_is_read_back():
    kept = [json.loads((folder / "study.json").read_text()) for folder in KEPT]
    assert len(kept) > 10
    for written in (document(), StudyFile().as_json(), *kept):
        study = from_json(StudyFile, written)
        assert from_json(StudyFile, study.as_json()) == study


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("request", "seeds"), True, r"request\.seeds: .*integer"),
        (("request", "sceds"), 6, r"request\.sceds: .*[Uu]nexpected"),
        (("environment", "git"), {"commit": None}, r"environment\.git\.dirty is missing"),
        (("request", "arms", 0), {"name": "a"}, r"request\.arms\[0\]\.role is missing"),
        ((), {}, "format is missing"),
        ((), [], "it: Input should be"),
        (("format",), 1, "format 3, got format 1"),
    ],
)
def test_a_file_that_no_study_writes_is_refused_by_the_place(tmp_path, place, value, said):
    whole = {"": document()}
    *into, last = ("", *place)
    functools.reduce(operator.getitem, into, whole)[last] = value
    (tmp_path / "study.json").write_text(json.dumps(whole[""]))
    refused(rf"study\.json.*{said}", read_study, Folder(tmp_path))


def test_a_field_that_came_later_has_its_default_in_an_older_file():
    older = document()
    del older["environment"]["dataset"]["notes"]
    read = from_json(StudyFile, older)
    assert read.environment.dataset.notes == ()
    assert from_json(StudyFile, read.as_json()) == read
