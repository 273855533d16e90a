"""Groups through Ray: trials that read the same batches share passes of the base model, and keep their numbers."""

import os
from unittest import mock

import pandas as pd

from adalayers.request import Resources
from adalayers.study import Arm, Design, Study
from adalayers.tuning.trainable import trainable
from tests.helpers.studying import RAYS_OWN, flags, run_here
from tests.helpers.trials_here import trials_here

pytestmark = RAYS_OWN
SMALL = (
    *("--trials", "0", "--seeds", "2", "--epochs", "2", "--max-concurrent", "1", "--tracking-uri", "none"),
    *("--retries", "0", "--set", "batch_size=64"),
)
ARMS = [Arm(f"alpha={alpha}", "core", {"alpha": alpha}) for alpha in (1, 8)]
ARMS += [Arm(mix, mix, {"mix": mix}) for mix in ("uniform", "last")]
DESIGN = Design(arms=lambda setting: (ARMS, []))
STUDY = Study(name="alpha_lambda", question="Is a group what its members are alone?", design=DESIGN)


def ran(argv):
    return run_here(argv, study=STUDY, report=False)


def dying(config, data=None, resources=None, software=None):
    """Let the worker of a large group die, as where memory does not hold it."""
    if len(config["jobs"]) > 3:
        os._exit(1)
    trainable(config, data, resources=resources or Resources())


def rows(output):
    (table,) = output.rglob("trials.csv")
    return pd.read_csv(table).sort_values(["arm", "seed"], ignore_index=True)


def test_a_grouped_study_gives_the_numbers_of_one_trial_at_a_time(ray_here, world, tmp_path):
    with trials_here():
        ran(flags(world, tmp_path / "alone", *SMALL, "--features", "live", "--group", "1"))
    alone = rows(tmp_path / "alone")
    with mock.patch("adalayers.tuning.run.trainable", dying):
        grouped = ran(flags(world, tmp_path / "grouped", *SMALL, "--features", "live"))
    assert "failed together; they go on in two halves" in grouped.err
    got = rows(tmp_path / "grouped")
    assert alone["group"].isna().all()
    assert got["group"].str.fullmatch(r"t[0-9a-f]{12}/2").all()
    assert got.groupby("group")["seed"].nunique().eq(1).all()
    own = ["seconds", "group"]
    pd.testing.assert_frame_equal(alone.drop(columns=own), got.drop(columns=own))
