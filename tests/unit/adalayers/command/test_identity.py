"""Which flags make a study this one, and what a results folder says of it."""

import dataclasses

import pytest

from adalayers.command.flags import parse
from adalayers.command.identity import identity, new_study, opened, smallest_effect
from adalayers.data.prepare import prepare
from adalayers.errors import BadInput
from adalayers.results.files import STUDY as FILE
from adalayers.results.files import TRIALS
from adalayers.results.study_file import RequestRecord, Run, StudyFile
from adalayers.storage.folder import Folder
from adalayers.study import Design, Study
from adalayers.tasks import metrics

STUDY = Study(name="made", question="Why?", design=Design(arms=lambda setting: ([], [])))


def flags_of(world, *argv):
    return parse(STUDY, ["--backbone", str(world["backbone"]), "--dataset", str(world["dataset"]), *argv])


@pytest.fixture(scope="module")
def of(world):
    """Return what makes a study, for some flags."""
    prepared = prepare(flags_of(world).requests[0])

    def makes(*argv):
        flags = flags_of(world, *argv)
        (request,) = flags.requests
        return identity(flags, type(prepared)(request, prepared.source, prepared.task, prepared.encoded))

    return makes


def folder_with(tmp_path, flags, **changed):
    """Write a folder of a study with these flags, its `study.json` changed by part."""
    folder = Folder(tmp_path / "study")
    document = StudyFile(id="it", request=RequestRecord(flags=flags)).as_json()
    folder.write_json(FILE, document | {part: document[part] | values for part, values in changed.items()})
    return folder


def test_an_empty_folder_starts_a_study_of_its_own(tmp_path, of):
    first, second = (opened(Folder(tmp_path / name), of()) for name in "ab")
    assert first == StudyFile(id=first.id)
    assert first.id != second.id


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["--metric", "accuracy"], "metric"),
        (["--seed", "1"], "seed"),
        (["--search", "grid"], "search"),
        (["--scheduler", "fifo"], "scheduler"),
        (["--epochs", "3"], "epochs"),
        (["--max-length", "32"], "max_length"),
        (["--splits", "validation=20%"], "splits"),
        (["--precision", "float32"], "precision"),
        (["--eval-examples", "9"], "eval_examples"),
        (["--test-examples", "9"], "test_examples"),
        (["--set", "k=8"], "set"),
    ],
)
def test_another_value_is_another_study(tmp_path, of, argv, name):
    folder = folder_with(tmp_path, of())
    with pytest.raises(BadInput, match=f"with {name} = .*holds one with {name} = ") as refused:
        opened(folder, of(*argv))
    assert "--label" in str(refused.value)
    assert opened(folder_with(tmp_path, of(*argv)), of(*argv)).id == "it"


@pytest.mark.parametrize(
    "argv",
    [
        ["--trials", "3"],
        ["--seeds", "9"],
        ["--max-hours", "2"],
        ["--features", "live"],
        ["--max-concurrent", "1"],
        ["--tracking-uri", "none"],
        ["--cpus-per-trial", "0.5"],
    ],
)
def test_what_changes_no_number_makes_no_other_study(of, argv):
    assert of(*argv) == of()


def test_trials_that_nothing_tells_of_are_refused(tmp_path, of):
    """Else a run with another learning rate would be merged into them."""
    folder = folder_with(tmp_path, of())
    folder.write_bytes(TRIALS, b"trial_id\n")
    folder.delete(FILE)
    with pytest.raises(
        BadInput, match=r"wanted study\.json next to trials\.csv in .*, it is missing.*--label.*--fresh"
    ):
        opened(folder, of())


@pytest.mark.parametrize(
    "text", [b"", b'{"id": "it", "request": {"fla', b"[]", b"\0" * 64, b"{}", b'{"request": {"flags": []}}']
)
def test_a_damaged_study_file_is_named_with_what_is_lost_and_both_ways_out(tmp_path, of, text):
    folder = Folder(tmp_path / "study")
    folder.write_bytes(FILE, text)
    with pytest.raises(BadInput, match=r"could not read study\.json in .* lost; .*--label.*--fresh"):
        opened(folder, of())


RUN = dataclasses.asdict(Run(started="2026", confirmed=1, seconds=1.0))


@pytest.mark.parametrize(
    "changed",
    [
        {"history": None},
        {"history": [3]},
        *({"history": [RUN | odd]} for odd in ({"confirmed": "x"}, {"analyses": 3}, {"seeds": []})),
        {"history": [RUN | {"analyses": [1], "covered": [{}, {}]}]},
    ],
    ids=str,
)
def test_runs_that_no_run_writes_are_named(tmp_path, of, changed):
    folder = folder_with(tmp_path, of(), runs=changed)
    with pytest.raises(BadInput, match=r"could not read study\.json in .*happened in the study is in doubt"):
        opened(folder, of())


def test_a_smallest_effect_that_is_no_number_is_named(tmp_path, of):
    folder = folder_with(tmp_path, of(), request={"smallest_effect": "x"})
    with pytest.raises(BadInput, match="smallest_effect is not what a study writes"):
        opened(folder, of())


def test_the_smallest_effect_is_that_of_the_study_unless_it_is_new(tmp_path):
    folder, new = Folder(tmp_path), new_study()
    assert smallest_effect(folder, new, None, "accuracy") == metrics.smallest_effect("accuracy")
    assert smallest_effect(folder, new, 0.5, "accuracy") == 0.5
    before = StudyFile(request=RequestRecord(smallest_effect=0.25))
    assert smallest_effect(folder, before, None, "accuracy") == 0.25
    assert smallest_effect(folder, before, 0.25, "accuracy") == 0.25
    with pytest.raises(BadInput, match=r"smallest_effect = 0.5, .* smallest_effect = 0.25; keep both"):
        smallest_effect(folder, before, 0.5, "accuracy")
