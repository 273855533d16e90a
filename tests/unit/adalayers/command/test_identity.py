"""Which flags make a study this one, and what a results folder says of it."""

from dataclasses import replace

import numpy as np
import pytest

from adalayers.command.cases import asked
from adalayers.command.flags import parse
from adalayers.command.identity import check_plan, check_rows, new_study, opened, smallest_effect
from adalayers.comparisons import PlannedArm
from adalayers.data.prepare import prepare
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.results import study_file as records
from adalayers.results.files import STUDY as FILE
from adalayers.results.files import TRIALS, write_trials
from adalayers.storage.folder import Folder
from adalayers.study import trial_id
from adalayers.tasks import metrics
from tests.helpers.planning import BARE
from tests.helpers.refusing import refused

WAYS_OUT = ".*--label.*--fresh"


def flags_of(world, *argv):
    return parse(BARE, ["--backbone", str(world["backbone"]), "--dataset", str(world["dataset"]), *argv])


@pytest.fixture(scope="module")
def prepared(world):
    return prepare(flags_of(world).requests[0])


@pytest.fixture(scope="module")
def of(world, prepared):
    """Return what makes a study, for some flags."""

    def makes(*argv):
        flags = flags_of(world, *argv)
        (request,) = flags.requests
        return asked(flags, replace(prepared, request=request)), prepared.provenance

    return makes


def write(folder, request, provenance, **changed):
    """Write the `study.json` of a study that was asked for."""
    backbone = records.BackboneRecord(**vars(provenance.backbone))
    dataset = records.DatasetRecord(**vars(provenance.dataset))
    environment = records.EnvironmentRecord(backbone=backbone, dataset=dataset)
    made = records.StudyFile(id="it", request=request, environment=environment, **changed)
    folder.write_json(FILE, made.as_json())


OTHERS = "metric=accuracy seed=1 search=grid scheduler=fifo epochs=3 max-length=32 splits=validation=20%"
MORE = "precision=float32 eval-examples=9 test-examples=9 set=k=8"


@pytest.mark.parametrize("typed", [*OTHERS.split(), *MORE.split()])
def test_another_value_is_another_study(folder, of, typed):
    argv, name = [f"--{typed}"], typed.partition("=")[0].replace("-", "_")
    write(folder, *of())
    refused(f"with {name} = .*holds one with {name} = {WAYS_OUT}", opened, folder, *of(*argv))
    write(folder, *of(*argv))
    assert opened(folder, *of(*argv)).id == "it"


def test_what_changes_no_number_makes_no_other_study(folder, of):
    size = ["--trials", "3", "--seeds", "9", "--max-hours", "2", "--tracking-uri", "none"]
    resources = ["--features", "live", "--max-concurrent", "1", "--cpus-per-trial", "0.5"]
    write(folder, *of())
    assert opened(folder, *of(*size, *resources)).id == "it"


def test_a_copy_of_another_study_is_another_study(tmp_path, of):
    folder = Folder(tmp_path / "cutoff" / "tiny-echo")
    write(folder, *of(), study="alpha_lambda")
    refused(r"with study = cutoff, .* holds one with study = alpha_lambda", opened, folder, *of())


def row_of(prepared, **changed):
    """Return a confirmed row of an arm with k = 8, as a study writes it."""
    config, shape = LayerMixConfig(k=8, heads=2), prepared.shape
    settings = {f"config/{name}": value for name, value in config.used(shape).items()}
    row = {"trial_id": trial_id(config, shape, 1, prepared.provenance), "stage": "confirm", "arm": "mix"}
    row |= {"seed": 1, "status": "completed", "error": "", "search": "", "fusion": config.fusion}
    return {**row, **settings, **changed}


def check(folder, prepared, row, k=8):
    write_trials(folder, [row])
    check_rows(folder, prepared, {"mix": [LayerMixConfig(k=k, heads=2)]})


def test_rows_of_what_is_read_now_are_gone_on_with(folder, prepared):
    check_rows(folder, prepared, {})
    check(folder, prepared, row_of(prepared))
    check(folder, prepared, row_of(prepared, arm="found by a search", draw=1))
    former = row_of(prepared)
    del former["config/lr"]  # of a time before it could be set
    check(folder, prepared, former)


def test_arms_that_were_confirmed_stay_and_so_does_the_control(folder):
    """Else what is left shares the error among fewer comparisons, now that scores are seen."""
    roles = {"mix": "core", "last": "last", "search-best": "best", "none": ""}
    request = records.RequestRecord(control="mix", arms=tuple(PlannedArm(*each) for each in roles.items()))
    run = records.Run(seeds={"mix": [1], "last": [1], "search-best": [1], "none": []})
    before = records.StudyFile(request=request, runs=records.RunsRecord(history=(run,)))
    check_plan(folder, before, "mix", ["mix", "last", "another"])
    check_plan(folder, records.StudyFile(request=request), "last", [])  # nothing has been confirmed
    refused(f"control = last, .*control = mix{WAYS_OUT}", check_plan, folder, before, "last", ["mix", "last"])
    refused(f"the study plans no last any more{WAYS_OUT}", check_plan, folder, before, "mix", ["mix"])


@pytest.mark.parametrize(
    ("change", "k", "why"),
    [
        ({"config/k": 16}, 8, "something else, or was edited"),
        ({"fusion": "no-such"}, 8, "unknown fusion"),
        # Else one page has two rows of one arm and seed.
        ({}, 16, "arm mix, seed 1, with other settings than this arm has now"),
    ],
    ids=str,
)
def test_a_row_that_is_not_what_its_id_says_or_its_arm_has_is_refused(folder, prepared, change, k, why):
    refused(f"trials.csv is of .*{why}{WAYS_OUT}", check, folder, prepared, row_of(prepared, **change), k)


def test_rows_of_other_splits_labels_or_precision_are_refused(folder, prepared):
    """Whatever an id is made of."""
    task, encoded, five = prepared.task, prepared.encoded, np.arange(5)
    fewer = replace(task, splits={**task.splits, "test": task.splits["test"].take(five)})
    others = [
        {"task": fewer, "encoded": {**encoded, "test": encoded["test"].take(five)}},
        {"task": replace(task, label_names=("yes", "no"))},
        {"request": replace(prepared.request, precision="float32")},
    ]
    write_trials(folder, [row_of(prepared)])
    for other in others:
        refused("something else", check_rows, folder, replace(prepared, **other), {})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (TRIALS, b"trial_id\n", r"wanted study\.json next to trials\.csv "),
        (FILE, b'{"id": "it", "request": {"fla', r"could not read study\.json in .* lost;"),
        (FILE, b"{}", r"could not read study\.json in .* lost;"),
    ],
)
def test_trials_that_nothing_tells_of_and_a_damaged_study_file_are_refused(folder, of, name, text, said):
    """Else a run with another learning rate would be merged into them."""
    folder.write_bytes(name, text)
    refused(said + WAYS_OUT, opened, folder, *of())


def test_the_smallest_effect_is_that_of_the_study_unless_it_is_new(folder):
    before = records.StudyFile(request=records.RequestRecord(smallest_effect=0.25))
    own = metrics.smallest_effect("accuracy")
    for study, wanted, effect in ((new_study(), None, own), (new_study(), 0.5, 0.5), (before, None, 0.25)):
        assert smallest_effect(folder, study, wanted, "accuracy") == effect
    assert smallest_effect(folder, before, 0.25, "accuracy") == 0.25
    said = r"smallest_effect = 0.5, .* smallest_effect = 0.25; keep both"
    refused(said, smallest_effect, folder, before, 0.5, "accuracy")
