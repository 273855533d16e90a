"""The pool of trained trials that `tests.calibration` draws equal arms from."""

import pandas as pd
import pytest

from tests.same_arms import APART, CORPORA, pool_file


@pytest.mark.parametrize("corpus", CORPORA)
def test_the_pool_is_of_trials_that_can_be_made_again(corpus):
    frame = pd.read_parquet(pool_file(corpus))
    assert not frame.duplicated(["configuration", "seed"]).any()
    assert ((frame["seed"] - frame["order"]) % APART == 0).all()
    assert {*frame["configuration"]} == {*CORPORA[corpus].configs}
    assert frame.attrs["corpus"] == corpus
