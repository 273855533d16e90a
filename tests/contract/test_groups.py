"""Groups through Ray: trials that read the same batches share passes of the base model, and keep their numbers."""

import errno
import gc
import itertools
import os
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
from ray import tune

from adalayers.request import Resources
from adalayers.results.files import read_trials
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
ARMS = [Arm(f"alpha={alpha}", "core", {"alpha": alpha}) for alpha in (1, 8)]
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
    if len(config["jobs"]) > 3:
        os._exit(1)
    trainable(config, data, resources=resources or Resources())


def unlucky(config, data=None, resources=None, software=None):
    """Let a group's disk be full in its second epoch."""
    reports, work = itertools.count(1), config["jobs"][0].work

    def report(metrics):
        if next(reports) > 1:  # one of a group reports for all
            full(work).touch()

    every_epoch = mock.patch.multiple("adalayers.tuning.trainable", REPORT_SECONDS=0.0, REPORT_SHARE=1.0)
    with every_epoch, mock.patch.object(tune, "report", report), disk(work):
        trainable(config, data, resources=resources or Resources())


def full(work):
    """Return the file that says that a disk is full."""
    return Path(work).parents[2] / "full"


def disk(work):
    """Let a disk take nothing while it is full."""
    whole = folder._replace

    def replace(target, data):
        if full(work).exists():
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
    assert got["group"].str.fullmatch(r"t[0-9a-f]{12}/2").all()
    assert got.groupby("group")["seed"].nunique().eq(1).all()
    own = ["seconds", "group"]
    pd.testing.assert_frame_equal(alone.drop(columns=own), got.drop(columns=own))


def test_a_group_goes_on_whole_after_a_full_disk(alone, world, tmp_path):
    """Over stored features, whose groups take their steps as one: to rounding what each is alone."""
    argv = flags(world, tmp_path / "grouped", *SMALL, "--features", "disk")
    works = tmp_path / "grouped/alpha_lambda/tiny-echo/work"
    with mock.patch("adalayers.tuning.run.trainable", unlucky), disk(works / "a trial"):
        ended = ran([*argv, "--group", "3"])
    gc.collect()  # Ray's actor goes with what knows of it: here Ray itself goes on
    assert (ended.code, "Traceback" in ended.err) == (2, False), ended.err
    assert "the disk is full; make room" in ended.err
    full(works / "a trial").unlink()
    begun = read_trials(Folder(works.parent)).to_dict("records")
    assert len(begun) == 3
    grouped = ran([*argv, "--group", "6"])
    assert grouped.code == 0, grouped.err
    got = rows(tmp_path / "grouped")
    assert got.groupby("group")["seed"].nunique().max() == 1
    groups = got.set_index("trial_id")["group"]
    assert all(groups[row["trial_id"]] == row["group"] for row in begun)
    scores = got.columns[got.columns.str.startswith(("val/", "test/", "mix/"))]
    pd.testing.assert_frame_equal(alone[scores], got[scores], rtol=1e-3, atol=0.02)
