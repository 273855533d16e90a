"""Groups through Ray: trials that read the same batches share passes of the base model, and keep their numbers."""

import errno
import itertools
import os
import time
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
from ray import tune

from adalayers.request import Resources
from adalayers.results.record import ROW
from adalayers.storage import folder
from adalayers.storage.folder import Folder
from adalayers.study import Arm, Design, Study
from adalayers.tuning.trainable import trainable
from tests.helpers.studying import RAYS_OWN, flags, run_here

pytestmark = RAYS_OWN
SMALL = (
    *("--trials", "0", "--seeds", "2", "--epochs", "2", "--max-concurrent", "1", "--tracking-uri", "none"),
    *("--retries", "0", "--set", "batch_size=64"),
)
ARMS = [Arm(f"alpha={alpha}", "core", {"alpha": alpha}) for alpha in (1, 8, 64)]
ARMS += [Arm(mix, mix, {"mix": mix}) for mix in ("uniform", "last")]
STUDY = Study(
    name="alpha_lambda",
    question="Is a group what its members are alone?",
    design=Design(arms=lambda setting: (ARMS, [])),
)


def ran(argv):
    return run_here(argv, study=STUDY, report=False)


@pytest.fixture(scope="module")
def alone(world, tmp_path_factory, ray_here):
    """The rows of a study of one trial at a time, on hidden states that are computed as they are read."""
    output = tmp_path_factory.mktemp("alone") / "results"
    ended = ran(flags(world, output, *SMALL, "--features", "live", "--group", "1"))
    assert ended.code == 0, ended.err
    return rows(output)


def dying(config, data=None, resources=None, software=None):
    """Let the worker of a large group die, as where memory does not hold it."""
    if len(config["jobs"]) > 4:
        os._exit(1)
    trainable(config, data, resources=resources or Resources())


def unlucky(config, data=None, resources=None, software=None):
    """Let a group's disk be full in its second epoch; once there is room, let it hang when it has gone on."""
    jobs, place = config["jobs"], Path(config["jobs"][0].work).parents[2]
    reports = itertools.count(1)

    def report(metrics):
        if len(jobs) == 1 or (place / "hung").exists():
            return
        if (place / "room").exists():
            (place / "hung").write_text(str(metrics["epoch"]))
            time.sleep(600)
        if next(reports) > 1:  # one of a group reports for all
            (place / "full").touch()

    every_epoch = mock.patch.multiple("adalayers.tuning.trainable", REPORT_SECONDS=0.0, REPORT_SHARE=1.0)
    with every_epoch, mock.patch.object(tune, "report", report), disk(place):
        trainable(config, data, resources=resources or Resources())


def disk(place):
    """Let a disk take nothing while it is noted as full."""
    whole = folder._replace

    def replace(target, data):
        if (place / "full").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(target, data)

    return mock.patch.object(folder, "_replace", replace)


def rows(output):
    (table,) = output.rglob("trials.csv")
    return pd.read_csv(table).sort_values(["arm", "seed"], ignore_index=True)


def test_a_grouped_study_gives_the_numbers_of_one_trial_at_a_time(alone, world, tmp_path):
    with mock.patch("adalayers.tuning.run.trainable", dying):
        grouped = ran(flags(world, tmp_path / "grouped", *SMALL, "--features", "live"))
    assert grouped.code == 0, grouped.err
    assert "failed together; they go on in two halves" in grouped.err
    got = rows(tmp_path / "grouped")
    assert alone["group"].isna().all()
    assert got["group"].str.fullmatch(r"t[0-9a-f]{12}/[23]").all()
    assert got.groupby("group")["seed"].nunique().eq(1).all()
    own = ["seconds", "group"]
    pd.testing.assert_frame_equal(alone.drop(columns=own), got.drop(columns=own))


def test_a_group_goes_on_whole_after_a_full_disk_and_a_hang(alone, world, tmp_path):
    """Over stored features, whose groups take their steps as one: to rounding what each is alone."""
    stored = ("--features", "disk", "--group", "6", "--hang-minutes", "0.15")
    argv = flags(world, tmp_path / "grouped", *SMALL, *stored)
    study = tmp_path / "grouped/alpha_lambda/tiny-echo"
    place = study.parent
    with mock.patch("adalayers.tuning.run.trainable", unlucky), disk(place):
        full = ran(argv)
        (place / "full").rename(place / "room")
        notes = [Folder(work).read_sealed(ROW) for work in (study / "work").iterdir()]
        grouped = ran([*argv, "--retries", "5"])
    assert (full.code, grouped.code) == (2, 0)
    assert "the disk is full; make room" in full.err
    assert "Traceback" not in full.err
    assert "has made no progress" in grouped.err
    assert float((place / "hung").read_text()) == 2, "the epoch before is not run again"
    got = rows(tmp_path / "grouped")
    assert got.groupby("group")["seed"].nunique().max() == 1
    begun = {note["row"]["trial_id"]: note["row"]["group"] for note in notes}
    assert len(begun) == 5
    assert got.set_index("trial_id")["group"][[*begun]].to_dict() == begun
    scores = got.columns[got.columns.str.startswith(("val/", "test/", "mix/"))]
    pd.testing.assert_frame_equal(alone[scores], got[scores], rtol=1e-3, atol=0.02)
