"""Which flags make a study this one, and what a results folder says of it."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from adalayers.command.cases import asked
from adalayers.command.flags import parse
from adalayers.command.identity import check_rows, new_study, opened, smallest_effect
from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.results.files import STUDY as FILE
from adalayers.results.files import TRIALS, write_trials
from adalayers.results.study_file import (
    BackboneRecord,
    DatasetRecord,
    EnvironmentRecord,
    RequestRecord,
    StudyFile,
)
from adalayers.storage.folder import Folder
from adalayers.study import Design, Study, trial_id
from adalayers.tasks import metrics

STUDY = Study(name="made", question="Why?", design=Design(arms=lambda setting: ([], [])))


def flags_of(world, *argv):
    return parse(STUDY, ["--backbone", str(world["backbone"]), "--dataset", str(world["dataset"]), *argv])


@pytest.fixture(scope="module")
def of(world):
    """Return what makes a study, for some flags."""
    prepared = prepare(flags_of(world).requests[0])
    provenance = prepared.provenance

    def makes(*argv):
        flags = flags_of(world, *argv)
        (request,) = flags.requests
        return asked(flags, dataclasses.replace(prepared, request=request)), provenance

    return makes


def asked_for(request, provenance, **changed):
    """Return the `study.json` of a study that was asked for."""
    backbone, dataset = (vars(of) for of in (provenance.backbone, provenance.dataset))
    environment = EnvironmentRecord(backbone=BackboneRecord(**backbone), dataset=DatasetRecord(**dataset))
    return StudyFile(id="it", request=request, environment=environment, **changed).as_json()


def folder_with(tmp_path, made):
    """Write a folder of a study that was asked for."""
    folder = Folder(tmp_path / "study")
    folder.write_json(FILE, asked_for(*made))
    return folder


def test_an_empty_folder_starts_a_study_of_its_own(tmp_path, of):
    first, second = (opened(Folder(tmp_path / name), *of()) for name in "ab")
    assert first == StudyFile(id=first.id)
    assert first.id != second.id


OTHERS = "metric=accuracy seed=1 search=grid scheduler=fifo epochs=3 max-length=32 splits=validation=20%"


@pytest.mark.parametrize(
    "typed", [*OTHERS.split(), "precision=float32", "eval-examples=9", "test-examples=9", "set=k=8"]
)
def test_another_value_is_another_study(tmp_path, of, typed):
    argv, name = [f"--{typed}"], typed.partition("=")[0].replace("-", "_")
    folder = folder_with(tmp_path, of())
    with pytest.raises(BadInput, match=f"with {name} = .*holds one with {name} = ") as refused:
        opened(folder, *of(*argv))
    assert "--label" in str(refused.value)
    assert opened(folder_with(tmp_path, of(*argv)), *of(*argv)).id == "it"


def test_what_changes_no_number_makes_no_other_study(of):
    size = ["--trials", "3", "--seeds", "9", "--max-hours", "2"]
    resources = ["--features", "live", "--max-concurrent", "1", "--cpus-per-trial", "0.5"]
    (changed, provenance), (request, _) = of(*size, *resources, "--tracking-uri", "none"), of()
    of_data = provenance.backbone, provenance.dataset
    assert changed.identity(*of_data) == request.identity(*of_data)


@pytest.fixture(scope="module")
def prepared(world):
    return prepare(flags_of(world).requests[0])


def row_of(prepared, **changed):
    """Return a confirmed row of an arm with k = 8, as a study writes it."""
    config, shape = LayerMixConfig(k=8, heads=2), prepared.shape
    settings = {f"config/{name}": value for name, value in config.used(shape).items()}
    row = {"trial_id": trial_id(config, shape, 1, prepared.provenance), "stage": "confirm", "arm": "mix"}
    row |= {"seed": 1, "status": "completed", "error": "", "search": "", "fusion": config.fusion}
    return {**row, **settings, **changed}


def check(tmp_path, prepared, row, k=8):
    folder = Folder(tmp_path)
    write_trials(folder, [row])
    check_rows(folder, StudyFile(), prepared, {"mix": [LayerMixConfig(k=k, heads=2)]})


def test_a_copy_of_another_study_is_another_study(tmp_path, of):
    folder = Folder(tmp_path / "cutoff").child("tiny-echo")
    folder.write_json(FILE, asked_for(*of(), study="alpha_lambda"))
    with pytest.raises(BadInput, match=r"with study = cutoff, .* holds one with study = alpha_lambda"):
        opened(folder, *of())


def test_rows_of_what_is_read_now_are_gone_on_with(tmp_path, prepared):
    check_rows(Folder(tmp_path), StudyFile(), prepared, {})
    check(tmp_path, prepared, row_of(prepared))
    check(tmp_path, prepared, row_of(prepared, arm="found by a search", draw=1))
    former = row_of(prepared)
    del former["config/lr"]  # of a time before it could be set
    check(tmp_path, prepared, former)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"config/k": 16}, "something else, or was edited"),
        ({"config/dropout": 0.25}, "something else, or was edited"),
        ({"seed": 2}, "something else, or was edited"),
        ({"fusion": "no-such"}, "unknown fusion"),
        ({"config/k": "x"}, "a whole number"),
        ({"trial_id": "t000000000000"}, "something else, or was edited"),
    ],
    ids=str,
)
def test_a_row_that_is_not_what_its_id_says_is_refused(tmp_path, prepared, change, why):
    with pytest.raises(BadInput, match=f"trials.csv is of .*{why}.*--label.*--fresh"):
        check(tmp_path, prepared, row_of(prepared, **change))


def test_rows_of_other_splits_labels_weights_or_precision_are_refused(tmp_path, prepared, of):
    """Whatever an id is made of: the study's own record says what it was, where it knows."""
    task, encoded, five = prepared.task, prepared.encoded, np.arange(5)
    fewer = replace(task, splits={**task.splits, "test": task.splits["test"].take(five)})
    named = replace(task, label_names=("yes", "no"))
    float32 = replace(prepared.request, precision="float32")
    others = {
        "examples of test, now 5": {
            "task": fewer,
            "encoded": {**encoded, "test": encoded["test"].take(five)},
        },
        "the labels .*, now they are yes, no": {"task": named},
        "something else": {"request": float32},
        "something else, or": {"source": replace(prepared.source, dtype="bfloat16")},
    }
    write_trials(Folder(tmp_path), [row_of(prepared)])
    dataset = DatasetRecord(
        labels=task.label_names, examples={name: len(split) for name, split in task.splits.items()}
    )
    before = StudyFile(environment=EnvironmentRecord(dataset=dataset))
    for why, other in others.items():
        with pytest.raises(BadInput, match=why):
            check_rows(Folder(tmp_path), before, replace(prepared, **other), {})


