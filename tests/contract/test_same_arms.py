"""The short form of `python -m tests.same_arms`: studies of made-up trials, run by the agenda and judged by reports."""

import numpy as np
import pandas as pd
import pytest

from tests.same_arms import APART, CORPORA, SHARED, STREAMS, draw, pool_file, studies


@pytest.fixture(scope="module")
def pool():
    """Scores as of three configurations of unequal spread, in the shape of a pool of 1,500 trials."""
    rng, rows = np.random.default_rng(0), []
    for order in range(1, 291):
        for number in range(1 if order % SHARED else STREAMS):
            for name, mean, sd in (("mix", 0.26, 0.008), ("last", 0.22, 0.009), ("fast", 0.24, 0.016)):
                score = mean + sd * rng.normal()
                row = {
                    "configuration": name,
                    "order": order,
                    "seed": order + APART * number,
                    "machine": f"made {order % 2}",
                }
                rows.append({**row, "val": score, "test": score, "predictions": str(len(rows))})
    frame = pd.DataFrame(rows)
    frame.attrs = {"metric": "f1", "baseline": 0.0}
    return frame


@pytest.mark.parametrize("form", ["same", "order", "diverged", "machines"])
def test_one_configuration_under_several_names_is_seldom_called_different(pool, form):
    assert studies(pool, form, range(3)).false <= 1


def test_effects_are_found_and_cost_fewer_trials_where_they_are_large(pool):
    one, two = (studies(pool, form, range(2)) for form in ("shift 1", "shift 2"))
    assert one.found > 0
    assert two.found == two.better == 2
    assert two.trials < two.fixed


def test_arms_of_one_order_share_its_batches_and_no_seed(pool):
    """What is drawn: the trials of an arm are its own, in every form but that of real effects."""
    for form in ("same", "order"):
        drawn = draw(pool, form, "mix", np.random.default_rng(0), 6)
        seen = [said for rows in drawn.trials.values() for said in rows["predictions"]]
        assert len(seen) == len({*seen}) >= 24
    orders = [list(rows.index) for rows in drawn.trials.values()]
    assert all(order == orders[0] for order in orders)


@pytest.mark.parametrize("corpus", CORPORA)
def test_the_pool_is_of_trials_that_can_be_made_again(corpus):
    frame = pd.read_parquet(pool_file(corpus))
    assert not frame.duplicated(["configuration", "seed"]).any()
    assert ((frame["seed"] - frame["order"]) % APART == 0).all()
    assert {*frame["configuration"]} == {*CORPORA[corpus].configs}
    assert frame.attrs["corpus"] == corpus
