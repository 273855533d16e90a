"""Groups through Ray: trials that read the same batches share passes of the base model, and keep their numbers."""

import contextlib
import os
from unittest import mock

import pandas as pd
from ray import tune

from adalayers.request import Resources
from adalayers.storage.folder import Folder
from adalayers.training.trainer import CHECKPOINT
from adalayers.tuning.trainable import trainable
from tests.helpers.studying import RAYS_OWN, flags, run_here

pytestmark = RAYS_OWN
SMALL = (
    *("--features", "live", "--trials", "0", "--seeds", "2", "--epochs", "2", "--max-concurrent", "1"),
    *("--tracking-uri", "none", "--retries", "0", "--set", "entropy_weight=0", "batch_size=64"),
)


def dying(config, data=None, resources=None):
    """Let the worker of a large group die, as where memory does not hold it."""
    if len(config["jobs"]) > 4:
        os._exit(1)
    trainable(config, data, resources or Resources())


def dying_once(config, data=None, resources=None):
    """Let the worker of a group die in its second epoch, once."""
    jobs, heard = config["jobs"], []

    def report(metrics):
        heard.append(metrics)
        if len(heard) > len(jobs):
            os._exit(1)

    begun = Folder(jobs[0].work).exists(CHECKPOINT)
    with contextlib.nullcontext() if begun else mock.patch.object(tune, "report", report):
        trainable(config, data, resources or Resources())


def rows(output):
    (table,) = output.rglob("trials.csv")
    return pd.read_csv(table).sort_values(["arm", "seed"]).reset_index(drop=True)


def test_a_grouped_study_gives_the_numbers_of_one_trial_at_a_time(world, tmp_path, ray_here):
    alone = run_here(flags(world, tmp_path / "alone", *SMALL, "--group", "1"), report=False)
    with mock.patch("adalayers.tuning.run.trainable", dying):
        grouped = run_here(flags(world, tmp_path / "grouped", *SMALL), report=False)
    assert (alone.code, grouped.code) == (0, 0)
    assert "failed together; they go on in two halves" in grouped.err
    wanted, got = rows(tmp_path / "alone"), rows(tmp_path / "grouped")
    assert wanted["group"].isna().all()
    assert got["group"].str.fullmatch(r"t[0-9a-f]{12}/[2-4]").all()
    assert got.groupby("group")["seed"].nunique().eq(1).all()
    own = ["seconds", "group"]
    pd.testing.assert_frame_equal(wanted.drop(columns=own), got.drop(columns=own))


def test_a_group_over_stored_features_holds_several_seeds_and_survives_its_worker(world, tmp_path, ray_here):
    stored = (*SMALL[2:], "--features", "disk", "--retries", "1")
    alone = run_here(flags(world, tmp_path / "alone", *stored, "--group", "1"), report=False)
    with mock.patch("adalayers.tuning.run.trainable", dying_once):
        grouped = run_here(flags(world, tmp_path / "grouped", *stored, "--group", "6"), report=False)
    assert (alone.code, grouped.code) == (0, 0)
    wanted, got = rows(tmp_path / "alone"), rows(tmp_path / "grouped")
    assert got.groupby("group")["seed"].nunique().max() == 2
    assert len(got) == len(wanted)
    scores = got.columns[got.columns.str.startswith(("val/", "test/", "mix/"))]
    pd.testing.assert_frame_equal(wanted[scores], got[scores], rtol=1e-3, atol=0.02)


def test_a_group_is_auto_or_a_number(world, tmp_path):
    ran = run_here(flags(world, tmp_path, "--group", "all"), report=False)
    assert ran.code == 2
    assert "wanted --group auto or a number of at least 1, got 'all'" in ran.err
