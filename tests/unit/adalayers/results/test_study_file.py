"""`study.json` as records: what is there is read, what is not has its default and is named."""

import dataclasses

import pytest

from adalayers.comparisons import At, Change, Comparison, PlannedArm
from adalayers.errors import BadInput
from adalayers.presets import ClassScore
from adalayers.results.study_file import (
    EnvironmentRecord,
    RequestRecord,
    Run,
    RunsRecord,
    StudyFile,
    parse,
    read_study,
)
from adalayers.storage.folder import Folder
from adalayers.study import Factor, Published, Variant

WHOLE = StudyFile(
    id="i",
    study="s",
    name="n",
    request=RequestRecord(
        question="why?",
        method={"The model": "is small"},
        metric="f1",
        smallest_effect=0.01,
        factors=(Factor("alpha", "α", "scale", scale="log", changes_speed=True),),
        space={"alpha": {"name": "FloatDistribution", "attributes": {"low": 1.0}}},
        arms=(
            PlannedArm(
                name="a",
                role="core",
                aliases=("b",),
                fusion="layer-mix",
                config={"alpha": 1.0, "layer": None},
            ),
        ),
        comparisons=(
            Comparison(arm="a", control="b", weights={"a": 1.0, "b": -1.0}),
            Comparison(changes=(Change("mix", "last", "learned"),), at=At("positions", False), primary=False),
        ),
        variants={"cutoff=0.05": Variant(cutoff=0.05), "without=1-2": Variant(without=(1, 2))},
        published=(
            Published(
                arm="a",
                source="a thesis",
                score=0.836,
                examples={"train": 7},
                config={"alpha": 64.0},
                classes=(ClassScore(name="PER", precision=0.9, recall=0.8, f1=0.85, predicted=3),),
            ),
        ),
    ),
    environment=EnvironmentRecord(hidden_states=("00", "01")),
    runs=RunsRecord(
        counts={"confirm": {"completed": 2}}, test_opened=0, history=(Run(confirmed=2, seeds={"a": [1, 2]}),)
    ),
)


def test_what_is_written_is_read_back():
    assert parse(WHOLE.as_json()) == (WHOLE, [])


def test_what_is_missing_or_odd_has_its_default_and_is_named():
    document = WHOLE.as_json()
    del document["request"]["metric"], document["environment"]["backbone"]
    document["request"]["seeds"] = "five"
    document["request"]["mode"] = "up"
    document["request"]["arms"][0]["config"] = 7
    document["runs"]["history"] = {}
    study, missing = parse(document)
    assert missing == [
        *("request.seeds", "request.metric", "request.mode", "request.arms[0].config"),
        *("environment.backbone", "runs.history"),
    ]
    assert (study.request.seeds, study.request.metric, study.request.mode) == (0, "", "max")
    assert study.request.arms == (dataclasses.replace(WHOLE.request.arms[0], config={}),)
    assert study.runs.history == ()


def test_an_unknown_value_may_be_null_only_where_it_may_be_unknown():
    document = WHOLE.as_json()
    document["environment"]["git"] = {"commit": None, "dirty": None}
    document["request"]["question"] = None
    assert parse(document)[1] == ["request.question"]


def test_an_empty_object_lacks_everything_and_is_read():
    study, missing = parse({})
    assert study == StudyFile()
    assert {"request", "environment", "runs"} <= set(missing)


@pytest.mark.parametrize(("document", "words"), [([], "wanted an object"), ({"format": 1}, "got format 1")])
def test_what_is_no_study_of_this_format_is_refused(document, words):
    with pytest.raises(BadInput, match=words):
        parse(document)


def test_a_file_that_is_no_json_is_refused_by_name(tmp_path):
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(BadInput, match="it cannot be read"):
        read_study(Folder(tmp_path))