def test_an_arm_that_has_other_settings_now_is_refused(tmp_path, prepared):
    """Else one page has two rows of one arm and seed."""
    with pytest.raises(BadInput, match="arm mix, seed 1, with other settings than this arm has now"):
        check(tmp_path, prepared, row_of(prepared), k=16)


def test_trials_that_nothing_tells_of_are_refused(tmp_path, of):
    """Else a run with another learning rate would be merged into them."""
    folder = folder_with(tmp_path, of())
    folder.write_bytes(TRIALS, b"trial_id\n")
    folder.delete(FILE)
    with pytest.raises(BadInput, match=r"wanted study\.json next to trials\.csv .*--label.*--fresh"):
        opened(folder, *of())


@pytest.mark.parametrize(
    "text", [b"", b'{"id": "it", "request": {"fla', b"[]", b"\0" * 64, b"{}", b'{"request": {"data": []}}']
)
def test_a_damaged_study_file_is_named_with_what_is_lost_and_both_ways_out(tmp_path, of, text):
    folder = Folder(tmp_path / "study")
    folder.write_bytes(FILE, text)
    with pytest.raises(BadInput, match=r"could not read study\.json in .* lost; .*--label.*--fresh"):
        opened(folder, *of())


def test_the_smallest_effect_is_that_of_the_study_unless_it_is_new(tmp_path):
    folder, new = Folder(tmp_path), new_study()
    assert smallest_effect(folder, new, None, "accuracy") == metrics.smallest_effect("accuracy")
    assert smallest_effect(folder, new, 0.5, "accuracy") == 0.5
    before = StudyFile(request=RequestRecord(smallest_effect=0.25))
    assert smallest_effect(folder, before, None, "accuracy") == 0.25
    assert smallest_effect(folder, before, 0.25, "accuracy") == 0.25
    with pytest.raises(BadInput, match=r"smallest_effect = 0.5, .* smallest_effect = 0.25; keep both"):
        smallest_effect(folder, before, 0.5, "accuracy")
