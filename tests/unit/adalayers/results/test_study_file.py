"""`study.json` as records: what is there is read, what is not has its default and is named."""

from __future__ import annotations

import dataclasses

import pytest

from adalayers.errors import BadInput
from adalayers.presets import ClassScore
from adalayers.results.folder import Folder
from adalayers.results.study_file import (
    ArmRecord,
    Asked,
    Happened,
    On,
    Run,
    StreamRecord,
    StudyFile,
    parse,
    read_study,
)
from adalayers.study import Factor, Published

WHOLE = StudyFile(
    id="i",
    study="s",
    name="n",
    asked=Asked(
        question="why?",
        method={"The model": "is small"},
        metric="f1",
        smallest_effect=0.01,
        factors=(Factor("alpha", "α", "scale", scale="log", changes_speed=True),),
        space={"alpha": {"name": "FloatDistribution", "attributes": {"low": 1.0}}},
        arms=(
            ArmRecord(
                arm="a",
                group="core",
                aliases=("b",),
                fusion="layer-mix",
                config={"alpha": 1.0, "layer": None},
            ),
        ),
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
    on=On(hidden_states=("00", "01")),
    happened=Happened(
        counts={"confirm": {"completed": 2}}, test_opened=0, runs=(Run(confirmed=2, seeds={"a": [1, 2]}),)
    ),
)


def test_what_is_written_is_read_back():
    assert parse(WHOLE.as_json()) == (WHOLE, [])


def test_what_is_missing_or_odd_has_its_default_and_is_named():
    document = WHOLE.as_json()
    del document["asked"]["metric"], document["on"]["backbone"]
    document["asked"]["seeds"] = "five"
    document["asked"]["mode"] = "up"
    document["asked"]["arms"][0]["config"] = 7
    document["happened"]["runs"] = {}
    study, missing = parse(document)
    assert missing == [
        *("asked.seeds", "asked.metric", "asked.mode", "asked.arms[0].config"),
        *("on.backbone", "happened.runs"),
    ]
    assert (study.asked.seeds, study.asked.metric, study.asked.mode) == (0, "", "max")
    assert study.asked.arms == (dataclasses.replace(WHOLE.asked.arms[0], config={}),)
    assert study.happened.runs == ()


def test_an_unknown_value_may_be_null_only_where_it_may_be_unknown():
    document = WHOLE.as_json()
    document["on"]["git"] = {"commit": None, "dirty": None}
    document["asked"]["question"] = None
    assert parse(document)[1] == ["asked.question"]


def test_an_empty_object_lacks_everything_and_is_read():
    study, missing = parse({})
    assert study == StudyFile()
    assert {"asked", "on", "happened"} <= set(missing)


@pytest.mark.parametrize(("document", "words"), [([], "wanted an object"), ({"format": 1}, "got format 1")])
def test_what_is_no_study_of_this_format_is_refused(document, words):
    with pytest.raises(BadInput, match=words):
        parse(document)


def test_a_file_that_is_no_json_is_refused_by_name(tmp_path):
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(BadInput, match="it cannot be read"):
        read_study(Folder(tmp_path))


def test_streams_have_names():
    document = WHOLE.as_json()
    document["on"]["backbone"]["streams"] = [{"name": "decoder", "layers": 6, "final_norm": True}]
    assert parse(document)[0].on.backbone.streams == (
        StreamRecord(name="decoder", layers=6, final_norm=True),
    )
