"""Groups through Ray: trials that read the same batches share passes of the base model, and keep their numbers."""

import os
from unittest import mock

import pandas as pd
import pytest

from adalayers.request import Resources
from adalayers.tuning.trainable import trainable
from tests.helpers.studying import RAYS_OWN, flags, run_here, world

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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return world(tmp_path_factory.mktemp("world"))


def rows(output):
    (table,) = output.rglob("trials.csv")
    return pd.read_csv(table).sort_values(["arm", "seed"]).reset_index(drop=True)


def test_a_grouped_study_gives_the_numbers_of_one_trial_at_a_time(made, tmp_path, ray_here):
    alone = run_here(flags(made, tmp_path / "alone", *SMALL, "--group", "1"), report=False)
    with mock.patch("adalayers.tuning.run.trainable", dying):
        grouped = run_here(flags(made, tmp_path / "grouped", *SMALL), report=False)
    assert (alone.code, grouped.code) == (0, 0)
    assert "failed together; they go on in two halves" in grouped.err
    wanted, got = rows(tmp_path / "alone"), rows(tmp_path / "grouped")
    assert wanted["group"].isna().all()
    assert got["group"].str.fullmatch(r"t[0-9a-f]{12}/[2-4]").all()
    assert got.groupby("group")["seed"].nunique().eq(1).all()
    own = ["seconds", "group"]
    pd.testing.assert_frame_equal(wanted.drop(columns=own), got.drop(columns=own))


def test_a_group_is_auto_or_a_number(made, tmp_path):
    ran = run_here(flags(made, tmp_path, "--group", "all"), report=False)
    assert ran.code == 2
    assert "wanted --group auto or a number of at least 1, got 'all'" in ran.err
